// The options of the engine and its sessions, with their allowed values.
import type { Agent } from '../agents/agent-type.ts'
import {
  anyText,
  anything,
  callable,
  checkFields,
  count,
  countOrNone,
  type FieldCheck,
  type Fields,
  fieldsOf,
  type Hints,
  isObject,
  listOf,
  object,
  oneOf,
  positive,
  text,
} from '../checks/fields.ts'
import { schema } from '../checks/json-schema.ts'
import { OxbowError } from '../errors.ts'
import type { Principal } from '../events/types.ts'
import type { SessionKey, SessionQuery } from '../ports.ts'
import { MODES } from '../tools/mode.ts'
import type { RunOptions } from './input.ts'

const madeAgent: FieldCheck = (it, path) =>
  (it as Agent | null)?.tools instanceof Map ? undefined : `${path} must be made with agent()`

export const ENGINE = {
  backend: anything,
  agents: listOf(madeAgent),
  onError: callable,
  currentPrincipal: callable,
  principalMaxAgeMs: countOrNone,
  faultPoint: callable,
  maxIdleSessions: countOrNone,
  role: oneOf('all', 'api', 'worker'),
  maxTurns: count,
}

export const QUERY: Fields<SessionQuery> = {
  tenant: text,
  user: text,
  status: oneOf('idle', 'running', 'waiting', 'parked', 'open'),
  before: anything,
  limit: count,
  dueBy: anything,
}

/** Checked as ids where it is used. */
export const SESSION: Fields<SessionKey> = { tenant: anything, user: anything, session: anything }

const signal: FieldCheck = (it, path) => (it instanceof AbortSignal ? undefined : `${path} must be an AbortSignal`)

/** A principal without a user is invalid; missing permissions mean fewer rights, never more. */
const principal: FieldCheck = (value, path) =>
  isObject(value) ? text(value.user, `${path}.user`) : `${path} must be an object that names at least the user`

export const RUN: Fields<RunOptions> = {
  turnId: anything,
  whenBusy: oneOf('queue', 'steer', 'refuse'),
  principal,
  surface: text,
  output: schema,
  model: text,
  toolChoice: (it, path) =>
    isObject(it) ? fieldsOf({ tool: text })(it, path) : oneOf('auto', 'none', 'required')(it, path),
  maxSteps: count,
  totalTimeoutMs: positive,
  idleTimeoutMs: positive,
  mode: oneOf(...MODES),
  deny: listOf(text),
  attributes: object,
  failure: fieldsOf({ code: text, message: text, reference: text, retryable: anything }),
  signal,
}

const ofAgent = (name: string): string => `It belongs to the agent: agent({ ${name} }).`
const ATTRIBUTES = 'Oxbow calls it "attributes": tools and middleware see them.'

/** Options that other libraries have, or that have another place here. */
export const RUN_HINTS: Hints = {
  system: ofAgent('instructions'),
  instructions: ofAgent('instructions'),
  messages: 'The session keeps the conversation: pass only the new text.',
  tools: ofAgent('tools'),
  stopWhen: ofAgent('stopWhen'),
  temperature: ofAgent('temperature'),
  maxTokens: ofAgent('maxOutputTokens'),
  maxOutputTokens: ofAgent('maxOutputTokens'),
  agent: 'It belongs to the session: engine.session({ user }, { agent }).',
  user: 'It belongs to the session: engine.session({ user }). Who acts in this turn is its "principal".',
  limits: 'A turn has maxSteps, totalTimeoutMs and idleTimeoutMs themselves; the rest belongs to the agent.',
  maxTurns: 'Oxbow calls it "maxSteps".',
  timeout: 'Oxbow calls it "totalTimeoutMs".',
  timeoutMs: 'Oxbow calls it "totalTimeoutMs".',
  abortSignal: 'Oxbow calls it "signal".',
  schema: 'Oxbow calls it "output".',
  outputSchema: 'Oxbow calls it "output".',
  responseFormat: 'Oxbow calls it "output".',
  context: ATTRIBUTES,
  metadata: ATTRIBUTES,
  stream: 'For a stream call session.stream(text) in place of run().',
}

const BACKEND = 'Oxbow calls it "backend", for example sqlite({ path: \'.oxbow/oxbow.db\' }).'
export const ENGINE_HINTS: Hints = {
  store: BACKEND,
  storage: BACKEND,
  database: BACKEND,
  memory: BACKEND,
  model: 'It belongs to the agent: agent({ model }).',
  tools: 'It belongs to the agent: agent({ tools }).',
}

const SESSION_ID = 'Oxbow calls it "session".'
export const SESSION_HINTS: Hints = {
  id: SESSION_ID,
  sessionId: SESSION_ID,
  threadId: SESSION_ID,
  agent: 'It is the second argument: engine.session({ user }, { agent }).',
}

/** The acting principal, an option of every method that can be called on a user's behalf. */
export const BY: Fields<{ principal: Principal }> = { principal }
export const STOP: Fields<{ turnId: string; reason: string; principal: Principal }> = {
  turnId: text,
  reason: anyText,
  principal,
}
export const RESULT: Fields<{ status: string; content: unknown }> = {
  status: oneOf('success', 'error'),
  content: anything,
}
/** The ids are checked where they are used. */
export const SIGNAL: Fields<{ id: string; turnId: string; principal: Principal }> = {
  id: text,
  turnId: text,
  principal,
}
export const COMPACT = { dryRun: anything, signal }
export const FOLLOW = { after: countOrNone, signal }

/** @throws OxbowError `invalid_option`, naming the field */
export function checkOption(
  method: string,
  options: unknown,
  fields: Readonly<Record<string, FieldCheck>>,
  hints?: Hints,
): void {
  checkFields(options, fields, (what) => new OxbowError('invalid_option', `${method}: ${what}`), hints)
}

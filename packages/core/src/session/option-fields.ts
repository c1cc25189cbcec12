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
  isObject,
  listOf,
  object,
  oneOf,
  positive,
  text,
} from '../checks/fields.ts'
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
  output: (it, path) => (['object', 'function'].includes(typeof it) ? undefined : `${path} must be a schema`),
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
export function checkOption(method: string, options: unknown, fields: Readonly<Record<string, FieldCheck>>): void {
  checkFields(options, fields, (what) => new OxbowError('invalid_option', `${method}: ${what}`))
}

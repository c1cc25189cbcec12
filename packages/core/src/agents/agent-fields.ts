// The fields of an agent and its parts, with their allowed values.

import {
  anyText,
  anything,
  callable,
  count,
  type FieldCheck,
  type Fields,
  fieldsOf,
  flag,
  type Hints,
  isObject,
  listOf,
  notNegative,
  oneOf,
  positive,
  text,
  unknownField,
} from '../checks/fields.ts'
import { MODES } from '../tools/mode.ts'
import type { Capability } from './capability.ts'
import type { AgentLimits, Budget } from './limits.ts'
import type { Middleware } from './middleware.ts'
import type { PromptSection } from './prompt.ts'

const BUDGET: Fields<Budget> = {
  tokens: count,
  toolCalls: count,
  children: count,
  money: positive,
  price: (value, path) =>
    fieldsOf({ input: notNegative, output: notNegative })(value, path) ??
    ((value as Budget['price'])?.input === undefined || (value as Budget['price'])?.output === undefined
      ? `${path} needs both input and output, in US dollars per million tokens`
      : undefined),
}

const STATE_TIMEOUTS: Fields<AgentLimits['stateTimeoutsMs']> = {
  CREATED: positive,
  RUNNING: positive,
  WAITING_TOOL: positive,
  WAITING_USER: positive,
}

const LIMITS: Fields<AgentLimits> = {
  maxSteps: count,
  outputAttempts: count,
  maxRecoveries: count,
  totalTimeoutMs: positive,
  idleTimeoutMs: positive,
  parallelReads: count,
  maxResultLength: count,
  approvalTimeoutMs: positive,
  stateTimeoutsMs: fieldsOf(STATE_TIMEOUTS),
  whenDenied: oneOf('tell', 'stop'),
  budget: fieldsOf(BUDGET),
}

const HOOKS: Fields<Omit<Middleware, 'name'>> = {
  onAgent: callable,
  onReasoning: callable,
  onActing: callable,
  onModelCall: callable,
  onSystemPrompt: callable,
}

/** It may be a class instance with other fields, but a field named like a hook must be one. */
const middleware: FieldCheck = (value, path) => {
  if (!isObject(value)) return `${path} must be a middleware: an object with a name and hooks`
  const problem = text(value.name, `${path}.name`)
  if (problem !== undefined) return problem
  for (const name of namesOf(value)) {
    if (!/^on[A-Z_]/i.test(name)) continue
    if (!Object.hasOwn(HOOKS, name)) return unknownField(`${path}.`, name, Object.keys(HOOKS))
    const it = value[name]
    const wrong = it === undefined ? undefined : callable(it, `${path}.${name}`)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

/** Field names, including those of its classes. */
function namesOf(value: object): string[] {
  const names: string[] = []
  for (let it: object | null = value; it !== null && it !== Object.prototype; it = Object.getPrototypeOf(it))
    names.push(...Object.getOwnPropertyNames(it))
  return names
}

const SECTION: Fields<PromptSection> = {
  title: text,
  text: (value, path) =>
    typeof value === 'string' || typeof value === 'function' ? undefined : `${path} must be a text or a function`,
  untrusted: flag,
}

const CAPABILITY: Fields<Capability> = {
  name: text,
  tools: listOf(anything),
  middleware: listOf(middleware),
  prompt: listOf(fieldsOf(SECTION)),
  compaction: callable,
  review: callable,
  allow: listOf(text),
  agents: listOf(anything),
}

/** It may have methods for its creator, such as `close()` of a capability with connections. */
const capability: FieldCheck = (value, path) => {
  if (!isObject(value)) return `${path} must be a capability: an object with a name`
  const given = Object.entries(value).filter(
    ([name, it]) => Object.hasOwn(CAPABILITY, name) || typeof it !== 'function',
  )
  return text(value.name, `${path}.name`) ?? fieldsOf(CAPABILITY)(Object.fromEntries(given), path)
}

export const AGENT = {
  name: anything,
  version: text,
  model: anything,
  models: listOf(anything),
  instructions: (value: unknown, path: string) =>
    typeof value === 'function' ? undefined : anyText(value, path)?.replace('a text', 'a text or a function'),
  stopWhen: callable,
  tools: listOf(anything),
  capabilities: listOf(capability),
  mode: oneOf(...MODES),
  allow: listOf(text),
  ask: listOf(text),
  deny: listOf(text),
  middleware: listOf(middleware),
  limits: fieldsOf(LIMITS),
  temperature: notNegative,
  maxOutputTokens: count,
}

const inLimits = (name: string): string => `It belongs in limits: { ${name} }.`
const perTurn = (name: string): string => `It belongs to a turn: session.run(text, { ${name} }).`
const ofModel = 'It belongs to the model, for example openaiChat({ options: { top_p: 0.9 } }).'

/** Fields that other libraries have, or that have another place here. */
export const AGENT_HINTS: Hints = {
  system: 'Oxbow calls it "instructions".',
  systemPrompt: 'Oxbow calls it "instructions".',
  prompt: 'Oxbow calls it "instructions".',
  messages: 'The session keeps the conversation: pass the new text to session.run(text).',
  maxTokens: 'Oxbow calls it "maxOutputTokens".',
  ...Object.fromEntries(Object.keys(LIMITS).map((it) => [it, inLimits(it)])),
  maxTurns: inLimits('maxSteps'),
  maxIterations: inLimits('maxSteps'),
  timeout: inLimits('totalTimeoutMs'),
  timeoutMs: inLimits('totalTimeoutMs'),
  toolChoice: perTurn('toolChoice'),
  output: perTurn('output'),
  outputSchema: perTurn('output'),
  outputType: perTurn('output'),
  responseFormat: perTurn('output'),
  topP: ofModel,
  topK: ofModel,
  seed: ofModel,
  memory: 'The store belongs to the engine: createEngine({ backend, agents }).',
  permissions: 'Oxbow has rules in "allow", "ask" and "deny".',
  hooks: 'Oxbow calls it "middleware".',
  agents: 'Agents below it are a capability: capabilities: [subAgents([{ agent, description }])].',
  subAgents: 'Agents below it are a capability: capabilities: [subAgents([{ agent, description }])].',
  handoffs: 'Agents below it are a capability: capabilities: [subAgents([{ agent, description }])].',
  mcp: 'MCP servers are a capability: capabilities: [await mcp({ … })].',
  mcpServers: 'MCP servers are a capability: capabilities: [await mcp({ … })].',
}

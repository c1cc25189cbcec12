import {
  anything,
  callable,
  checkFields,
  checkObject,
  countOrNone,
  type Fields,
  fieldsOf,
  flag,
  type Hints,
  isObject,
  listOf,
  object,
  oneOf,
  permissionId,
  positive,
  text,
} from '../checks/fields.ts'
import {
  type JsonSchema,
  type Schema,
  type SchemaInput,
  type SchemaOutput,
  schema,
  toJsonSchema,
} from '../checks/json-schema.ts'
import { OxbowError } from '../errors.ts'
import type { Principal } from '../events/types.ts'
import type { SessionKey } from '../ports.ts'
import type { SlotAccess } from '../state/slots.ts'
import type { Children } from './child-sessions.ts'
import { EFFECTS, type Effect } from './effect.ts'
import type { Mode } from './mode.ts'
import type { ToolDecision } from './needs-approval.ts'

/** Attributes of an input. */
export type Attributes = Readonly<Record<string, unknown>>

export interface ToolContext<A extends object = Attributes> {
  /** For whom the tool works. Which rows they may see: `rowFilter(context, columns)`. */
  readonly principal: Principal
  /** The tool's own permission id. */
  readonly permission?: string
  /** The attributes of the input, for tools and middleware only: they are not shown to the model. */
  readonly attributes: Readonly<A>
  /** Deny rules of this turn, which also apply to agents that the tool starts. */
  readonly denyRules: readonly string[]
  /** The decision on this call's `needsApproval`. */
  readonly decision?: ToolDecision
  readonly session: SessionKey
  readonly turnId: string
  readonly callId: string
  /** Stable across retries and restarts: pass it to business systems as the idempotency key. */
  readonly operationId: string
  /** 1 for the first run. */
  readonly attempt: number
  /** Agents that work below this turn. */
  readonly children: Children
  /** The session's state apart from the conversation. */
  readonly state: SlotAccess
  /** Fires on time-out and interruption. A tool that ignores it is left behind and its result thrown away. */
  readonly signal: AbortSignal
  /**
   * Runs a part of a durable tool once, whatever crashes, and journals its result. A step that a crash interrupted is
   * checked with `reconcile`, repeated if `idempotent`, and otherwise ends the call as unknown.
   *
   * @param name the same each time that the tool runs
   * @returns the result as JSON
   * @throws ToolError what the step threw; the same each time that the tool runs
   * @example const { id } = await context.step('charge', ({ operationId }) => payments.charge(amount, operationId))
   */
  step<T>(name: string, run: (step: StepContext) => T | Promise<T>, options?: StepOptions<T>): Promise<T>
  /** Pauses a durable tool. It costs no process, and survives restarts. In milliseconds. */
  sleep(ms: number): Promise<void>
  /**
   * Pauses a durable tool until `session.signal(name, value)` is called, also before this wait.
   *
   * @returns the value; undefined when none came within `timeoutMs`
   */
  waitFor<T = unknown>(name: string, options?: { readonly timeoutMs?: number }): Promise<T | undefined>
  /** Shows a line of progress to readers; never stored. */
  progress(text: string): void
  /** The full text of a long result of this session, by the id in its reference. */
  artifact(id: string): Promise<string | undefined>
}

export interface StepContext {
  /** Stable across attempts: pass it to business systems as the idempotency key. */
  readonly operationId: string
  /** 1 for the first run. */
  readonly attempt: number
  readonly signal: AbortSignal
}

export interface StepOptions<T> {
  /** May run twice with the same operation id. */
  readonly idempotent?: boolean
  /** How often a step that failed is tried again. Only for idempotent steps. */
  readonly retries?: number
  /** Asked after a crash in the middle of the step, instead of running it again. */
  readonly reconcile?: (
    operationId: string,
  ) => Promise<{ status: 'done'; result: T } | { status: 'not_done' } | { status: 'unknown' }>
}

/** Text, data blocks, any JSON value (shown to the model as JSON), or what `needsApproval` returns. */
export type ToolResult = unknown

/** The outcome of an operation whose process stopped in the middle. */
export type Reconciliation =
  | { readonly status: 'done'; readonly result: ToolResult }
  | { readonly status: 'not_done' }
  | { readonly status: 'unknown' }

export interface ToolSelfTest {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
  readonly expect: unknown
}

/**
 * The definition of a tool. `S` is the schema of its input, `A` what it expects of the `attributes` of a turn (annotate
 * the context of `run` to set it), `O` the schema of its results.
 */
export interface ToolDefinition<
  S extends Schema = Schema,
  A extends object = Attributes,
  O extends Schema | undefined = Schema | undefined,
> {
  /** 1 to 64 of `A-Z a-z 0-9 _ -`. */
  readonly name: string
  /** For the model: what it does and when to use it. */
  readonly description: string
  readonly input: S
  /** When given, a result that does not satisfy it is an error. */
  readonly output?: O
  readonly effects: readonly Effect[]
  /** Default 30,000. */
  readonly timeoutMs?: number
  /** May run twice with the same operation id. Default: true for tools that only read. */
  readonly idempotent?: boolean
  /**
   * How often a call that failed or timed out is tried again, with the same operation id. Only for idempotent tools.
   */
  readonly retries?: number
  /** Asked after a crash in the middle of a call, instead of running it again. */
  readonly reconcile?: (operationId: string, input: SchemaOutput<S>, context: ToolContext<A>) => Promise<Reconciliation>
  /**
   * Everything that it does to the world is inside `context.step()`. After a crash, a sleep or a signal the tool runs
   * again from its beginning, and what it had done is answered from the journal.
   */
  readonly durable?: boolean
  /** Called when a turn ends while a call waits for its `needsApproval`: the call will not resume. */
  readonly withdraw?: (operationId: string, context: ToolContext<A>) => void | Promise<void>
  readonly tests?: readonly ToolSelfTest[]
  /** A permission id such as `biz:order:query`; a principal without it is refused, in every mode. */
  readonly permission?: string
  /** `always`: each call needs an approval, in every mode. */
  readonly approval?: 'always'
  /** The permission id that a person needs to decide on its approvals. Default: the user decides. */
  readonly approver?: string
  /** The tool edits files of the workspace: the mode `accept-edits` lets it run. */
  readonly edits?: boolean
  /** Its results are never long: an agent that has no other tools needs no `read_artifact`. */
  readonly shortResults?: boolean
  /** The tool's own decision about a call; undefined leaves it to mode and rules. */
  readonly check?: (
    input: Readonly<SchemaInput<S>>,
    context: DecisionContext,
  ) => ToolVerdict | undefined | Promise<ToolVerdict | undefined>
  /**
   * Whether the pattern of a rule matches a call. For `deny` and `ask` it is enough that a part of the call matches,
   * and
   * `unknown` asks; for `allow` all of it must.
   */
  readonly matches?: (
    pattern: string,
    input: Readonly<SchemaInput<S>>,
    kind: RuleKind,
    context: DecisionContext,
  ) => boolean | 'unknown' | Promise<boolean | 'unknown'>
  /** The problem of a pattern that no call could match; the agent's definition then fails. */
  readonly checkPattern?: (pattern: string, kind: RuleKind) => string | undefined
  /** Patterns under which calls like this one could be allowed from now on, the narrowest first. */
  readonly suggest?: (input: Readonly<SchemaInput<S>>) => readonly string[] | Promise<readonly string[]>
  /**
   * Where it comes from, when others decide what it is. A rule that a person accepts holds for tools of the same origin
   * only.
   */
  readonly origin?: string
  /** Other names of it that `deny` and `ask` rules mean as well. */
  readonly aliases?: readonly string[]
  /**
   * Names of arguments, at any depth, whose values the audit log must not hold. What `check` gives as a reason is kept
   * as it is.
   */
  readonly secrets?: readonly string[]
  readonly run: (input: SchemaOutput<S>, context: ToolContext<A>) => ToolResult | Promise<ToolResult>
}

export type RuleKind = 'allow' | 'ask' | 'deny'

/**
 * What the gate decides in. The same object comes with every `check` and `matches` of one decision: what a tool works
 * out for it can be kept in a `WeakMap` under it, and ends with the decision.
 */
export interface DecisionContext {
  readonly mode: Mode
}

export interface ToolVerdict {
  readonly decision: RuleKind
  readonly reason: string
}

/** The types of a tool's arguments and results, for `resultsOf`. It has no value. */
export interface TypedTool<Input, Output> extends Tool {
  readonly types?: { readonly input: Input; readonly output: Output }
}

/** A tool as the engine uses it: checked, and with its JSON Schema. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly input: Schema
  readonly jsonSchema: JsonSchema
  readonly output: Schema | undefined
  readonly effects: readonly Effect[]
  readonly timeoutMs: number
  readonly idempotent: boolean
  readonly retries: number
  readonly durable: boolean
  readonly reconcile: ToolDefinition['reconcile']
  readonly withdraw: ToolDefinition['withdraw']
  readonly tests: readonly ToolSelfTest[]
  readonly permission: string | undefined
  readonly approval: 'always' | undefined
  readonly approver: string | undefined
  readonly edits: boolean
  readonly shortResults: boolean
  readonly check: ToolDefinition['check']
  readonly matches: ToolDefinition['matches']
  readonly checkPattern: ToolDefinition['checkPattern']
  readonly suggest: ToolDefinition['suggest']
  readonly origin: string | undefined
  readonly aliases: readonly string[]
  readonly secrets: readonly string[]
  /** Missing for external tools: the caller runs them. */
  readonly run: ((input: never, context: ToolContext) => ToolResult | Promise<ToolResult>) | undefined
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/
export const DEFAULT_TOOL_TIMEOUT_MS = 30_000

/**
 * Defines a tool that runs in this process.
 *
 * @example
 * const add = tool({
 *   name: 'add', description: 'Adds two numbers.', effects: ['read'],
 *   input: z.object({ a: z.number(), b: z.number() }),
 *   run: ({ a, b }) => a + b,
 * })
 * @throws OxbowError `tool_invalid` or `schema_unsupported`
 */
export function tool<S extends Schema, A extends object = Attributes, O extends Schema | undefined = undefined>(
  definition: ToolDefinition<S, A, O>,
): TypedTool<SchemaInput<S>, O extends Schema ? SchemaOutput<O> : string> {
  const shared = common(definition as unknown as Common, TOOL_FIELDS)
  const { name, timeoutMs = DEFAULT_TOOL_TIMEOUT_MS } = definition
  const { effects } = shared
  if (typeof definition.run !== 'function')
    throw new OxbowError(
      'tool_invalid',
      `tool ${name}: run must be a function; a tool that runs elsewhere is an externalTool()`,
    )
  const { idempotent = effects.every((it) => it === 'read'), retries = 0, durable = false } = definition
  if (durable && (definition.reconcile !== undefined || definition.idempotent !== undefined))
    throw new OxbowError(
      'tool_invalid',
      `tool ${name}: a durable tool runs again from its steps; give idempotent and reconcile to its steps`,
    )
  if (retries > 0 && !idempotent)
    throw new OxbowError(
      'tool_invalid',
      `tool ${name}: only an idempotent tool may be tried again; drop retries or set idempotent`,
    )
  return {
    ...shared,
    timeoutMs,
    idempotent,
    retries,
    durable,
    reconcile: definition.reconcile as ToolDefinition['reconcile'],
    withdraw: definition.withdraw as ToolDefinition['withdraw'],
    tests: definition.tests ?? [],
    run: definition.run as Tool['run'],
  }
}

/**
 * Defines a tool that the caller runs: the turn pauses, and the caller stores the result with `session.resolve()`.
 *
 * @param definition as of `tool()`, without `run` and `output`: check a result before you deliver it
 * @returns the tool, for an agent's `tools`
 * @throws OxbowError `tool_invalid`, naming the field
 * @example
 * const form = externalTool({ name: 'form', description: 'Shows a form.', effects: ['ask'], input: { type: 'object' }
 * })
 */
export function externalTool<S extends Schema>(definition: External<S>): TypedTool<SchemaInput<S>, string> {
  return {
    ...common(definition as unknown as Common, EXTERNAL_FIELDS, EXTERNAL_HINTS),
    timeoutMs: DEFAULT_TOOL_TIMEOUT_MS,
    idempotent: false,
    retries: 0,
    durable: false,
    reconcile: undefined,
    withdraw: undefined,
    tests: [],
    run: undefined,
  }
}

type Common<S extends Schema = Schema> = Omit<
  ToolDefinition<S>,
  'timeoutMs' | 'idempotent' | 'retries' | 'durable' | 'reconcile' | 'withdraw' | 'tests' | 'run'
>
type External<S extends Schema = Schema> = Omit<Common<S>, 'output'>

const COMMON_FIELDS: Fields<Common & Pick<Tool, 'jsonSchema'>> = {
  // A tool may be made from another: this is made anew from its input.
  jsonSchema: anything,
  name: anything,
  description: anything,
  input: schema,
  output: schema,
  effects: anything,
  permission: permissionId,
  approval: oneOf('always'),
  approver: permissionId,
  edits: flag,
  shortResults: flag,
  check: callable,
  matches: callable,
  checkPattern: callable,
  suggest: callable,
  origin: text,
  aliases: listOf(text),
  secrets: listOf(text),
}

const { output: _, ...EXTERNAL_FIELDS } = COMMON_FIELDS
const EXTERNAL_HINTS: Hints = {
  output: 'Nothing checks the result of an external tool: check it before session.resolve().',
}

const TOOL_FIELDS: Fields<ToolDefinition & Pick<Tool, 'jsonSchema'>> = {
  ...COMMON_FIELDS,
  timeoutMs: positive,
  idempotent: flag,
  retries: countOrNone,
  durable: flag,
  reconcile: callable,
  withdraw: callable,
  tests: listOf(fieldsOf({ name: text, input: object, expect: anything })),
  run: anything,
}

/** Names of a tool's fields in other libraries. */
const OTHER_NAMES: Hints = {
  execute: 'Oxbow calls it "run".',
  handler: 'Oxbow calls it "run".',
  func: 'Oxbow calls it "run".',
  invoke: 'Oxbow calls it "run".',
  parameters: 'Oxbow calls it "input".',
  args: 'Oxbow calls it "input".',
  inputSchema: 'Oxbow calls it "input".',
  schema: 'Oxbow calls it "input".',
  outputSchema: 'Oxbow calls it "output".',
  needsApproval: 'Oxbow calls it "approval: \'always\'".',
  requiresApproval: 'Oxbow calls it "approval: \'always\'".',
  readOnly: 'Oxbow calls it "effects: [\'read\']".',
  function: 'Pass its name, description and input to tool() itself.',
}

const EXAMPLE = "{ name: 'add', description: 'Adds.', effects: ['read'], input: z.object({ … }), run }"

function common(definition: Common, fields: Fields<External>, hints: Hints = {}) {
  checkObject(definition, EXAMPLE, (what) => new OxbowError('tool_invalid', `tool() ${what}`))
  const { name, description, input, output, effects } = definition
  if (typeof name !== 'string' || !NAME.test(name))
    throw new OxbowError('tool_invalid', `tool name ${JSON.stringify(name)}: use 1 to 64 of A-Z a-z 0-9 _ -`)
  const fault = (what: string) => new OxbowError('tool_invalid', `tool ${name}: ${what}`)
  checkFields(definition, fields, fault, { ...OTHER_NAMES, ...hints })
  if (typeof description !== 'string' || description.trim() === '')
    throw fault('describe for the model what it does and when to use it')
  if (input === undefined) throw fault('input must be a schema; {} for a tool without parameters')
  if (!Array.isArray(effects) || effects.length === 0)
    throw fault(
      `effects must list what the tool can do: got ${JSON.stringify(effects) ?? 'nothing'}. A tool that only looks has ['read']. Effects: ${Object.keys(EFFECTS).join(', ')}.`,
    )
  for (const it of effects)
    if (!Object.hasOwn(EFFECTS, it))
      throw fault(`unknown effect ${JSON.stringify(it)}. Effects: ${Object.keys(EFFECTS).join(', ')}`)
  const given = toJsonSchema(input, `tool ${name}, input`)
  if (given.type !== undefined && given.type !== 'object')
    throw new OxbowError('tool_invalid', `tool ${name}: the input schema must describe an object`)
  // Providers insist on the type; authors of a tool without parameters write `{}`.
  const jsonSchema = given.type === undefined ? { type: 'object', ...given } : given
  const {
    permission,
    approval,
    approver,
    edits = false,
    shortResults = false,
    check,
    matches,
    checkPattern,
    suggest,
    origin,
    aliases = [],
    secrets = [],
  } = definition
  const leak = secrets.find((it) => !mayHave(jsonSchema, it))
  if (leak !== undefined)
    throw fault(
      `secrets names ${leak}, which is none of its arguments (${Object.keys(jsonSchema.properties!).join(', ')})`,
    )
  const judged = {
    permission,
    approval,
    approver,
    edits,
    shortResults,
    check,
    matches,
    checkPattern,
    suggest,
    origin,
    aliases,
    secrets,
  }
  return { name, description, input, output, effects, jsonSchema, ...judged }
}

/** Whether arguments of this schema may have a field of that name. */
function mayHave({ properties, additionalProperties, ...rest }: JsonSchema, name: string): boolean {
  const closed = isObject(properties) && additionalProperties !== true && !isObject(additionalProperties)
  return !closed || Object.hasOwn(properties, name) || ['allOf', 'anyOf', 'oneOf', '$ref'].some((it) => it in rest)
}

export const onlyReads = (tool: Tool): boolean => tool.effects.every((it) => it === 'read')

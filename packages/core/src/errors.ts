// Errors: one class, and one table of the codes that it may carry.

/**
 * Every error code with its one meaning. `docs/reference/errors.md` is generated from it, and the service has an HTTP
 * status for each: a new code needs a status there too.
 */
export const CODES = {
  // Definitions
  agent_invalid: 'The definition of an agent is not valid: a field, or two agents or parts of the same name.',
  agent_file_invalid: 'A Markdown file that defines an agent, or its folder, cannot be read.',
  approval_invalid: 'A tool called needsApproval() with fields that are not valid.',
  compaction_invalid: 'The options of compaction() are not valid, or cannot work with this agent.',
  config_invalid: 'A setting is not valid.',
  engine_invalid: 'createEngine() was given options that are not valid.',
  mcp_invalid: 'The settings of an MCP server are not valid.',
  middleware_invalid: 'A middleware broke its contract, for example by calling next() twice.',
  model_config: 'The settings of a model are not valid.',
  package_missing: 'An optional package is not installed; the message names the command.',
  row_columns_invalid: 'rowFilter() was given columns that are not valid.',
  schema_invalid: 'A JSON Schema is not valid.',
  schema_unsupported: 'A schema cannot be converted to JSON Schema.',
  slot_invalid: 'A slot, or what a tool writes to it, is not valid.',
  slot_taken: 'Two slots of an agent have the same name.',
  sub_agents_invalid: 'The options of subAgents() are not valid.',
  tool_invalid: 'The definition of a tool is not valid.',

  // Calls of a session or an engine
  child_session: 'The session belongs to a sub-agent; only its parent can start turns in it.',
  empty_input: 'The input has no text and no file.',
  invalid_id: 'A tenant, user, session or turn id has a form that is not allowed.',
  invalid_option: 'A method was given an option that is not valid or not known.',
  no_compaction: 'The agent has no compaction capability.',
  not_parked: 'No turn of the session is paused or parked, so there is none to release.',
  session_erased: 'The session was erased meanwhile.',
  session_busy: 'A turn of the session is running or waiting. Try again, queue the input, or interrupt the turn.',
  shutting_down: 'The process is stopping. Open turns are kept and resumed at the next start.',
  turn_held: 'Another process holds the turn and does not respond; the turn is resumed when its lease ends.',
  turn_conflict: 'The turn id was used for another input in this session.',
  unknown_agent: 'There is no agent with this name.',
  unknown_model: 'The agent has no model of this id.',
  unknown_session: 'The session does not exist, or has no messages.',
  unknown_turn: 'The session has no turn with this id.',

  // Approvals, rules and results of external calls
  approval_expired: 'The time to decide on the approval has run out.',
  approval_forbidden: 'The principal may not decide on this approval, or not with a rule of this scope.',
  approval_resolved: 'The approval has been decided already.',
  arguments_denied: 'The edited arguments of an approval are denied by a rule.',
  arguments_invalid: 'The edited arguments of an approval do not fit the tool.',
  call_resolved: 'The result of the external call has been stored already.',
  decision_invalid: 'A decision is malformed. Nothing was decided.',
  result_forbidden: 'The principal may not store the result of this external call.',
  resume_invalid: 'A run does not answer what its thread waits for.',
  rule_invalid: 'A permission rule is not valid, or can never match.',
  unknown_approval: 'No approval of this id waits in the session.',
  unknown_call: 'No external call of this id waits in the session.',
  signal_forbidden: 'The principal may not send signals to this turn.',
  signal_limit: 'Too many signals wait for the turn to receive them.',
  unknown_rule: 'There is no remembered rule with this id.',

  // Why a turn failed
  budget_exceeded: 'The turn has used up its budget of tokens, money, tool calls or agents.',
  context_full: 'The conversation does not fit the window of the model, although it was compacted.',
  empty_reply: 'The model gave an empty answer twice.',
  internal_error: 'An unexpected error; the log has the details under the reference.',
  output_invalid: 'The answer does not fit the requested schema.',
  principal_revoked: 'The principal of the turn may no longer act.',
  recovery_limit: 'The turn was parked after too many recoveries without progress. Release it to resume.',
  state_timeout: 'The turn stayed in one state for longer than its limit.',

  // Why the signal of a tool fired
  claim_lost: 'Another worker has claimed the turn.',
  failure: 'The turn has failed.',
  interrupt: 'The turn was interrupted.',
  shutdown: 'The process is stopping; the turn stays open for the next start.',

  // Why a tool call did not succeed
  answer_cut: 'The answer that asked for the call was cut off or filtered, so the call did not run.',
  denied: 'A rule, a person or a mode denied the call.',
  invalid_arguments: 'The arguments of the call do not fit the tool.',
  outcome_unknown: 'The call was sent, and whether it took effect is not known. It is not repeated.',
  steps_changed: 'A durable tool has other steps than when its call began; what it had done took effect.',
  timed_out: 'The tool did not finish within its time limit.',
  tool_error: 'The tool failed; its message says why, or names the reference under which the log does.',
  tool_given_up: 'The tool failed too often in this turn and is no longer offered.',
  tools_not_offered: 'Tools are no longer available in this turn.',
  unknown_tool: 'The agent has no tool of this name.',

  // Row filters
  row_condition_invalid: 'A condition of the data scope names a column or an operator that is not supported.',
  row_scope_invalid: 'A condition of the data scope cannot be expressed in SQL.',
  row_scope_unresolved: 'The data scope refers to departments that identity does not name.',

  // Models
  auth: 'The provider rejected the credentials.',
  cancelled: 'The model call was cancelled.',
  context_overflow: 'The request is longer than the window of the model.',
  first_byte_timeout: 'The provider sent nothing within the time limit.',
  idle_timeout: 'Nothing arrived for longer than the time limit.',
  invalid_request: 'The request is not valid.',
  overloaded: 'The provider is overloaded, or its circuit breaker is open.',
  provider_error: 'The provider failed, or sent an answer that cannot be read.',
  rate_limited: 'The provider limits the rate of requests.',
  stream_cut: 'The connection to the provider ended before the answer did.',
  total_timeout: 'The call or the turn took longer than its time limit.',

  // Storage
  backup_invalid: 'A backup is damaged, incomplete, of a newer version, or its file exists already.',
  store_conflict: 'The target of a transfer holds other data under the same names.',
  backend_closed: 'The back end is closed.',
  invalid_append: 'An append has no events, or its sequence numbers have a gap.',
  invalid_key: 'A name contains NUL or lone surrogates.',
  journal_corrupt: 'A stored journal is damaged. Restore a backup.',
  journal_incomplete: 'Events that were acknowledged are missing at the end of the store.',
  journal_newer: 'The session was written by a newer version of Oxbow.',
  storage_busy: 'The store is locked by another process, or too many writers compete. Try again.',
  storage_displaced: 'The files of the store were deleted or replaced while in use.',
  storage_error: 'The store cannot be read or written.',
  storage_foreign: 'The file is a database of another program.',
  storage_full: 'The disk is full.',
  storage_newer: 'The store was written by a newer version of Oxbow.',
  storage_readonly: 'The store cannot be written.',

  // Agents below an agent
  child_cancelled: 'The sub-agent was cancelled.',
  child_cut: 'The answer of the sub-agent was truncated.',
  child_depth: 'The maximum depth of sub-agents is reached.',
  child_empty: 'The sub-agent ended without an answer.',
  child_failed: 'The turn of the sub-agent failed.',
  child_limit: 'The task has reached its maximum number of sub-agents.',
  child_max_steps: 'The sub-agent reached its step limit before it was done.',
  child_refused: 'The model of the sub-agent refused the task.',
  unknown_child: 'The session has not started a sub-agent with this id.',

  // Agents of other services
  remote_cancelled: 'The task of the remote agent was stopped.',
  remote_depth: 'The maximum depth of remote agents is reached.',
  remote_empty: 'The remote agent ended without an answer.',
  remote_failed: 'The task of the remote agent failed.',
  remote_lost: 'The remote agent no longer has the task.',
  remote_no_stream: 'The remote agent does not stream events.',
  remote_refused: 'The remote agent refused the request.',
  remote_unreachable: 'The remote agent cannot be reached, or the connection broke.',

  // MCP
  mcp_closed: 'The connection to the MCP server is closed.',
  mcp_forbidden_address: 'The MCP server names an address that may not be used.',
  mcp_no_answer: 'The MCP server did not answer; the tool only reads, so the call can be repeated.',
  mcp_refused: 'The MCP server refused the request.',
  mcp_stdio_refused: 'MCP servers that are programs may not be started here.',
  mcp_too_long: 'The MCP server sent a message that is too long.',
  mcp_tool_error: 'The tool of the MCP server failed; its message says why.',
  mcp_tool_gone: 'The MCP server no longer offers the tool.',
  mcp_unauthorized: 'The MCP server rejected the credentials.',
  mcp_unreachable: 'The MCP server cannot be reached.',

  // The service and the command line
  access_withdrawn: 'The reader of a stream may no longer read it.',
  cannot_listen: 'The service cannot listen on its address.',
  identity_missing: 'The service would listen on a public address without identity.',
  identity_unavailable: 'The credentials cannot be checked at the moment.',
  invalid_data_scope: 'The data scope of an API key is not valid.',
  invalid_expiry: 'The expiry of an API key is not valid.',
  labels_invalid: 'A file of labelled questions cannot be read.',
  no_index: 'There is no knowledge index at this path.',
  no_store: 'There is no store at this path.',
  options_invalid: 'The options of a command contradict each other or are not valid.',
  paused: 'The turn was paused by a person. Release it to resume.',
} as const

export type ErrorCode = keyof typeof CODES

/** Whether a stored code is one of this version: journals of other versions may hold others. */
export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(CODES, code)

/**
 * An error for callers. `message` is safe to show and says what to do; `details` and `cause` are for the log.
 * `retryable`: the same call may succeed later. `code` is one of `CODES`.
 *
 * @example
 * try {
 *   await session.run('Hello', { whenBusy: 'refuse' })
 * } catch (error) {
 *   if (error instanceof OxbowError && error.code === 'session_busy') await session.interrupt()
 *   else throw error
 * }
 */
export class OxbowError extends Error {
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly details: Readonly<Record<string, unknown>> | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: { retryable?: boolean; details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'OxbowError'
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details
  }
}

/**
 * A failure of a tool, in words for the model. Of any other error that a tool throws the model, the journal and the
 * user see only a reference; the error itself goes to `onError`.
 *
 * @example throw new ToolError(`There is no order ${id}. Ask for the number on the invoice.`)
 */
export class ToolError extends OxbowError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super('tool_error', message, options)
    this.name = 'ToolError'
  }
}

/**
 * The error of a stored failure. A code that this version does not know becomes `internal_error`; `details.code` keeps
 * it.
 *
 * @example throw errorFrom(event.error, { turnId: event.turnId })
 */
export function errorFrom(
  failure: { readonly code: string; readonly message: string; readonly retryable?: boolean | undefined },
  details: Record<string, unknown> = {},
): OxbowError {
  const { code, message, retryable = false } = failure
  return isErrorCode(code)
    ? new OxbowError(code, message, { retryable, details })
    : new OxbowError('internal_error', message, { retryable, details: { ...details, code } })
}

/** The codes of a `ModelError`. */
export type ModelErrorCode = Extract<
  ErrorCode,
  | 'auth'
  | 'rate_limited'
  | 'context_overflow'
  | 'overloaded'
  | 'invalid_request'
  | 'stream_cut'
  | 'first_byte_timeout'
  | 'idle_timeout'
  | 'total_timeout'
  | 'provider_error'
  | 'cancelled'
>

// The failures that end users see. The full error is in the log, under the reference.
import { type ErrorCode, OxbowError, type TurnResult } from '@oxbow/core'
import { isErrorCode } from '@oxbow/core/internal'

export type RunErrorCode = 'TIMEOUT_ERROR' | 'INTERRUPTED_ERROR' | 'INVALID_INPUT_ERROR' | 'INTERNAL_ERROR'

export interface ShownFailure {
  readonly runError: RunErrorCode
  readonly status: number
  readonly code: string
  readonly message: string
  readonly reference: string | undefined
}

/**
 * The source of the message for the caller: this table, or the error itself when its message is written for the caller.
 */
type Answer = readonly [RunErrorCode, status: number, message: string] | { readonly refused: number }

const TIMEOUT: Answer = ['TIMEOUT_ERROR', 504, 'The answer took too long and was stopped. Try again.']
const BUSY: Answer = ['INTERNAL_ERROR', 503, 'The language model is busy. Try again in a moment.']
const MODEL_FAILED: Answer = ['INTERNAL_ERROR', 502, 'The language model could not answer. Try again later.']
const TOO_LONG: Answer = [
  'INVALID_INPUT_ERROR',
  422,
  'The conversation has become too long for the language model. Start a new one.',
]
const UNAVAILABLE: Answer = [
  'INTERNAL_ERROR',
  503,
  'The conversation cannot be read or written at the moment. Try again later.',
]
/** The store stays unusable until its operator acts: retrying does not help. */
const NEEDS_OPERATOR: Answer = [
  'INTERNAL_ERROR',
  503,
  'The conversation cannot be read or written until the operator of this service has repaired or upgraded it.',
]
/**
 * Mistakes of the program that embeds Oxbow, and failures inside a call that only the model sees. No caller can fix
 * them.
 */
const INTERNAL: readonly [RunErrorCode, number, string] = [
  'INTERNAL_ERROR',
  500,
  'Something went wrong while answering.',
]
/** Errors of the command line, or from before the service listens. */
const NO_REQUEST = INTERNAL

/** Sent to a stream's reader whose access was withdrawn. */
export const WITHDRAWN = 'You no longer have access to this. Sign in again, and reconnect from the last id to read on.'

/** The failure for each code. The compiler requires a row for every new code. */
const ANSWERS: Readonly<Record<ErrorCode, Answer>> = {
  // Definitions
  agent_invalid: INTERNAL,
  agent_file_invalid: INTERNAL,
  approval_invalid: INTERNAL,
  compaction_invalid: INTERNAL,
  config_invalid: INTERNAL,
  engine_invalid: INTERNAL,
  mcp_invalid: INTERNAL,
  middleware_invalid: INTERNAL,
  model_config: INTERNAL,
  package_missing: INTERNAL,
  row_columns_invalid: INTERNAL,
  schema_invalid: INTERNAL,
  schema_unsupported: INTERNAL,
  slot_invalid: INTERNAL,
  slot_taken: INTERNAL,
  sub_agents_invalid: INTERNAL,
  tool_invalid: INTERNAL,

  // Session and engine operations
  child_session: { refused: 409 },
  empty_input: { refused: 400 },
  invalid_id: { refused: 400 },
  invalid_option: { refused: 400 },
  no_compaction: { refused: 409 },
  not_parked: { refused: 409 },
  session_busy: { refused: 409 },
  shutting_down: [
    'INTERRUPTED_ERROR',
    503,
    'The service is stopping. The turn is kept and resumed when the service is back; send the same request again to read it.',
  ],
  turn_held: UNAVAILABLE,
  turn_conflict: { refused: 409 },
  unknown_agent: INTERNAL,
  unknown_model: { refused: 400 },
  unknown_session: { refused: 404 },
  unknown_turn: { refused: 404 },

  // Approvals, rules and results of external calls
  approval_expired: { refused: 409 },
  approval_forbidden: { refused: 403 },
  approval_resolved: { refused: 409 },
  arguments_denied: { refused: 403 },
  arguments_invalid: { refused: 400 },
  call_resolved: { refused: 409 },
  decision_invalid: { refused: 400 },
  result_forbidden: { refused: 403 },
  session_erased: { refused: 410 },
  signal_forbidden: { refused: 403 },
  signal_limit: { refused: 429 },
  resume_invalid: { refused: 400 },
  rule_invalid: { refused: 400 },
  unknown_approval: { refused: 404 },
  unknown_call: { refused: 404 },
  unknown_rule: { refused: 404 },

  // Reasons why a turn failed
  budget_exceeded: ['INTERRUPTED_ERROR', 409, 'The turn was stopped, because its budget is used up.'],
  context_full: TOO_LONG,
  empty_reply: MODEL_FAILED,
  internal_error: INTERNAL,
  output_invalid: MODEL_FAILED,
  principal_revoked: [
    'INTERRUPTED_ERROR',
    403,
    'The turn was stopped, because its user may no longer act. Sign in again.',
  ],
  recovery_limit: [
    'INTERNAL_ERROR',
    503,
    'The turn was parked after too many interruptions. Release it to resume it: ' +
      'POST /api/sessions/{sessionId}/release, or "oxbow sessions release".',
  ],
  state_timeout: TIMEOUT,

  // Reasons of a tool's abort signal
  claim_lost: INTERNAL,
  failure: INTERNAL,
  interrupt: INTERNAL,
  shutdown: INTERNAL,

  // Reasons why a tool call did not succeed
  answer_cut: INTERNAL,
  denied: INTERNAL,
  invalid_arguments: INTERNAL,
  outcome_unknown: INTERNAL,
  steps_changed: INTERNAL,
  backup_invalid: NO_REQUEST,
  store_conflict: NO_REQUEST,
  timed_out: INTERNAL,
  tool_error: INTERNAL,
  tool_given_up: INTERNAL,
  tools_not_offered: INTERNAL,
  unknown_tool: INTERNAL,

  // Row filters
  row_condition_invalid: INTERNAL,
  row_scope_invalid: INTERNAL,
  row_scope_unresolved: INTERNAL,

  // Models
  auth: MODEL_FAILED,
  cancelled: ['INTERRUPTED_ERROR', 409, 'The turn was stopped before it was complete. Text written so far is kept.'],
  context_overflow: TOO_LONG,
  first_byte_timeout: TIMEOUT,
  idle_timeout: TIMEOUT,
  invalid_request: MODEL_FAILED,
  overloaded: BUSY,
  provider_error: MODEL_FAILED,
  rate_limited: BUSY,
  stream_cut: MODEL_FAILED,
  total_timeout: TIMEOUT,

  // Storage
  backend_closed: UNAVAILABLE,
  invalid_append: INTERNAL,
  invalid_key: INTERNAL,
  journal_corrupt: [
    'INTERNAL_ERROR',
    503,
    'The stored conversation is damaged, and trying again will not help. Contact the operator of this service.',
  ],
  journal_incomplete: NEEDS_OPERATOR,
  journal_newer: NEEDS_OPERATOR,
  storage_busy: UNAVAILABLE,
  storage_displaced: NEEDS_OPERATOR,
  storage_error: UNAVAILABLE,
  storage_foreign: NEEDS_OPERATOR,
  storage_full: UNAVAILABLE,
  storage_newer: NEEDS_OPERATOR,
  storage_readonly: NEEDS_OPERATOR,

  // Sub-agents
  child_cancelled: INTERNAL,
  child_cut: INTERNAL,
  child_depth: INTERNAL,
  child_empty: INTERNAL,
  child_failed: INTERNAL,
  child_limit: INTERNAL,
  child_max_steps: INTERNAL,
  child_refused: INTERNAL,
  unknown_child: INTERNAL,

  // Remote agents
  remote_cancelled: INTERNAL,
  remote_depth: INTERNAL,
  remote_empty: INTERNAL,
  remote_failed: INTERNAL,
  remote_lost: INTERNAL,
  remote_no_stream: INTERNAL,
  remote_refused: INTERNAL,
  remote_unreachable: INTERNAL,

  // MCP
  mcp_closed: INTERNAL,
  mcp_forbidden_address: INTERNAL,
  mcp_no_answer: INTERNAL,
  mcp_refused: INTERNAL,
  mcp_stdio_refused: INTERNAL,
  mcp_too_long: INTERNAL,
  mcp_tool_error: INTERNAL,
  mcp_tool_gone: INTERNAL,
  mcp_unauthorized: INTERNAL,
  mcp_unreachable: INTERNAL,

  // Service and command line
  access_withdrawn: ['INTERRUPTED_ERROR', 401, WITHDRAWN],
  cannot_listen: NO_REQUEST,
  identity_missing: NO_REQUEST,
  identity_unavailable: ['INTERNAL_ERROR', 503, 'Permissions cannot be checked at the moment. Try again in a moment.'],
  invalid_data_scope: NO_REQUEST,
  invalid_expiry: NO_REQUEST,
  labels_invalid: NO_REQUEST,
  no_index: NO_REQUEST,
  no_store: NO_REQUEST,
  options_invalid: NO_REQUEST,
  paused: [
    'INTERRUPTED_ERROR',
    409,
    'The turn was paused. Release it to resume it (POST /api/sessions/{sessionId}/release), then send the same request again.',
  ],
}

/** The failure for the code of a turn or an error. An unknown code counts as an internal error. */
export function failureOf(code: string, reference?: string): ShownFailure {
  const answer = isErrorCode(code) ? ANSWERS[code] : undefined
  // A refusal has its message only in the error, so the code alone gives a generic failure.
  const shown = answer === undefined || 'refused' in answer ? INTERNAL : answer
  const [runError, status, message] = shown
  return { runError, status, code: shown === INTERNAL ? 'internal_error' : shownCode(code), message, reference }
}

/**
 * The provider's `invalid_request` is not the caller's: in an answer of this service that code means something else.
 */
const shownCode = (code: string): string => (code === 'invalid_request' ? 'provider_error' : code)

/** The reason of a stop by the service itself. */
export const CLIENT_LEFT = 'the client left'

/** The failure of a stopped turn. A client that reconnects must learn that its own disconnect stopped the turn. */
export const failureOfStop = (reason: string): ShownFailure =>
  reason === CLIENT_LEFT
    ? {
        ...failureOf('cancelled'),
        message:
          'The turn was stopped because its last reader disconnected (server.onDisconnect). Text written so far is kept; ' +
          'send the message again with a new id.',
      }
    : failureOf('cancelled')

/** Finish reasons with which an empty answer is complete. */
const COMPLETE: ReadonlySet<string> = new Set(['completed', 'stopped'])

const WHY_EMPTY: Readonly<Record<string, string>> = {
  max_steps: 'The agent reached its limit of steps without an answer. Ask for less at a time, or raise maxSteps.',
  length: 'The language model reached its output limit before it had written an answer. Ask for less at a time.',
  refusal: 'The language model refused to answer this message.',
  filtered: 'The provider of the language model filtered the answer to this message.',
}

/** A turn that finished without an answer is not a success on any surface. */
export function failureOfResult({
  status,
  reason,
  text,
  output,
}: Pick<TurnResult, 'status' | 'reason' | 'text' | 'output'>): ShownFailure | undefined {
  if (status !== 'finished' || COMPLETE.has(reason) || text.trim() !== '' || output !== undefined) return undefined
  const message = WHY_EMPTY[reason] ?? 'The language model gave no answer to this message.'
  return { runError: 'INTERNAL_ERROR', status: 422, code: reason, message, reference: undefined }
}

/** The calls with unknown outcome; undefined when there are none. */
export function unknownCalls({ calls }: Pick<TurnResult, 'calls'>): UnknownCall[] | undefined {
  const unknown = calls.filter((it) => it.status === 'unknown').map(({ callId, tool }) => ({ callId, tool }))
  return unknown.length === 0 ? undefined : unknown
}

export interface UnknownCall {
  readonly callId: string
  readonly tool: string
}

/** The failure for a thrown error. `log` is called, and returns a reference, when the caller must not see the error. */
export function failureOfError(error: unknown, log: (error: unknown) => string): ShownFailure {
  if (!(error instanceof OxbowError)) return failureOf('internal_error', log(error))
  const { code, message } = error
  const answer = ANSWERS[code]
  if ('refused' in answer)
    return { runError: 'INVALID_INPUT_ERROR', status: answer.refused, code, message, reference: undefined }
  if (code === 'shutting_down') return failureOf(code)
  // Most failures of a turn are logged where they occurred.
  const known = error.details?.reference
  return failureOf(code, typeof known === 'string' ? known : log(error))
}

/** The message, with the reference if there is one. */
export const sentence = ({ message, reference }: ShownFailure): string =>
  reference === undefined ? message : `${message} (Reference: ${reference})`

/** The exit codes of `oxbow`; scripts rely on them. */
export const EXIT = {
  ok: 0,
  /** The turn failed, or an unexpected error occurred. */
  failed: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
  /** The model's provider failed: key, limits, network, overload. */
  model: 3,
  /** The turn was cancelled or timed out. */
  stopped: 4,
  /** The turn is waiting: for an approval, an external result, or a release after too many recoveries. */
  waiting: 5,
  /** The turn finished, but a call was interrupted and its outcome is unknown. */
  unknown: 6,
  /** Interrupted by Ctrl-C. */
  interrupted: 130,
} as const

const MODEL_CODES = new Set([
  'auth',
  'rate_limited',
  'context_overflow',
  'context_full',
  'overloaded',
  'invalid_request',
  'stream_cut',
  'first_byte_timeout',
  'provider_error',
  'empty_reply',
])
const USAGE_CODES = new Set([
  'config_invalid',
  'rule_invalid',
  'compaction_invalid',
  'model_config',
  'invalid_id',
  'identity_missing',
  'invalid_data_scope',
  'invalid_expiry',
  'empty_input',
  'labels_invalid',
  'options_invalid',
  'no_index',
  'unknown_agent',
  'agent_invalid',
  'agent_file_invalid',
  'sub_agents_invalid',
])

export function exitCodeOf(code: string | undefined): number {
  if (code === undefined) return EXIT.failed
  if (MODEL_CODES.has(code)) return EXIT.model
  if (USAGE_CODES.has(code)) return EXIT.usage
  if (code === 'total_timeout' || code === 'idle_timeout') return EXIT.stopped
  return EXIT.failed
}

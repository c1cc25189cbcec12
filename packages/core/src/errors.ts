/** An error for callers: `message` is safe to show and names the fix; `details` and `cause` are for the log. */
export class OxbowError extends Error {
  readonly code: string
  readonly retryable: boolean
  readonly details: Readonly<Record<string, unknown>> | undefined

  constructor(
    code: string,
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

export type ModelErrorCode =
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

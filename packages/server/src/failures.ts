// What an end user is told when something failed. The full error is in the log, under the reference.
import { OxbowError } from '@oxbow/core'

export type RunErrorCode = 'TIMEOUT_ERROR' | 'INTERRUPTED_ERROR' | 'INVALID_INPUT_ERROR' | 'INTERNAL_ERROR'

export interface Failure {
  readonly runError: RunErrorCode
  readonly status: number
  readonly code: string
  readonly message: string
  readonly reference: string | undefined
}

interface Told {
  readonly runError: RunErrorCode
  readonly status: number
  readonly message: string
}

const timeout: Told = {
  runError: 'TIMEOUT_ERROR',
  status: 504,
  message: 'The answer took too long and was stopped. Try again.',
}
const busy: Told = {
  runError: 'INTERNAL_ERROR',
  status: 503,
  message: 'The language model is busy. Try again in a moment.',
}
const modelFailed: Told = {
  runError: 'INTERNAL_ERROR',
  status: 502,
  message: 'The language model could not answer. Try again later.',
}
const tooLong: Told = {
  runError: 'INVALID_INPUT_ERROR',
  status: 422,
  message: 'The conversation has become too long for the language model. Start a new one.',
}
const unavailable: Told = {
  runError: 'INTERNAL_ERROR',
  status: 503,
  message: 'The conversation cannot be read or written at the moment. Try again later.',
}
const damaged: Told = {
  runError: 'INTERNAL_ERROR',
  status: 503,
  message: 'The stored conversation is damaged, and trying again will not help. Tell whoever runs this service.',
}
const internal: Told = {
  runError: 'INTERNAL_ERROR',
  status: 500,
  message: 'Something went wrong while answering.',
}

/** To whoever reads a stream and has lost the right to. */
export const WITHDRAWN =
  'You may not read this any more. Sign in again; what is stored can be read from where the stream ended.'

const byCode: Readonly<Record<string, Told>> = {
  total_timeout: timeout,
  idle_timeout: timeout,
  first_byte_timeout: timeout,
  rate_limited: busy,
  overloaded: busy,
  auth: modelFailed,
  invalid_request: modelFailed,
  stream_cut: modelFailed,
  provider_error: modelFailed,
  empty_reply: modelFailed,
  output_invalid: modelFailed,
  journal_corrupt: damaged,
  context_overflow: tooLong,
  context_full: tooLong,
  cancelled: {
    runError: 'INTERRUPTED_ERROR',
    status: 409,
    message: 'The turn was stopped before it was complete. What had been said is kept.',
  },
  shutting_down: {
    runError: 'INTERRUPTED_ERROR',
    status: 503,
    message:
      'The service is stopping. The turn is kept and continues when the service is back; the same request takes it up again.',
  },
  access_withdrawn: {
    runError: 'INTERRUPTED_ERROR',
    status: 401,
    message: WITHDRAWN,
  },
  paused: {
    runError: 'INTERRUPTED_ERROR',
    status: 409,
    message:
      'The turn was paused by hand. It goes on when it is released (POST /api/sessions/{sessionId}/release); the same request takes it up again.',
  },
  recovery_limit: {
    runError: 'INTERNAL_ERROR',
    status: 503,
    message:
      'The turn was set aside after it had been broken off too often. It goes on when it is released: ' +
      'POST /api/sessions/{sessionId}/release, or "oxbow sessions release".',
  },
}

/** Refusals of core that are the caller's doing; their messages are written for the caller. */
const refusals: Readonly<Record<string, number>> = {
  invalid_id: 400,
  empty_input: 400,
  session_busy: 409,
  turn_conflict: 409,
  child_session: 409,
  rule_invalid: 400,
  decision_invalid: 400,
  arguments_invalid: 400,
  arguments_denied: 403,
  resume_invalid: 400,
  approval_forbidden: 403,
  result_forbidden: 403,
  unknown_call: 404,
  unknown_approval: 404,
  call_resolved: 409,
  not_parked: 409,
  approval_resolved: 409,
  approval_expired: 409,
}

/** By the code that a turn or an error carries. */
export function failureOf(code: string, reference?: string): Failure {
  const told = byCode[code] ?? (/^(storage|journal)_/.test(code) ? unavailable : internal)
  return { ...told, code: byCode[code] === undefined && told === internal ? 'internal_error' : code, reference }
}

/** Why the service itself stops a turn. */
export const CLIENT_LEFT = 'the client left'

/** Of a turn that was stopped. Who comes back must learn that it was their own leaving. */
export const failureOfStop = (reason: string): Failure =>
  reason === CLIENT_LEFT
    ? {
        ...failureOf('cancelled'),
        message:
          'The turn was stopped because everybody who waited for it had left (server.onDisconnect). What had been said is kept; ' +
          'send the message again with a new id.',
      }
    : failureOf('cancelled')

/** By an error that was thrown. `log` is called with a reference when the caller must not see the error itself. */
export function failureOfError(error: unknown, log: (error: unknown) => string): Failure {
  if (!(error instanceof OxbowError)) return failureOf('internal_error', log(error))
  const status = refusals[error.code]
  if (status !== undefined)
    return { runError: 'INVALID_INPUT_ERROR', status, code: error.code, message: error.message, reference: undefined }
  if (error.code === 'shutting_down') return failureOf(error.code)
  // Most failures of a turn have been logged where they happened.
  const known = error.details?.reference
  return failureOf(error.code, typeof known === 'string' ? known : log(error))
}

/** With the reference, where there is one. */
export const sentence = ({ message, reference }: Failure): string =>
  reference === undefined ? message : `${message} (Reference: ${reference})`

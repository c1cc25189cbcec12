// Error answers: {error: {code, message, reference?}}.
import { defined } from '@oxbow/core/internal'
import { type ShownFailure, sentence, WITHDRAWN } from '../failures.ts'

export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly reference?: string }
}

/** Thrown by handlers, and sent as the answer. `message` is for the caller. */
export class HttpError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.name = 'HttpError'
    this.status = status
    this.code = code
    this.headers = headers
  }
}

export const errorBody = (code: string, message: string, reference?: string): ErrorBody => ({
  error: { code, message, ...defined({ reference }) },
})

/** The last frame of a task's stream whose reader lost access. */
export const withdrawnBody = (): ErrorBody => errorBody('access_withdrawn', WITHDRAWN)

export const failureResponse = (failure: ShownFailure): Response =>
  Response.json(errorBody(failure.code, sentence(failure), failure.reference), {
    status: failure.status,
    headers: failure.status === 503 ? { 'retry-after': '5' } : {},
  })

export const errorResponse = (error: HttpError): Response =>
  Response.json(errorBody(error.code, error.message), { status: error.status, headers: error.headers })

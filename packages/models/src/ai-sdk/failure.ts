// An error that an AI SDK provider throws or streams, as a ModelError. The SDK's own errors hold the whole request and
// so the conversation; no Oxbow error keeps them.
import { ModelError, type ModelReply } from '@oxbow/core'
import {
  bodyError,
  clean,
  type ErrorContext,
  frameError,
  httpError,
  networkError,
} from '../failures/provider-errors.ts'
import { scrubbedError } from '../failures/secrets.ts'
import { cutError } from '../wire/answer.ts'

/** The fields of SDK errors that are read here; any may be missing. */
interface SdkError {
  readonly name?: unknown
  readonly message?: unknown
  readonly cause?: unknown
  readonly url?: unknown
  readonly statusCode?: unknown
  readonly responseHeaders?: unknown
  readonly responseBody?: unknown
  readonly type?: unknown
  readonly code?: unknown
  readonly text?: unknown
}

interface Failing {
  readonly context: ErrorContext
  readonly partial: { readonly partial?: ModelReply }
  /** The provider's stream had begun. */
  readonly streaming: boolean
}

export function sdkFailure(thrown: unknown, { context, partial, streaming }: Failing): ModelError {
  if (thrown instanceof ModelError) return thrown
  const error = (typeof thrown === 'object' && thrown !== null ? thrown : { message: thrown }) as SdkError
  const name = String(error.name ?? '').replace(/^AI_/, '')
  const at = typeof error.url === 'string' && URL.canParse(error.url) ? { ...context, baseUrl: error.url } : context
  switch (name) {
    case 'APICallError':
      return callFailure(error, { context: at, partial, streaming })
    case 'LoadAPIKeyError':
    case 'LoadSettingError':
      return new ModelError('auth', `${context.provider} cannot be called. ${clean(context, String(error.message))}`)
    case 'UnsupportedFunctionalityError':
    case 'InvalidPromptError':
    case 'InvalidArgumentError':
    case 'NoSuchModelError':
      return new ModelError(
        'invalid_request',
        `The package of ${context.provider} refused the request. Provider message: ${clean(context, String(error.message))}`,
      )
    case 'JSONParseError':
    case 'TypeValidationError': {
      const text = typeof error.text === 'string' ? error.text : ''
      return bodyError(context, text, 'Part of its stream could not be read. Try again.', {
        retryable: true,
        ...partial,
      })
    }
    case 'EmptyResponseBodyError':
      return cutError(context, partial)
  }
  // A provider's error object inside its stream.
  if (!(thrown instanceof Error)) return frameError(context, frameOf(error), partial)
  if (streaming) return cutError(context, partial, thrown)
  return new ModelError('provider_error', `The package of ${context.provider} failed (${thrown.name}).`, {
    cause: scrubbedError(context.scrub, thrown),
  })
}

function callFailure(error: SdkError, { context, partial, streaming }: Failing): ModelError {
  const { statusCode: status, responseBody, responseHeaders, cause } = error
  if (typeof status !== 'number') {
    return streaming ? cutError(context, partial, cause) : networkError(context, cause ?? new Error('no answer'))
  }
  const body = typeof responseBody === 'string' ? responseBody : ''
  // The headers were fine but the body was not: it was cut, or it is another format.
  if (status < 400) {
    return body === '' ? cutError(context, partial, cause) : bodyError(context, body, 'Check the base URL.', partial)
  }
  const headers = (responseHeaders ?? {}) as Readonly<Record<string, string | undefined>>
  return httpError(context, { status, header: (name) => headers[name] }, body)
}

const frameOf = ({ message, type, code, statusCode }: SdkError): object => ({
  message,
  type: [type, code].filter((it) => typeof it === 'string').join(' '),
  code: statusCode ?? code,
})

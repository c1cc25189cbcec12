// What went wrong at a provider, as a ModelError: a typed code, a message that is safe to show and names the fix, and
// the provider's own message, clipped, in `details`.
import { ModelError, type ModelReply } from '@oxbow/core'
import { classify, type FailureVerdict } from './classify.ts'
import { retryAfterOf } from './retry-after.ts'
import { addressOf, type Scrub, scrubbedError } from './secrets.ts'

export interface ErrorContext {
  readonly provider: string
  readonly model: string
  readonly baseUrl: string
  /** The path that the driver adds to the base URL, and the name of its format. */
  readonly path: string
  readonly format: string
  /** Removes secrets that a provider echoes. */
  readonly scrub: Scrub
  /** The environment variable that holds the key, if known. */
  readonly keyVariable?: string | undefined
}

/** The response headers, as far as errors need them. */
export interface ErrorHead {
  readonly status: number
  /** By lower-case name. */
  header(name: string): string | undefined
}

/** An answer with a status of 400 or more. */
export function httpError(context: ErrorContext, { status, header }: ErrorHead, body: string): ModelError {
  const error = parseError(body)
  return build(context, status, error, {
    retryAfterMs: retryAfterOf(header, body, error.message),
    requestId: header('x-request-id') ?? header('request-id') ?? error.requestId,
    body,
  })
}

/** An error object inside an answer with status 200. */
export function frameError(
  context: ErrorContext,
  error: unknown,
  partial: { readonly partial?: ModelReply },
): ModelError {
  const body = JSON.stringify(typeof error === 'string' ? { error: { message: error } } : { error })
  const parsed = parseError(body)
  const retryAfterMs = retryAfterOf(() => undefined, body, parsed.message)
  return build(context, parsed.status, parsed, { ...partial, body, requestId: parsed.requestId, retryAfterMs })
}

/** An answer with status 200 that is neither a stream nor a document: some providers and gateways send errors so. */
export function wordsError(context: ErrorContext, words: string): ModelError {
  const text = words.trim()
  const error = { message: text, type: '', status: undefined, requestId: undefined }
  const verdict = classify({ status: undefined, text, body: text })
  if (verdict.code !== 'provider_error') return build(context, undefined, error, { body: text })
  const said = clean(context, text)
  return new ModelError(
    'stream_cut',
    `${context.provider} sent plain text instead of an answer. Try again. Provider message: ${said}`,
    {
      retryable: true,
      details: { body: clip(context.scrub(text), 2000), said },
    },
  )
}

/** `fetch` failed before an answer came. */
export function networkError(context: ErrorContext, cause: unknown): ModelError {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  // The code is safe to show; the message may hold the address and secrets in it.
  const { code, name } = (inner ?? {}) as { readonly code?: unknown; readonly name?: unknown }
  const reason = typeof code === 'string' ? code : String(name)
  return new ModelError(
    'provider_error',
    `Could not reach ${context.provider} at ${addressOf(context.baseUrl)} (${reason}). Check the base URL and the network.`,
    { retryable: true, cause: scrubbedError(context.scrub, cause) },
  )
}

/** The endpoint redirected the request. `location` as received, relative or not. */
export function redirectError(context: ErrorContext, status: number, location: string | null): ModelError {
  const from = `${context.baseUrl.replace(/\/+$/, '')}${context.path}`
  const to = location !== null && URL.canParse(location, from) ? addressOf(new URL(location, from).href) : undefined
  const where =
    to === undefined
      ? 'elsewhere'
      : `to ${clip(context.scrub(to.endsWith(context.path) ? to.slice(0, to.length - context.path.length) : to), 300)}`
  return new ModelError(
    'invalid_request',
    `${context.provider} redirects ${addressOf(context.baseUrl)} ${where}. Redirects are not followed. Set the base URL to the right address.`,
    { status, details: { at: 'address' } },
  )
}

/** The body, or a frame of it, is not in this format. */
export function bodyError(
  context: ErrorContext,
  body: string,
  hint: string,
  options: { readonly retryable?: boolean; readonly partial?: ModelReply } = {},
): ModelError {
  const message = `${context.provider} did not answer in the format of ${context.format}. ${hint}`
  return new ModelError('provider_error', message, { details: { body: clip(context.scrub(body), 2000) }, ...options })
}

export function nativeFormatError(context: ErrorContext): ModelError {
  return new ModelError(
    'invalid_request',
    `${context.provider} answered in DashScope's own format, which is not supported. ` +
      'Use its OpenAI-compatible base URL: https://dashscope.aliyuncs.com/compatible-mode/v1',
  )
}

/** The answer holds only tools that the provider runs itself, or that need its own client. */
export function unreadError(
  context: ErrorContext,
  kinds: readonly string[],
  partial: { readonly partial?: ModelReply },
): ModelError {
  const message =
    `${context.provider} answered with nothing but ${[...new Set(kinds)].join(', ')}, which cannot be read here. ` +
    "Take the tools that make it out of the model's options."
  return new ModelError('invalid_request', message, partial)
}

interface ParsedError {
  readonly message: string
  readonly type: string
  readonly status: number | undefined
  readonly requestId: string | undefined
}

/** Reads the providers' error shapes: `{error: {…}}`, `{error: "…"}`, `{message, code}`, `{detail}`. */
function parseError(body: string): ParsedError {
  let root: Record<string, unknown> = {}
  try {
    const parsed: unknown = JSON.parse(body)
    const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed
    if (typeof first === 'object' && first !== null) root = first as Record<string, unknown>
  } catch {
    // Plain text or a web page: nothing to take out of it.
  }
  const nested = root.error ?? root
  const error = (typeof nested === 'object' && nested !== null ? nested : { message: nested }) as Record<
    string,
    unknown
  >
  const words = [error.message, error.msg, error.status_msg, error.detail, root.message, root.detail]
  const message = words.find((word) => typeof word === 'string' && word !== '')
  const codes = [error.code, error.type, error.status]
  const status = [error.code, error.status, error.status_code, root.status].map(Number).find((n) => n >= 400 && n < 600)
  const requestId = root.request_id ?? error.request_id
  return {
    message: (message as string | undefined) ?? '',
    type: codes.filter((code) => typeof code === 'string').join(' '),
    status,
    requestId: typeof requestId === 'string' ? requestId : undefined,
  }
}

function build(
  context: ErrorContext,
  status: number | undefined,
  error: ParsedError,
  extra: {
    readonly retryAfterMs?: number | undefined
    readonly requestId?: string | undefined
    readonly body: string
    readonly partial?: ModelReply
  },
): ModelError {
  const text = `${error.type} ${error.message}`
  const verdict = classify({ status, text, body: extra.body })
  const { code, retryable, at } = verdict
  const said = clean(context, at === 'key' ? withoutKeys(error.message) : error.message)
  const saying = said === '' ? '' : ` Provider message: ${said}`
  return new ModelError(code, advice(context, verdict, status, extra.retryAfterMs) + saying, {
    retryable,
    details: {
      body: clip(context.scrub(extra.body), 2000),
      // Also in a field of its own: logs may omit the provider's message, which may quote the conversation.
      ...(said === '' ? {} : { said }),
      ...(at && { at }),
      ...(extra.requestId === undefined ? {} : { requestId: context.scrub(extra.requestId) }),
    },
    ...(status === undefined ? {} : { status }),
    ...(extra.retryAfterMs === undefined ? {} : { retryAfterMs: extra.retryAfterMs }),
    ...(extra.partial === undefined ? {} : { partial: extra.partial }),
  })
}

function advice(
  context: ErrorContext,
  { code, retryable, at }: FailureVerdict,
  status: number | undefined,
  retryAfterMs: number | undefined,
): string {
  const { provider, model } = context
  const http = status === undefined ? '' : ` (HTTP ${status})`
  switch (at) {
    case 'key':
      return `${provider} refused the API key${http}. Check ${context.keyVariable ?? 'the key'} and that it may use ${model}.`
    case 'account':
      return status === 402
        ? `The account at ${provider} has no credit left${http}. Top it up.`
        : `The account at ${provider} has no quota left${http}. Check its plan and billing.`
    case 'model':
      return code === 'auth'
        ? `The account at ${provider} may not use ${model}${http}. Request access, or choose another model.`
        : `${provider} has no model ${model} at ${addressOf(context.baseUrl)}${http}. Check the model's name and the base URL.`
    case 'region':
      return `${provider} does not serve this country or region${http}. Use another provider, or one of its other addresses.`
    case 'content':
      return `${provider} blocked the request for its content${http}. Change the content, or use another model.`
    case 'proxy':
      return `A proxy or firewall in front of ${provider} refused the request${http}. Check HTTPS_PROXY, NO_PROXY and the network's rules.`
    case 'output':
      return `${model} wrote a tool call that ${provider} could not parse${http}. Try again.`
  }
  switch (code) {
    case 'rate_limited':
      return `${provider} limits the rate of requests${http}. ${waitOf(retryAfterMs)} and try again, or ask for a higher limit.`
    case 'overloaded':
      return `${provider} is overloaded${http}. Try again in a moment.`
    case 'context_overflow':
      return `The conversation is longer than ${model} can read${http}. Shorten it.`
    case 'invalid_request':
      return `${provider} refused the request${http}. Check the options of the model.`
    default:
      return `${provider} failed${http}. ${retryable ? 'Try again.' : 'Check the base URL and any proxy in between.'}`
  }
}

const waitOf = (ms: number | undefined): string =>
  ms === undefined || ms < 1 ? 'Wait' : `Wait ${ms < 1_000 ? `${ms} ms` : `${Math.ceil(ms / 1_000)} s`}`

/** Providers echo a wrong key with stars in it, or show another key. */
const withoutKeys = (text: string): string =>
  text.replace(/\S*\*{2,}\S*|\b(?:sk|pk|gsk|xai|key)-[\w-]+/gi, (key) => `[key]${/[.,;]$/.exec(key)?.[0] ?? ''}`)

const clip = (text: string, length: number): string => {
  const line = text.trim()
  return line.length <= length ? line : `${line.slice(0, length)}…`
}

/** The provider's message, short and without secrets. */
export const clean = (context: ErrorContext, text: string): string => clip(context.scrub(text), 300)

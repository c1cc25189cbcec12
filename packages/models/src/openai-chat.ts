// The driver for the wire format that most providers speak: OpenAI chat completions, streamed.
import { type Model, OxbowError } from '@oxbow/core'
import { defaultLimits, exchange, type Limits } from './chat-exchange.ts'
import { assembleReply } from './chat-reply.ts'
import { chatRequestWriter } from './chat-request.ts'
import type { Timeouts } from './clock.ts'
import type { Quirks } from './quirks.ts'

export interface OpenAiChatOptions {
  /** Default `provider:model`. */
  readonly id?: string
  readonly provider: string
  readonly model: string
  /** Up to and without `/chat/completions`, for example `https://api.openai.com/v1`. */
  readonly baseUrl: string
  readonly apiKey?: string | undefined
  /** The environment variable that the key came from; error messages name it. */
  readonly keyVariable?: string | undefined
  /** Sent with each request; they win over the driver's own. */
  readonly headers?: Readonly<Record<string, string>>
  readonly quirks?: Quirks
  readonly timeouts?: Timeouts
  readonly limits?: Limits
  readonly fetch?: typeof globalThis.fetch
}

/**
 * A model behind an OpenAI-compatible chat-completions endpoint. Throws an `OxbowError` with code `model_config` when
 * the address or the key cannot be right.
 *
 * `generate` rejects with a `ModelError` only: `auth`, `rate_limited` (with `retryAfterMs` where the provider tells),
 * `overloaded`, `context_overflow`, `invalid_request`, `provider_error`, `stream_cut`, `first_byte_timeout`,
 * `idle_timeout`, `total_timeout` and `cancelled`. From the first fragment on its `partial` holds what had come.
 *
 * @example
 * const model = openaiChat({ provider: 'openai', model: 'gpt-5', baseUrl: 'https://api.openai.com/v1', apiKey })
 * const reply = await model.generate(request, { signal, onDelta: (delta) => console.log(delta) })
 */
export function openaiChat(options: OpenAiChatOptions): Model {
  const { provider, model, baseUrl, apiKey, keyVariable, quirks = {}, timeouts = {} } = options
  const limits = { ...defaultLimits, ...options.limits }
  if (!URL.canParse(baseUrl)) {
    throw new OxbowError('model_config', `The base URL of ${provider} is not a URL. It must look like https://host/v1`)
  }
  if (new URL(baseUrl).username !== '') {
    throw new OxbowError('model_config', `The base URL of ${provider} holds a password. Send it as a header instead.`)
  }
  // `fetch` refuses such a header with a message that shows the key.
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
    const name = keyVariable ?? `the key of ${provider}`
    throw new OxbowError('model_config', `Check ${name}: it is empty, or has spaces or letters that no key has.`)
  }
  const own = Object.entries(options.headers ?? {})
  for (const [header, value] of own) {
    if (isHeader(header, value)) continue
    throw new OxbowError('model_config', `The header ${JSON.stringify(header)} for ${provider} is not valid.`)
  }
  const secrets = secretsOf(apiKey, own)
  const endpoint = {
    context: { provider, model, baseUrl, secrets, keyVariable },
    url: `${baseUrl.replace(/\/+$/, '')}/chat/completions`,
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...options.headers,
    },
    timeouts,
    limits,
    fetch: options.fetch,
  }
  const writeRequest = chatRequestWriter(model, quirks)
  return {
    id: options.id ?? `${provider}:${model}`,
    generate: async (request, { signal, onDelta }) =>
      exchange(endpoint, writeRequest(request), assembleReply(request, model, quirks, onDelta, limits.calls), signal),
  }
}

function isHeader(name: string, value: string): boolean {
  try {
    new Headers([[name, value]])
    return true
  } catch {
    return false
  }
}

/** Any header may hold a secret: its value, the part after `Bearer`, and both as they stand in JSON. Longer ones first. */
function secretsOf(apiKey: string | undefined, headers: readonly [string, string][]): string[] {
  const values = headers.flatMap(([, value]) => [value.trim(), ...value.split(/\s+/)]).filter((it) => it.length >= 8)
  const all = [...(apiKey === undefined ? [] : [apiKey]), ...values]
  const escaped = all.map((it) => JSON.stringify(it).slice(1, -1))
  return [...new Set([...all, ...escaped])].sort((a, b) => b.length - a.length)
}

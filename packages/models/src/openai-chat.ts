// The driver for the wire format that most providers speak: OpenAI chat completions, streamed.
import { type FinishReason, type Model, ModelError, type ModelReply, OxbowError } from '@oxbow/core'
import { assembleReply, type WireFrame } from './chat-reply.ts'
import { chatRequestWriter } from './chat-request.ts'
import { startClock, type TimeoutCode, type Timeouts } from './clock.ts'
import {
  bodyError,
  type ErrorContext,
  frameError,
  httpError,
  nativeFormatError,
  networkError,
} from './provider-errors.ts'
import type { Quirks } from './quirks.ts'
import { sseReader } from './sse.ts'

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
  readonly fetch?: typeof globalThis.fetch
}

/** After the reason to end came, so long is waited for the figures and the end of the stream. */
const closingMs = 5_000

/**
 * A model behind an OpenAI-compatible chat-completions endpoint.
 *
 * Rejects with a `ModelError` only: `auth`, `rate_limited` (with `retryAfterMs` where the provider tells), `overloaded`,
 * `context_overflow`, `invalid_request`, `provider_error`, `stream_cut`, `first_byte_timeout`, `idle_timeout`,
 * `total_timeout` and `cancelled`; from the first fragment on its `partial` holds what had come.
 *
 * @example
 * const model = openaiChat({ provider: 'openai', model: 'gpt-5', baseUrl: 'https://api.openai.com/v1', apiKey })
 * const reply = await model.generate(request, { signal, onDelta: (delta) => console.log(delta) })
 */
export function openaiChat(options: OpenAiChatOptions): Model {
  const { provider, model, apiKey, quirks = {}, timeouts = {} } = options
  if (!URL.canParse(options.baseUrl)) {
    throw new OxbowError('model_config', `The base URL of ${provider} is not a URL. It must look like https://host/v1`)
  }
  const url = `${options.baseUrl.replace(/\/+$/, '')}/chat/completions`
  const context: ErrorContext = { provider, model, baseUrl: options.baseUrl, apiKey, keyVariable: options.keyVariable }
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    ...options.headers,
  }
  const writeRequest = chatRequestWriter(model, quirks)

  return {
    id: options.id ?? `${provider}:${model}`,
    generate: (request, { signal, onDelta }) =>
      new Promise<ModelReply>((resolve, reject) => {
        const abort = new AbortController()
        const assembler = assembleReply(request, model, quirks, onDelta)
        let settled = false
        let refusal: { status: number; headers: Headers } | undefined

        const settle = () => {
          settled = true
          clock.stop()
          signal.removeEventListener('abort', cancel)
        }
        const succeed = () => {
          if (settled) return
          settle()
          resolve(assembler.reply())
        }
        const fail = (error: ModelError) => {
          if (settled) return
          settle()
          reject(error)
          abort.abort()
        }
        const partial = (finishReason: FinishReason = 'error') => assembler.reply(finishReason)
        /** Nothing more will come: with a reason to end the answer is whole, without one it is cut. */
        const ended = (error: () => ModelError) => (assembler.complete ? succeed() : fail(error()))
        const cancel = () =>
          fail(new ModelError('cancelled', 'The model call was cancelled.', { partial: partial('cancelled') }))
        const clock = startClock(timeouts, (code, limitMs) => {
          if (refusal) fail(httpError(context, refusal.status, refusal.headers, ''))
          else {
            ended(() => timeoutError(context, code, limitMs, partial()))
            abort.abort()
          }
        })

        const frame = (value: WireFrame) => {
          clock.progress()
          const wasComplete = assembler.complete
          const fault = assembler.frame(value)
          if (fault)
            fail(fault.type === 'native' ? nativeFormatError(context) : frameError(context, fault.error, partial()))
          else if (assembler.complete && !wasComplete) clock.closing(closingMs)
        }
        const data = (text: string) => {
          if (settled) return
          if (text === '[DONE]') return succeed()
          // What is no object is a gateway's sign of life; a broken object is a lost piece of the answer.
          if (text.charCodeAt(0) !== 123) return
          let value: WireFrame
          try {
            value = JSON.parse(text)
          } catch {
            return fail(bodyError(context, text, 'A frame of its stream was no JSON. Try again.', partial()))
          }
          frame(value)
        }

        const run = async () => {
          const response = await (options.fetch ?? fetch)(url, {
            method: 'POST',
            headers,
            body: writeRequest(request),
            signal: abort.signal,
          })
          if (!response.ok) {
            refusal = { status: response.status, headers: response.headers }
            return fail(httpError(context, response.status, response.headers, await response.text()))
          }
          if (!response.body) return fail(bodyError(context, '', 'The answer was empty.'))
          await readBody(response.body.getReader())
        }

        const readBody = async (reader: ReadableStreamDefaultReader<Uint8Array>) => {
          const sse = sseReader(data)
          let first = true
          while (!settled) {
            const { done, value } = await reader.read()
            if (settled) break
            if (done) {
              const unclosed = sse.end()
              if (unclosed === '[DONE]' || isJson(unclosed)) data(unclosed!)
              return ended(() => cutError(context, partial()))
            }
            if (first) {
              clock.firstByte()
              first = false
              const kind = firstCharacter(value)
              if (kind === '{' || kind === '<' || kind === '[') return whole(value, reader)
            }
            sse.push(value)
          }
          drain(reader, abort)
        }

        /** The body is no event stream but one document. */
        const whole = async (start: Uint8Array, reader: ReadableStreamDefaultReader<Uint8Array>) => {
          const text = await readRest(start, reader)
          let value: WireFrame
          try {
            value = JSON.parse(text)
          } catch {
            const page = text.trimStart().startsWith('<')
            return fail(
              bodyError(
                context,
                text,
                page ? 'It sent a web page: check the base URL.' : 'It sent broken JSON. Try again.',
              ),
            )
          }
          frame(value)
          if (assembler.complete) succeed()
          else if (Array.isArray(value.choices) && value.choices.length > 0) succeed()
          else fail(bodyError(context, text, 'Check the base URL.'))
        }

        if (signal.aborted) return cancel()
        signal.addEventListener('abort', cancel)
        run().catch((error: unknown) => {
          if (settled) return
          ended(() => (isCut(error) ? cutError(context, partial(), error) : networkError(context, error)))
        })
      }),
  }
}

const isJson = (text: string | undefined): boolean => {
  try {
    JSON.parse(text ?? '')
    return true
  } catch {
    return false
  }
}

/** undici says `terminated` when the connection breaks in the midst of a body. */
const isCut = (error: unknown): boolean => error instanceof TypeError && error.message === 'terminated'

function cutError(context: ErrorContext, partial: ModelReply, cause?: unknown): ModelError {
  return new ModelError('stream_cut', `The answer of ${context.provider} broke off before its end. Try again.`, {
    retryable: true,
    partial,
    ...(cause === undefined ? {} : { cause }),
  })
}

function timeoutError(context: ErrorContext, code: TimeoutCode, limitMs: number, partial: ModelReply): ModelError {
  const what = {
    first_byte_timeout: 'sent nothing',
    idle_timeout: 'sent nothing more',
    total_timeout: 'did not finish',
  }[code]
  return new ModelError(code, `${context.provider} ${what} within ${limitMs} ms. Try again, or raise the limit.`, {
    retryable: true,
    partial,
  })
}

/** The first character after a byte order mark and white space; event streams never begin with a bracket. */
function firstCharacter(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes.subarray(0, 64)).trimStart().charAt(0)
}

async function readRest(start: Uint8Array, reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  const parts = [decoder.decode(start, { stream: true })]
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    parts.push(decoder.decode(value, { stream: true }))
  }
  parts.push(decoder.decode())
  return parts.join('')
}

/** Reads a stream to its end after `[DONE]`, so that the connection can be used again; gives it a second for that. */
function drain(reader: ReadableStreamDefaultReader<Uint8Array>, abort: AbortController): void {
  const timer = setTimeout(() => abort.abort(), 1_000)
  timer.unref()
  const next = (): Promise<void> => reader.read().then(({ done }) => (done ? undefined : next()))
  next()
    .catch(() => {})
    .finally(() => clearTimeout(timer))
}

// Any AI SDK language model as an Oxbow model, through its specification and without the SDK itself: retries, timeouts
// and errors are the same as in the built-in drivers.
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { type Model, type ModelCallOptions, type ModelReply, type ModelRequest, OxbowError } from '@oxbow/core'
import { type Fields, listOf, object, text } from '@oxbow/core/internal'
import { checkModelOptions, limitFields, timeoutFields } from '../check-options.ts'
import { type ErrorContext, redirectError } from '../failures/provider-errors.ts'
import { scrubber } from '../failures/secrets.ts'
import { namingTools } from '../failures/tool-errors.ts'
import { offerable } from '../requests/dialect.ts'
import { sortedByName } from '../requests/write.ts'
import { checkLimits, cutError, defaultLimits, type Limits, limitError, startAnswer } from '../wire/answer.ts'
import { checkTimeouts, type Timeouts } from '../wire/clock.ts'
import { checkAddress, withOptions } from '../wire/endpoint.ts'
import { sdkFailure } from './failure.ts'
import { promptWriter, type SupportedUrls } from './prompt.ts'
import { assembleParts, isForeignResult } from './reply.ts'
import type { AiSdkModel } from './sdk-model-type.ts'

export interface AiSdkOptions {
  /** Call options of the specification for every request; a request's own options win. */
  readonly options?: Readonly<Record<string, unknown>>
  /**
   * Default: the provider's name up to its first dot, a colon and the model's name, for example `google:gemini-3-pro`.
   */
  readonly id?: string
  readonly timeouts?: Timeouts
  /** `answerBytes` counts the characters of text and arguments; the bytes stay inside the provider's package. */
  readonly limits?: Limits
  /** Keys and passwords given to the provider: errors never show them. */
  readonly secrets?: readonly string[]
}

const FIELDS: Fields<AiSdkOptions> = {
  options: object,
  id: text,
  timeouts: timeoutFields,
  limits: limitFields,
  secrets: listOf(text),
}

/**
 * A model from an AI SDK provider package (`ai` 7, specification v4), for providers without a built-in driver. The
 * `options` of a request are the call options of the specification (`topP`, `seed`, `providerOptions` …).
 *
 * Metadata that the provider wants back with a part of its answer, such as Gemini's thought signatures, is kept as the
 * blocks' `signature` and sent back to the same model only. `generate` rejects with the errors of `openaiChat`. Throws
 * an `OxbowError` with code `model_config` for a model of another version of the specification.
 *
 * @example
 * import { createGoogle } from '@ai-sdk/google'
 * const model = aiSdk(createGoogle({ apiKey })('gemini-3-pro-preview'))
 */
export function aiSdk(model: AiSdkModel, options: AiSdkOptions = {}): Model {
  if (model?.specificationVersion !== 'v4') {
    throw new OxbowError(
      'model_config',
      `aiSdk() needs a language model of specification v4; got ${JSON.stringify(model?.specificationVersion)}. ` +
        'Install the provider package version that belongs to version 7 of the package ai.',
    )
  }
  checkModelOptions('aiSdk()', options, FIELDS)
  const provider = options.id?.split(':')[0] ?? model.provider.split('.')[0] ?? model.provider
  const id = options.id ?? `${provider}:${model.modelId}`
  return sdkModel({ ...options, id, provider, model: model.modelId, load: async () => model })
}

export interface SdkModelOptions extends AiSdkOptions {
  readonly id: string
  readonly provider: string
  readonly model: string
  readonly baseUrl?: string
  readonly apiKey?: string | undefined
  readonly keyVariable?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly fetch?: typeof globalThis.fetch
  /** Called with the first request. The `fetch` passed to it does not follow redirects. */
  readonly load: (fetch: typeof globalThis.fetch) => Promise<AiSdkModel>
}

export function sdkModel(options: SdkModelOptions): Model {
  const { id, provider, model, baseUrl = '', keyVariable, headers, load, timeouts = {} } = options
  if (baseUrl !== '') checkAddress(provider, baseUrl)
  checkTimeouts(provider, timeouts)
  checkLimits(provider, options.limits ?? {})
  const always = headers === undefined ? options.options : { headers, ...options.options }
  const limits = { ...defaultLimits, ...options.limits }
  const context: ErrorContext = {
    provider,
    model,
    baseUrl,
    path: '',
    format: `the package of ${provider}`,
    scrub: scrubber({ keys: [options.apiKey, ...(options.secrets ?? [])], headers, baseUrl }),
    keyVariable,
  }
  let ready: Promise<Ready> | undefined
  const prepare = async (): Promise<Ready> => {
    const sdk = (await load(withoutRedirects(context, options.fetch))) as LanguageModelV4
    return { sdk, write: promptWriter(id, (await sdk.supportedUrls) as SupportedUrls) }
  }

  const generate = (request: ModelRequest, { signal, onDelta }: ModelCallOptions): Promise<ModelReply> => {
    const abort = new AbortController()
    const assembler = assembleParts(request, model, onDelta, limits.calls)
    const answer = startAnswer({ context, timeouts, limits, assembler, signal, abort: () => abort.abort() })
    if (answer.settled) return answer.reply
    const { clock, frame, fail, ended, partial } = answer
    let streaming = false

    const run = async () => {
      ready ??= prepare()
      const { sdk, write } = await ready
      // Raw parts are signs of life for providers that buffer their output.
      const call = { ...write(withOptions(request, always)), includeRawChunks: true, abortSignal: abort.signal }
      if (answer.settled) return
      const { stream } = await sdk.doStream(call)
      streaming = true
      const reader = stream.getReader()
      let first = true
      let characters = 0
      while (!answer.settled) {
        const { done, value: part } = await reader.read()
        if (answer.settled) break
        if (done) return ended(() => cutError(context, partial()))
        if (part.type === 'stream-start' || part.type === 'response-metadata') {
          // They are made from the response headers, or by the package itself.
          assembler.frame(part)
          continue
        }
        if (first) clock.firstByte()
        first = false
        if (assembler.ended || (part.type === 'error' && isForeignResult(part.error))) continue
        if (part.type === 'error')
          return ended(() => sdkFailure(part.error, { context, partial: partial(), streaming }))
        if ('delta' in part) characters += part.delta.length
        if (characters > limits.answerBytes) return fail(limitError(context, limits, 'answerBytes', partial()))
        frame(part)
      }
      await reader.cancel()
    }

    run().catch((error: unknown) => {
      // A failed load is retried with the next request.
      if (!streaming) ready = undefined
      ended(() => sdkFailure(error, { context, partial: partial(), streaming }))
      abort.abort()
    })
    return namingTools(answer.reply, offerable(sortedByName(request.tools), id))
  }
  return { id, checkTools: (tools) => void offerable(tools, id), generate }
}

/** Following a redirect would send the conversation to any host it names. */
const withoutRedirects =
  (context: ErrorContext, own: typeof globalThis.fetch = fetch): typeof globalThis.fetch =>
  async (input, init) => {
    const response = await own(input, { ...init, redirect: 'manual' })
    if (response.status < 300 || response.status >= 400) return response
    throw redirectError(context, response.status, response.headers.get('location'))
  }

interface Ready {
  readonly sdk: LanguageModelV4
  readonly write: ReturnType<typeof promptWriter>
}

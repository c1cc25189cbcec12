// Embeddings in OpenAI's format, which most providers and servers support.
import { anyText, anything, fieldsOf, oneOf } from '@oxbow/core/internal'
import { checkRetry, type RetryOptions } from '../around/retry.ts'
import { COUNT, checkNumbers } from '../check-numbers.ts'
import { retryFields } from '../check-options.ts'
import { bodyError } from '../failures/provider-errors.ts'
import { type DriverOptions, endpointOf, type Format } from '../wire/endpoint.ts'
import { jsonBearer, postJson } from '../wire/post.ts'
import { type BatchLimits, embedInBatches } from './batches.ts'
import type { EmbeddingModel } from './embedder.ts'
import { vectorsOf, type WireEmbedding } from './vectors.ts'

export interface EmbeddingsOptions extends DriverOptions {
  /** The dimensions of a vector. Default: the model's own. */
  readonly dimensions?: number
  readonly retry?: RetryOptions
  /** Concurrent requests. Default 4. */
  readonly concurrency?: number
}

export interface OpenAiEmbeddingsOptions extends EmbeddingsOptions {
  /** The encoding of vectors. `base64` is a quarter of the bytes where the server supports it. Default `float`. */
  readonly encoding?: 'float' | 'base64'
  /** Texts in one request. Providers allow from 10 (DashScope) to 2,048 (OpenAI). Default 100. */
  readonly batchTexts?: number
  /** Tokens of one request, by estimate. Default 100,000. */
  readonly batchTokens?: number
  /** A prefix for each text of a kind, for models trained with one, for example `query: `. Default: none. */
  readonly prefixes?: { readonly query?: string; readonly document?: string }
}

const format: Format = {
  of: 'openaiEmbeddings()',
  name: "OpenAI's embeddings",
  path: '/embeddings',
  headers: jsonBearer,
}

/**
 * Embeddings by `POST /embeddings`. Requests are split by number and size and retried where that can help; texts that
 * are too long together are sent in smaller batches. Throws an `OxbowError` with code `model_config` when the address
 * or the key is invalid.
 *
 * @example
 * const embedder = openaiEmbeddings({
 *   provider: 'openai', model: 'text-embedding-3-small', baseUrl: 'https://api.openai.com/v1', apiKey, dimensions: 512,
 * })
 * const { vectors } = await embedder.embed(['How do I cancel?'], { kind: 'query' })
 */
export function openaiEmbeddings(options: OpenAiEmbeddingsOptions): EmbeddingModel {
  const endpoint = endpointOf(options, format, {
    ...embeddingFields,
    encoding: oneOf('float', 'base64'),
    batchTexts: anything,
    batchTokens: anything,
    prefixes: fieldsOf({ query: anyText, document: anyText }),
  })
  const { model, dimensions, retry, encoding = 'float', prefixes = {} } = options
  const { batchTexts = 100, batchTokens = 100_000, concurrency = 4 } = options
  checkEmbedding(options)
  const limits: BatchLimits = { texts: batchTexts, tokens: batchTokens, concurrency }
  const { context } = endpoint
  return {
    id: embeddingModelId(options),
    ...(dimensions === undefined ? {} : { dimensions }),
    embed: async (texts, { kind = 'document', signal } = {}) => {
      const prefix = prefixes[kind] ?? ''
      return embedInBatches(texts, {
        context,
        limits,
        retry,
        signal,
        ask: async (texts, signal) => {
          const input = texts.map((text) => prefix + text)
          const body = { model, input, encoding_format: encoding, ...(dimensions === undefined ? {} : { dimensions }) }
          const answer = (await postJson(endpoint, body, signal)) as {
            readonly data?: unknown
            readonly usage?: unknown
          }
          if (!Array.isArray(answer.data)) throw bodyError(context, JSON.stringify(answer), 'Check the base URL.')
          const entries = answer.data as readonly WireEmbedding[]
          return { vectors: vectorsOf(context, entries, texts.length, dimensions), usage: answer.usage }
        },
      })
    },
  }
}

export const embeddingFields = { dimensions: anything, retry: retryFields, concurrency: anything }

/** @throws OxbowError `model_config` */
export function checkEmbedding(options: OpenAiEmbeddingsOptions): void {
  const { provider, dimensions, concurrency, batchTexts, batchTokens, retry } = options
  const of = `The embeddings of ${provider}`
  checkNumbers(of, {
    dimensions: [dimensions, COUNT],
    concurrency: [concurrency, COUNT],
    batchTexts: [batchTexts, COUNT],
    batchTokens: [batchTokens, COUNT],
  })
  checkRetry(of, retry)
}

/** Vectors of another length are not comparable. */
export const embeddingModelId = ({ id, provider, model, dimensions }: EmbeddingsOptions): string =>
  id ?? `${provider}:${model}${dimensions === undefined ? '' : `@${dimensions}`}`

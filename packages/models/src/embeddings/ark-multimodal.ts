// Embeddings of Volcengine Ark's multimodal models, whose endpoint makes one vector of the whole request.

import { bodyError } from '../failures/provider-errors.ts'
import { endpointOf, type Format } from '../wire/endpoint.ts'
import { jsonBearer, postJson } from '../wire/post.ts'
import { embedInBatches } from './batches.ts'
import type { EmbeddingModel } from './embedder.ts'
import { checkEmbedding, type EmbeddingsOptions, embeddingFields, embeddingModelId } from './openai-embeddings.ts'
import { vectorsOf, type WireEmbedding } from './vectors.ts'

const format: Format = {
  of: 'arkMultimodal()',
  name: "Ark's multimodal embeddings",
  path: '/embeddings/multimodal',
  headers: jsonBearer,
}

/**
 * Embeddings by `POST /embeddings/multimodal`, one request per text. Models from `doubao-embedding-vision-250615` on
 * make vectors of 1,024 or 2,048 dimensions. Throws an `OxbowError` with code `model_config` when the address or the
 * key is invalid.
 *
 * @example
 * const embedder = arkMultimodal({
 *   provider: 'ark', model: 'doubao-embedding-vision-250615', apiKey,
 *   baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
 * })
 */
export function arkMultimodal(options: EmbeddingsOptions): EmbeddingModel {
  const endpoint = endpointOf(options, format, embeddingFields)
  const { model, dimensions, retry, concurrency = 4 } = options
  checkEmbedding(options)
  const { context } = endpoint
  const limits = { texts: 1, tokens: Number.POSITIVE_INFINITY, concurrency }
  return {
    id: embeddingModelId(options),
    ...(dimensions === undefined ? {} : { dimensions }),
    embed: async (texts, { signal } = {}) =>
      embedInBatches(texts, {
        context,
        limits,
        retry,
        signal,
        ask: async ([text], signal) => {
          const input = [{ type: 'text', text }]
          const body = { model, input, encoding_format: 'float', ...(dimensions === undefined ? {} : { dimensions }) }
          const answer = (await postJson(endpoint, body, signal)) as {
            readonly data?: unknown
            readonly usage?: unknown
          }
          const { data } = answer
          // Older versions wrap the entry in a list.
          const entry = (Array.isArray(data) && data.length === 1 ? data[0] : data) as WireEmbedding | null | undefined
          if (entry?.embedding === undefined) throw bodyError(context, JSON.stringify(answer), 'Check the base URL.')
          return { vectors: vectorsOf(context, [{ embedding: entry.embedding }], 1, dimensions), usage: answer.usage }
        },
      }),
  }
}

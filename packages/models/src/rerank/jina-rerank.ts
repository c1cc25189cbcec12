// Passages in order of relevance, by the format of Jina, Cohere, SiliconFlow and vLLM.
import { estimateTokens, ModelError, noUsage, type Usage } from '@oxbow/core'
import { anything, tokenCount } from '@oxbow/core/internal'
import { checkRetry, type RetryOptions, retrying } from '../around/retry.ts'
import { COUNT, checkNumbers } from '../check-numbers.ts'
import { retryFields } from '../check-options.ts'
import { bodyError, type ErrorContext } from '../failures/provider-errors.ts'
import { type DriverOptions, endpointOf, type Format } from '../wire/endpoint.ts'
import { jsonBearer, postJson } from '../wire/post.ts'

export interface RerankModel {
  readonly id: string
  /**
   * The best of `documents` for `query`, best first. `topN`: how many, default all of them. Rejects with a
   * `ModelError`; where one document is the cause, its index is in `details.index`.
   */
  rerank(
    query: string,
    documents: readonly string[],
    options?: { readonly topN?: number; readonly signal?: AbortSignal },
  ): Promise<Reranking>
}

export interface Reranking {
  readonly results: readonly Ranked[]
  readonly usage: Usage
}

export interface Ranked {
  /** The index among the given documents. */
  readonly index: number
  /** The higher the better; only comparable within one answer. */
  readonly score: number
}

export interface RerankOptions extends DriverOptions {
  readonly retry?: RetryOptions
  /** Longer lists are refused before they are sent. Default 1,000. */
  readonly maxDocuments?: number
}

const format: Format = { of: 'jinaRerank()', name: "Jina's rerank", path: '/rerank', headers: jsonBearer }

/**
 * A reranker behind `POST /rerank`. Base URLs: `https://api.jina.ai/v1`, `https://api.cohere.com/v2`,
 * `https://api.siliconflow.cn/v1`, or your own server. Throws an `OxbowError` with code `model_config` when the address
 * or the key is invalid.
 *
 * @example
 * const reranker = jinaRerank({
 *   provider: 'jina', model: 'jina-reranker-v3', baseUrl: 'https://api.jina.ai/v1', apiKey,
 * })
 * const { results } = await reranker.rerank('How do I cancel?', passages, { topN: 5 })
 */
export function jinaRerank(options: RerankOptions): RerankModel {
  const endpoint = endpointOf(options, format, { retry: retryFields, maxDocuments: anything })
  const { provider, model, retry, maxDocuments = 1_000 } = options
  checkNumbers(`The reranker of ${provider}`, { maxDocuments: [maxDocuments, COUNT] })
  checkRetry(`The reranker of ${provider}`, retry)
  return {
    id: options.id ?? `${provider}:${model}`,
    async rerank(query, documents, { topN = documents.length, signal = new AbortController().signal } = {}) {
      check(query, documents, topN, maxDocuments)
      if (documents.length === 0) return { results: [], usage: noUsage }
      const count = Math.min(topN, documents.length)
      const ask = async () => {
        const answer = await postJson(endpoint, { model, query, documents, top_n: count }, signal)
        return { results: resultsOf(endpoint.context, answer, documents.length, count), answer }
      }
      const { results, answer } = await retrying(ask, { signal, ...(retry && { retry }) })
      return { results, usage: usageOf(answer, [query, ...documents]) }
    },
  }
}

function check(query: string, documents: readonly string[], topN: number, maxDocuments: number): void {
  if (query.trim() === '') throw new ModelError('invalid_request', 'The query is empty. Pass a non-empty query.')
  if (!Number.isInteger(topN) || (topN < 1 && documents.length > 0)) {
    throw new ModelError('invalid_request', `topN must be a whole number of at least 1: got ${topN}.`)
  }
  if (documents.length > maxDocuments) {
    const message = `${documents.length} documents are more than ${maxDocuments}. Retrieve fewer, or raise maxDocuments.`
    throw new ModelError('invalid_request', message)
  }
  const index = documents.findIndex((document) => document.trim() === '')
  if (index !== -1) {
    throw new ModelError('invalid_request', `Document ${index} is empty. Leave it out.`, { details: { index } })
  }
}

function resultsOf(context: ErrorContext, answer: object, documents: number, count: number): Ranked[] {
  const { results } = answer as { readonly results?: unknown }
  if (!Array.isArray(results)) throw bodyError(context, JSON.stringify(answer), 'Check the base URL.')
  const wrong = (what: string) =>
    new ModelError('provider_error', `${context.provider} sent ${what}. Try again.`, { retryable: true })
  if (results.length !== count) throw wrong(`${results.length} results where ${count} were expected`)
  const seen = new Set<unknown>()
  const ranked = results.map((result): Ranked => {
    const { index, relevance_score: score } = (result ?? {}) as Record<string, unknown>
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= documents) {
      throw wrong(`a result for the document ${JSON.stringify(index)} of ${documents}`)
    }
    if (seen.size === seen.add(index).size) throw wrong(`two results for the document ${index}`)
    if (typeof score !== 'number' || !Number.isFinite(score)) throw wrong('a score that is not a number')
    return { index: index as number, score }
  })
  return ranked.sort((a, b) => b.score - a.score)
}

function usageOf(answer: object, texts: readonly string[]): Usage {
  const { usage, meta } = answer as {
    readonly usage?: { readonly total_tokens?: unknown } | null
    readonly meta?: { readonly tokens?: { readonly input_tokens?: unknown } | null } | null
  }
  const told = tokenCount(usage?.total_tokens ?? meta?.tokens?.input_tokens)
  if (told > 0) return { ...noUsage, inputTokens: told }
  return { ...noUsage, inputTokens: texts.reduce((sum, text) => sum + estimateTokens(text), 0), estimated: true }
}

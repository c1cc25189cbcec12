// Reranking over real HTTP: the requests, and that each score belongs to its document.
import { describe, expect, test } from 'vitest'
import { type Service, type ServiceAnswer, service } from '../service.fixture.ts'
import { jinaRerank, type RerankOptions } from './jina-rerank.ts'

const retry = { baseMs: 1, maxMs: 50 }
const rerankerAt = ({ url }: Service, options: Partial<RerankOptions> = {}) =>
  jinaRerank({
    provider: 'jina',
    model: 'jina-reranker-v3',
    baseUrl: `${url}/v1`,
    apiKey: 'jina-secret',
    retry,
    ...options,
  })

const documents = ['short', 'a longer one', 'mid one']
/** Scores by length. */
const ranked = ({ body }: { readonly body: { documents: string[]; top_n: number } }): ServiceAnswer => ({
  body: {
    model: 'jina-reranker-v3',
    usage: { total_tokens: 40 },
    results: body.documents
      .map((text, index) => ({ index, relevance_score: text.length / 100, document: { text } }))
      .sort((a, b) => b.relevance_score - a.relevance_score)
      .slice(0, body.top_n),
  },
})

test('the best come first, with their indexes and cost', async () => {
  const server = await service(ranked)
  const reranker = rerankerAt(server)
  expect(reranker.id).toBe('jina:jina-reranker-v3')
  expect(await reranker.rerank('long', documents, { topN: 2 })).toMatchObject({
    results: [
      { index: 1, score: 0.12 },
      { index: 2, score: 0.07 },
    ],
    usage: { inputTokens: 40, estimated: false },
  })
  expect(server.requests).toEqual([
    {
      path: '/v1/rerank',
      headers: expect.objectContaining({ authorization: 'Bearer jina-secret', accept: 'application/json' }),
      body: { model: 'jina-reranker-v3', query: 'long', documents, top_n: 2 },
    },
  ])
})

test('topN defaults to all and is capped at the document count; nothing is sent for no documents', async () => {
  const server = await service(ranked)
  expect((await rerankerAt(server).rerank('long', documents)).results).toHaveLength(3)
  expect((await rerankerAt(server).rerank('long', documents, { topN: 9 })).results).toHaveLength(3)
  expect(server.requests.map(({ body }) => body.top_n)).toEqual([3, 3])
  expect(await rerankerAt(server).rerank('long', [])).toMatchObject({ results: [] })
  expect(server.requests).toHaveLength(2)
})

test('results are sorted; Cohere’s usage counts, and missing usage is estimated', async () => {
  const results = [
    { index: 0, relevance_score: -3 },
    { index: 1, relevance_score: 2 },
  ]
  const cohere = await service(() => ({ body: { results, meta: { tokens: { input_tokens: 17 } } } }))
  expect(await rerankerAt(cohere).rerank('q', ['a', 'b'])).toMatchObject({
    results: [{ index: 1 }, { index: 0 }],
    usage: { inputTokens: 17, estimated: false },
  })
  const bare = await service(() => ({ body: { results } }))
  expect((await rerankerAt(bare).rerank('q', ['a', 'b'])).usage).toMatchObject({ inputTokens: 3, estimated: true })
})

describe('invalid input is refused before anything is sent', () => {
  test.each<[string, string, string[], number | undefined, object]>([
    ['an empty query', ' ', documents, undefined, { message: expect.stringContaining('query') }],
    ['an empty document', 'q', ['a', ''], undefined, { details: { index: 1 } }],
    ['too many documents', 'q', ['a', 'b', 'c', 'd'], undefined, { message: expect.stringContaining('maxDocuments') }],
    ['topN of zero', 'q', documents, 0, { message: expect.stringContaining('topN') }],
    ['a fractional topN', 'q', documents, 1.5, { message: expect.stringContaining('topN') }],
  ])('%s', async (_, query, documents, topN, expected) => {
    const server = await service(ranked)
    const asked = rerankerAt(server, { maxDocuments: 3 }).rerank(query, documents, topN === undefined ? {} : { topN })
    await expect(asked).rejects.toMatchObject({ name: 'ModelError', code: 'invalid_request', ...expected })
    expect(server.requests).toEqual([])
  })
})

describe('faults', () => {
  const good = { index: 0, relevance_score: 0.5 }
  test.each<[string, unknown, RegExp]>([
    ['too few results', [good], /1 results where 2 were expected/],
    ['too many results', [good, { ...good, index: 1 }, { ...good, index: 2 }], /3 results where 2/],
    ['one document twice', [good, good], /two results for the document 0/],
    ['an index out of range', [good, { ...good, index: 3 }], /document 3 of 3/],
    ['no place', [good, { relevance_score: 1 }], /document undefined of 3/],
    ['a score that is not a number', [good, { index: 1, relevance_score: null }], /score/],
    ['a null result', [good, null], /document undefined/],
  ])('%s is retried, and then an error', async (_, results, message) => {
    const server = await service(() => ({ body: { results } }))
    await expect(rerankerAt(server).rerank('q', documents, { topN: 2 })).rejects.toMatchObject({
      name: 'ModelError',
      code: 'provider_error',
      retryable: true,
      message: expect.stringMatching(message),
    })
    expect(server.requests).toHaveLength(3)
    const mended = await service((request, number) => (number === 0 ? { body: { results } } : ranked(request)))
    expect((await rerankerAt(mended).rerank('q', documents, { topN: 2 })).results[0]?.index).toBe(1)
  })

  test.each<[string, ServiceAnswer, object, number]>([
    ['429', { status: 429, headers: { 'retry-after-ms': '2' } }, { code: 'rate_limited', retryAfterMs: 2 }, 3],
    ['500', { status: 500, body: 'no' }, { code: 'provider_error', retryable: true }, 3],
    ['401 that repeats the key', { status: 401, body: { detail: 'jina-secret is wrong' } }, { code: 'auth' }, 1],
    ['a cut body', { body: '{"results":[{"index":0', cutAfterBytes: 14 }, { code: 'stream_cut' }, 3],
    ['another format', { body: { data: [] } }, { code: 'provider_error', retryable: false }, 1],
    [
      'a document that is too long',
      { status: 400, body: { detail: 'Input token length exceeds the limit' } },
      { code: 'context_overflow' },
      1,
    ],
  ])('%s', async (_, wire, expected, requests) => {
    const server = await service(() => wire)
    const error = await rerankerAt(server)
      .rerank('q', documents)
      .then(
        () => expect.unreachable(),
        (error) => error,
      )
    expect(error).toMatchObject({ name: 'ModelError', ...expected })
    expect(JSON.stringify([error.message, error.details])).not.toContain('jina-secret')
    expect(server.requests).toHaveLength(requests)
  })

  test('cancelling ends the call at once', async () => {
    const controller = new AbortController()
    const server = await service(() => {
      controller.abort()
      return new Promise(() => {})
    })
    await expect(rerankerAt(server).rerank('q', documents, { signal: controller.signal })).rejects.toMatchObject({
      code: 'cancelled',
    })
  })
})

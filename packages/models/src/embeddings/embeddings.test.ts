// Embeddings over real HTTP: the requests, their batches, and that each vector belongs to its text.
import type { ModelError } from '@oxbow/core'
import { gate } from '@oxbow/testing'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { type Service, type ServiceAnswer, type ServiceRequest, service } from '../service.fixture.ts'
import { arkMultimodal } from './ark-multimodal.ts'
import { batchesOf } from './batches.ts'
import { type OpenAiEmbeddingsOptions, openaiEmbeddings } from './openai-embeddings.ts'

const retry = { baseMs: 1, maxMs: 50 }
const embedderAt = ({ url }: Service, options: Partial<OpenAiEmbeddingsOptions> = {}) =>
  openaiEmbeddings({ provider: 'test', model: 'small', baseUrl: `${url}/v1`, apiKey: 'sk-secret', retry, ...options })

/** A vector that identifies its text. */
const vector = (text: string): number[] => [text.length, text.charCodeAt(0), 1]
const entry = (text: string, index: number): object => ({ object: 'embedding', index, embedding: vector(text) })
const answer = ({ body }: ServiceRequest): ServiceAnswer => ({
  body: {
    object: 'list',
    model: 'small',
    data: body.input.map(entry),
    usage: { prompt_tokens: body.input.length, total_tokens: body.input.length },
  },
})
const vectorsOf = (texts: readonly string[]): Float32Array[] => texts.map((text) => Float32Array.from(vector(text)))

const words = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${String.fromCharCode(97 + (n % 26))}${'x'.repeat(n)}`)

describe('Y11: in OpenAI’s format', () => {
  test('texts become vectors in their order, with their cost', async () => {
    const server = await service(answer)
    const embedder = embedderAt(server, { dimensions: 3 })
    expect(embedder).toMatchObject({ id: 'test:small@3', dimensions: 3 })
    const { vectors, usage } = await embedder.embed(['one', 'three'])
    expect(vectors).toEqual(vectorsOf(['one', 'three']))
    expect(usage).toMatchObject({ inputTokens: 2, outputTokens: 0, estimated: false })
    expect(server.requests).toEqual([
      {
        path: '/v1/embeddings',
        headers: expect.objectContaining({ authorization: 'Bearer sk-secret', accept: 'application/json' }),
        body: { model: 'small', input: ['one', 'three'], encoding_format: 'float', dimensions: 3 },
      },
    ])
  })

  test('dimensions are only sent when set, and nothing is sent without texts', async () => {
    const server = await service(answer)
    const embedder = embedderAt(server)
    expect(embedder.id).toBe('test:small')
    expect(await embedder.embed([])).toMatchObject({ vectors: [] })
    expect(server.requests).toEqual([])
    await embedder.embed(['a'])
    expect(server.requests[0]?.body).not.toHaveProperty('dimensions')
  })

  test('base64 is read as OpenAI’s own client reads it', async () => {
    const numbers = [0.1, -2.5e-8, 3.4e38]
    const base64 = Buffer.from(Float32Array.from(numbers).buffer).toString('base64')
    const server = await service(() => ({
      body: { object: 'list', model: 'small', data: [{ index: 0, object: 'embedding', embedding: base64 }], usage: {} },
    }))
    const { vectors } = await embedderAt(server, { encoding: 'base64' }).embed(['a'])
    expect(vectors[0]).toEqual(Float32Array.from(numbers))
    expect(server.requests[0]?.body.encoding_format).toBe('base64')
    const official = await new OpenAI({ apiKey: 'any', baseURL: server.url }).embeddings.create({
      model: 'small',
      input: 'a',
    })
    expect([...vectors[0]!]).toEqual(official.data[0]!.embedding)
  })

  test('a kind may have its own prefix for each text', async () => {
    const server = await service(answer)
    const embedder = embedderAt(server, { prefixes: { query: 'query: ' } })
    await embedder.embed(['a'], { kind: 'query' })
    await embedder.embed(['a'])
    expect(server.requests.map(({ body }) => body.input)).toEqual([['query: a'], ['a']])
  })

  test('many texts are sent in concurrent batches and reassembled in order', async () => {
    const texts = words(25)
    const held = gate()
    const server = await service(async (request, number) => {
      // The first two batches wait for the third.
      if (number === 2) held.open()
      if (number < 2) await held.pass()
      return answer(request)
    })
    let open = 0
    let most = 0
    const counting: typeof fetch = async (...asked) => {
      most = Math.max(most, ++open)
      const response = await fetch(...asked)
      open--
      return response
    }
    const embedder = embedderAt(server, { batchTexts: 4, concurrency: 3, fetch: counting })
    const { vectors, usage } = await embedder.embed(texts)
    expect(vectors).toEqual(vectorsOf(texts))
    expect(usage.inputTokens).toBe(25)
    expect(server.requests).toHaveLength(7)
    expect(most).toBe(3)
  })

  test('batches are split by number and by tokens, and a long text goes alone', () => {
    const long = 'word '.repeat(100)
    const cut = (texts: string[]) => batchesOf(texts, { texts: 3, tokens: 50 }).map((it) => [it.start, it.texts.length])
    expect(cut(['a', 'b', 'c', 'd'])).toEqual([
      [0, 3],
      [3, 1],
    ])
    expect(cut(['a', long, 'b', 'c'])).toEqual([
      [0, 1],
      [1, 1],
      [2, 2],
    ])
    expect(cut([])).toEqual([])
  })

  test('vectors are matched by index, and by order without indexes', async () => {
    const texts = ['a', 'bb', 'ccc']
    const shuffled = await service(({ body }) => ({ body: { data: body.input.map(entry).reverse() } }))
    expect((await embedderAt(shuffled).embed(texts)).vectors).toEqual(vectorsOf(texts))
    const bare = await service(({ body }) => ({
      body: { data: body.input.map((it: string) => ({ embedding: vector(it) })) },
    }))
    const { vectors, usage } = await embedderAt(bare).embed(texts)
    expect(vectors).toEqual(vectorsOf(texts))
    expect(usage).toMatchObject({ inputTokens: 3, estimated: true })
  })

  test('an empty text is refused before anything is sent, with its index', async () => {
    const server = await service(answer)
    await expect(embedderAt(server).embed(['a', ' \n', 'b'])).rejects.toMatchObject({
      name: 'ModelError',
      code: 'invalid_request',
      details: { index: 1 },
    })
    expect(server.requests).toEqual([])
  })

  test('the one text that is too long is named', async () => {
    const server = await service((request) =>
      request.body.input.some((text: string) => text.length > 20)
        ? {
            status: 400,
            body: { error: { message: "This model's maximum context length is 8192 tokens", code: null } },
          }
        : answer(request),
    )
    const error = embedderAt(server, { concurrency: 1 }).embed(['a', 'b', 'c', 'd', 'e', 'x'.repeat(21), 'f'])
    await expect(error).rejects.toMatchObject({
      code: 'context_overflow',
      message: 'Text 5 is longer than small can read. Shorten it.',
      status: 400,
      details: { index: 5 },
    })
  })

  test('texts that are too long together are sent in halves', async () => {
    const server = await service((request) =>
      request.body.input.length > 2
        ? { status: 400, body: { error: { message: 'Requested 310000 tokens, max 300000 tokens per request' } } }
        : answer(request),
    )
    const texts = words(7)
    const { vectors, usage } = await embedderAt(server).embed(texts)
    expect(vectors).toEqual(vectorsOf(texts))
    expect(usage.inputTokens).toBe(7)
  })
})

describe('faults', () => {
  const broken = (change: (data: Record<string, unknown>[]) => unknown) => (request: ServiceRequest) => {
    const { body } = answer(request) as { body: { data: Record<string, unknown>[] } }
    return { body: { ...body, data: change(body.data) } }
  }
  const nan = Buffer.from(Float32Array.from([1, Number.NaN, 1]).buffer).toString('base64')

  test.each<[string, (data: Record<string, unknown>[]) => unknown, RegExp]>([
    ['too few', (data) => data.slice(1), /2 vectors for 3 texts/],
    ['too many', (data) => [...data, data[0]], /4 vectors for 3 texts/],
    ['one twice', ([a, b]) => [a, b, b], /two vectors for the text 1/],
    ['an index out of range', ([a, b, c]) => [a, b, { ...c, index: 3 }], /for the text 3 of 3/],
    ['an index for some only', ([a, b, c]) => [a, b, { embedding: c!.embedding }], /for the text undefined/],
    ['an empty vector', ([a, b, c]) => [a, b, { ...c, embedding: [] }], /cannot be read/],
    ['a vector with null', ([a, b, c]) => [a, b, { ...c, embedding: [1, null, 1] }], /cannot be read/],
    ['NaN in one', ([a, b, c]) => [a, b, { ...c, embedding: nan }], /not a number/],
    ['bytes that are not floats', ([a, b, c]) => [a, b, { ...c, embedding: 'aGk=' }], /cannot be read/],
  ])('%s is retried, and then an error', async (_, change, message) => {
    const server = await service(broken(change))
    await expect(embedderAt(server).embed(['a', 'b', 'c'])).rejects.toMatchObject({
      name: 'ModelError',
      code: 'provider_error',
      retryable: true,
      message: expect.stringMatching(message),
    })
    expect(server.requests).toHaveLength(3)
    const mended = await service((request, number) => (number === 0 ? broken(change)(request) : answer(request)))
    expect((await embedderAt(mended).embed(['a', 'b', 'c'])).vectors).toEqual(vectorsOf(['a', 'b', 'c']))
  })

  test('vectors of another length than requested are a permanent error', async () => {
    const server = await service(answer)
    await expect(embedderAt(server, { dimensions: 4 }).embed(['a'])).rejects.toMatchObject({
      code: 'provider_error',
      retryable: false,
      message: expect.stringMatching(/a vector of 3 numbers instead of 4/),
    })
    expect(server.requests).toHaveLength(1)
  })

  test.each<[string, ServiceAnswer, object, number]>([
    ['429', { status: 429, headers: { 'retry-after-ms': '5' } }, { code: 'rate_limited', retryAfterMs: 5 }, 3],
    [
      '429 with too long a delay',
      { status: 429, headers: { 'retry-after': '9' } },
      { code: 'rate_limited', retryAfterMs: 9_000 },
      1,
    ],
    ['500', { status: 500 }, { code: 'provider_error' }, 3],
    ['401', { status: 401, body: { error: { message: 'Incorrect API key: sk-secret' } } }, { code: 'auth' }, 1],
    [
      '400',
      { status: 400, body: { error: { message: 'dimensions is not supported' } } },
      { code: 'invalid_request' },
      1,
    ],
    ['a cut body', { body: '{"data":[{"embedding":[1,2', cutAfterBytes: 15 }, { code: 'stream_cut' }, 3],
    ['broken JSON', { body: '{"data":[' }, { code: 'provider_error' }, 3],
    ['an error after 200', { body: { error: { message: 'busy', code: 503 } } }, { code: 'overloaded' }, 3],
    ['another format', { body: { vectors: [] } }, { code: 'provider_error', retryable: false }, 1],
    [
      'a page',
      { body: '<html>', headers: { 'content-type': 'text/html' } },
      { code: 'provider_error', retryable: false },
      1,
    ],
    ['a redirect', { status: 307, headers: { location: 'http://evil.example/' } }, { code: 'invalid_request' }, 1],
  ])('%s', async (_, wire, expected, requests) => {
    const server = await service(() => wire)
    const error = await embedderAt(server)
      .embed(['a', 'b'])
      .then(
        () => expect.unreachable(),
        (error) => error,
      )
    expect(error).toMatchObject({ name: 'ModelError', ...expected })
    expect(JSON.stringify([error.message, error.details])).not.toContain('sk-secret')
    expect(server.requests).toHaveLength(requests)
  })

  test('a transient error is not visible', async () => {
    const faults: ServiceAnswer[] = [{ status: 500 }, { status: 429, headers: { 'retry-after-ms': '1' } }]
    const server = await service((request) => faults.shift() ?? answer(request))
    expect((await embedderAt(server).embed(['a'])).vectors).toEqual(vectorsOf(['a']))
  })

  test('the first batch that fails ends the others, and nothing is returned', async () => {
    const server = await service(async (request, number) => {
      if (number === 1) return { status: 401 }
      if (number > 1) return answer(request)
      await new Promise(() => {})
      return {}
    })
    await expect(embedderAt(server, { batchTexts: 1, concurrency: 2 }).embed(words(20))).rejects.toMatchObject({
      code: 'auth',
    })
    expect(server.requests.length).toBeLessThan(20)
  })

  test('cancelling ends the call at once', async () => {
    const controller = new AbortController()
    const server = await service(() => {
      controller.abort()
      return new Promise(() => {})
    })
    const embedding = embedderAt(server).embed(['a'], { signal: controller.signal })
    await expect(embedding).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('silence is a first_byte_timeout', async () => {
    const server = await service(() => new Promise(() => {}))
    const embedder = embedderAt(server, { timeouts: { firstByteMs: 20 }, retry: { attempts: 1 } })
    await expect(embedder.embed(['a'])).rejects.toMatchObject({ code: 'first_byte_timeout', retryable: true })
  })

  test('an invalid key is reported at once', () => {
    expect(() => openaiEmbeddings({ provider: 'p', model: 'm', baseUrl: 'http://h/v1', apiKey: 'a\nb' })).toThrow(
      expect.objectContaining({ code: 'model_config' }),
    )
  })
})

describe('Y11: Ark’s multimodal endpoint', () => {
  const ark = ({ url }: Service, options: Partial<OpenAiEmbeddingsOptions> = {}) =>
    arkMultimodal({
      provider: 'ark',
      model: 'doubao-embedding-vision-250615',
      baseUrl: `${url}/api/v3`,
      apiKey: 'ark-secret',
      retry,
      ...options,
    })
  const one = ({ body }: ServiceRequest): ServiceAnswer => ({
    body: {
      object: 'list',
      model: 'doubao-embedding-vision-250615',
      data: { object: 'embedding', embedding: vector(body.input[0].text) },
      usage: { prompt_tokens: 13, total_tokens: 13, prompt_tokens_details: { text_tokens: 13, image_tokens: 0 } },
    },
  })

  test('sends one request per text, in order', async () => {
    const held = gate()
    const server = await service(async (request, number) => {
      if (number === 3) held.open()
      await held.pass()
      return one(request)
    })
    const embedder = ark(server, { dimensions: 3 })
    expect(embedder.id).toBe('ark:doubao-embedding-vision-250615@3')
    const texts = words(9)
    const { vectors, usage } = await embedder.embed(texts, { kind: 'query' })
    expect(vectors).toEqual(vectorsOf(texts))
    expect(usage).toMatchObject({ inputTokens: 9 * 13, estimated: false })
    expect(server.requests).toHaveLength(9)
    expect(server.most).toBe(4)
    expect(server.requests[0]).toMatchObject({
      path: '/api/v3/embeddings/multimodal',
      headers: { authorization: 'Bearer ark-secret' },
    })
    expect(server.requests.map(({ body }) => body)).toContainEqual({
      model: 'doubao-embedding-vision-250615',
      input: [{ type: 'text', text: 'a' }],
      encoding_format: 'float',
      dimensions: 3,
    })
  })

  test('reads a list of one too; any other answer is an error', async () => {
    const listed = await service(() => ({ body: { data: [{ index: 0, embedding: [1, 2] }] } }))
    expect((await ark(listed).embed(['a'])).vectors).toEqual([Float32Array.from([1, 2])])
    for (const data of [undefined, null, [], [{ embedding: [1] }, { embedding: [2] }], {}]) {
      const server = await service(() => ({ body: { data } }))
      await expect(ark(server).embed(['a'])).rejects.toMatchObject({ code: 'provider_error' })
    }
  })

  test('names the text that is too long', async () => {
    const server = await service((request) =>
      request.body.input[0].text === 'b'
        ? {
            status: 400,
            body: { error: { code: 'InvalidParameter', message: 'Input length 9000 exceeds the maximum length 8192' } },
          }
        : one(request),
    )
    await expect(ark(server).embed(['a', 'b'])).rejects.toMatchObject({
      code: 'context_overflow',
      details: { index: 1 },
    })
  })
})

test('B1: the provider’s message is in the details of an error, and not in its message', async () => {
  const said = 'shard 7 at 10.0.0.4 is down'
  const server = await service(() => ({ status: 500, body: { error: { message: said } } }))
  const embedder = openaiEmbeddings({ provider: 'acme', model: 'm', baseUrl: server.url, retry: { attempts: 1 } })
  const error = await embedder.embed(['a']).then(
    () => expect.unreachable(),
    (it: ModelError) => it,
  )
  expect(error.message).toBe('acme failed (HTTP 500). Try again.')
  expect(error).toMatchObject({ code: 'provider_error', details: { said } })
})

import type { FailedAttempt, Model, ModelDelta } from '@oxbow/core'
import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { frame, modelAt, request, serve, sse, text } from '../asking.fixture.ts'
import { withFallbacks } from './fallbacks.ts'
import { guardModel } from './guard.ts'
import { requestQueue } from './queue.ts'
import type { RetryOptions } from './retry.ts'

const quick: RetryOptions = { baseMs: 1 }

async function asked(model: Model, signal = new AbortController().signal) {
  const failed: FailedAttempt[] = []
  const deltas: ModelDelta[] = []
  const onFailedAttempt = (attempt: FailedAttempt) => failed.push(attempt)
  const outcome = await model
    .generate(request(), { signal, onDelta: (delta) => deltas.push(delta), onFailedAttempt })
    .then(
      (reply) => ({ reply, error: undefined }),
      (error) => ({ reply: undefined, error }),
    )
  return { ...outcome, failed, deltas }
}

/** Text, then the end of the connection where more should follow. */
const cut = { text: 'one two three', finishReason: null, done: false } as const

describe('B1, C12: one model', () => {
  test('is retried after a transient error, and the attempts are reported', async () => {
    const server = await serve({ status: 503 }, { status: 500, body: 'oops' }, { text: 'hello' })
    const { reply, failed } = await asked(withFallbacks(modelAt(server), { retry: quick }))
    expect(text(reply!)).toBe('hello')
    expect(reply).not.toHaveProperty('source')
    expect(failed.map(({ model, code }) => [model, code])).toEqual([
      ['test:any', 'overloaded'],
      ['test:any', 'provider_error'],
    ])
    expect(server.requests).toHaveLength(3)
  })

  test('fails with its own error after the last attempt', async () => {
    const server = await serve({ status: 503 }, { status: 503 }, { status: 503 }, { text: 'too late' })
    const { error, failed } = await asked(withFallbacks(modelAt(server), { retry: quick }))
    expect(error).toMatchObject({ code: 'overloaded', status: 503 })
    expect(failed).toHaveLength(2)
    expect(server.requests).toHaveLength(3)
  })

  test('counts what requests have read whose answers broke off, also when all did', async () => {
    const broken = { text: '', finishReason: null, done: false } as const
    const usage = { prompt_tokens: 100, completion_tokens: 5 }
    const one = await serve(broken, { status: 503 }, { text: 'hello', usage })
    const plain = await serve({ text: 'hello', usage })
    const { reply } = await asked(withFallbacks(modelAt(one), { retry: quick }))
    const { reply: once } = await asked(modelAt(plain))
    const read = reply!.usage.inputTokens - once!.usage.inputTokens
    expect(read).toBeGreaterThan(0)
    expect(reply!.usage.estimated).toBe(true)
    const spare = await serve(broken, broken, broken)
    const model = withFallbacks(modelAt(await serve(broken, broken, broken)), {
      retry: quick,
      fallbacks: [{ model: modelAt(spare) }],
    })
    const { error } = await asked(model)
    expect(error).toMatchObject({ code: 'stream_cut', partial: { blocks: [], usage: { inputTokens: 6 * read } } })
  })

  test.each([
    ['auth', 401],
    ['invalid_request', 400],
  ])('is not retried after %s', async (code, status) => {
    const server = await serve({ status }, { text: 'no' })
    const { error } = await asked(withFallbacks(modelAt(server), { retry: quick }))
    expect(error).toMatchObject({ code })
    expect(server.requests).toHaveLength(1)
  })

  test('is never retried once part of the answer was streamed, and the part is kept', async () => {
    const server = await serve(cut, { text: 'another answer' })
    const spare = await serve({ text: 'a spare answer' })
    const model = withFallbacks(modelAt(server), { retry: quick, fallbacks: [{ model: modelAt(spare) }] })
    const { error, deltas } = await asked(model)
    expect(error).toMatchObject({ code: 'stream_cut' })
    expect(text(error.partial)).toBe(deltas.map((delta) => delta.type === 'text' && delta.text).join(''))
    expect(server.requests).toHaveLength(1)
    expect(spare.requests).toHaveLength(0)
  })

  test.each([
    ['seconds', { 'retry-after': '0.03' }, 30],
    ['a date in the past', { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 0],
    ['nonsense', { 'retry-after': 'soon' }, 0],
  ])('waits as long as `Retry-After` asks: %s', async (_, headers, least) => {
    const server = await serve({ status: 429, headers }, { text: 'ok' })
    const { reply, failed } = await asked(withFallbacks(modelAt(server), { retry: quick }))
    expect(text(reply!)).toBe('ok')
    expect(failed[0]!.code).toBe('rate_limited')
    expect(failed[0]!.waitMs).toBeGreaterThanOrEqual(least)
    expect(failed[0]!.waitMs).toBeLessThanOrEqual(least + 1)
  })

  test('does not wait longer than the cap: the error says when to retry', async () => {
    const server = await serve({ status: 429, headers: { 'retry-after': '31' } }, { text: 'no' })
    const { error } = await asked(withFallbacks(modelAt(server), { retry: quick }))
    expect(error).toMatchObject({ code: 'rate_limited', retryAfterMs: 31_000 })
    expect(server.requests).toHaveLength(1)
  })

  test('delays are random and grow', async () => {
    const waits = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const server = await serve({ status: 503 }, { status: 503 }, { text: 'ok' })
        const { failed } = await asked(withFallbacks(modelAt(server), { retry: { baseMs: 8 } }))
        return failed.map(({ waitMs }) => waitMs)
      }),
    )
    const [first, second] = [waits.map((it) => it[0]!), waits.map((it) => it[1]!)]
    expect(Math.max(...first)).toBeLessThanOrEqual(8)
    expect(Math.max(...second)).toBeGreaterThan(8)
    expect(new Set(first).size).toBeGreaterThan(2)
  })

  test('cancelling the turn ends a delay', async () => {
    const server = await serve({ status: 429, headers: { 'retry-after': '20' } })
    const stop = new AbortController()
    const model = withFallbacks(modelAt(server))
    const outcome = model.generate(request(), {
      signal: stop.signal,
      onDelta: () => {},
      onFailedAttempt: () => stop.abort(),
    })
    await expect(outcome).rejects.toMatchObject({ code: 'cancelled' })
  })
})

describe('B1: fallback models', () => {
  const down = { always: { status: 503 } } as const
  const named = async (name: string, reply: Parameters<typeof serve>[0]) => {
    const server = await serve(reply)
    return { server, model: modelAt(server, { model: name }) }
  }

  test('answer when the first cannot, and the reply names the one that did', async () => {
    const first = await named('first', { status: 401 })
    const spare = await named('spare', { text: 'here' })
    const { reply, failed } = await asked(withFallbacks(first.model, { fallbacks: [{ model: spare.model }] }))
    expect(text(reply!)).toBe('here')
    expect(reply!.source).toBe('test:spare')
    expect(failed).toMatchObject([{ model: 'test:first', code: 'auth', waitMs: 0 }])
  })

  test('a fallback that breaks off is named in the partial answer', async () => {
    const first = await named('first', { status: 401 })
    const spare = await named('spare', cut)
    const { error } = await asked(withFallbacks(first.model, { fallbacks: [{ model: spare.model }] }))
    expect(error).toMatchObject({ code: 'stream_cut', partial: { source: 'test:spare' } })
  })

  test('are each tried at most once, and the last error is reported when all fail', async () => {
    const first = await named('first', { status: 401 })
    const spares = await Promise.all(['a', 'b', 'c'].map((name) => named(name, { status: 401 })))
    const { error, failed } = await asked(
      withFallbacks(first.model, { fallbacks: spares.map(({ model }) => ({ model })) }),
    )
    expect(error).toMatchObject({ code: 'auth' })
    expect(failed).toHaveLength(3)
    expect(spares.map(({ server }) => server.requests.length)).toEqual([1, 1, 1])
  })

  test.each([
    ['a conversation that is too long', { status: 400, body: { error: { message: 'prompt is too long' } } }],
    ['a request that is wrong', { status: 400, body: { error: { message: 'bad option' } } }],
  ])('are not tried after %s: they would fail the same way', async (_, reply) => {
    const first = await named('first', reply)
    const spare = await named('spare', { text: 'no' })
    const { error } = await asked(withFallbacks(first.model, { fallbacks: [{ model: spare.model }] }))
    expect(error.status).toBe(400)
    expect(spare.server.requests).toHaveLength(0)
  })

  test('a timeout is not retried when there is a fallback', async () => {
    const silent = await serve({ beforeFirstByte: 5_000 })
    const spare = await named('spare', { text: 'here' })
    const first = modelAt(silent, { timeouts: { firstByteMs: 20 } })
    const { reply } = await asked(withFallbacks(first, { fallbacks: [{ model: spare.model }] }))
    expect(text(reply!)).toBe('here')
    expect(silent.requests).toHaveLength(1)
  })

  test.each([
    [
      'after a first frame',
      {
        raw: [Buffer.from(sse([frame({ role: 'assistant' })], '')), Buffer.from(': no more\n\n')],
        betweenChunks: 5_000,
      },
      { idleMs: 20 },
    ],
    ['for the whole answer', { beforeFirstByte: 5_000 }, { totalMs: 20 }],
  ])('a timeout %s is not retried either', async (_, reply, timeouts) => {
    const silent = await serve(reply, reply, reply)
    const spare = await named('spare', { text: 'here' })
    const { reply: answer } = await asked(
      withFallbacks(modelAt(silent, { timeouts }), { retry: quick, fallbacks: [{ model: spare.model }] }),
    )
    expect(text(answer!)).toBe('here')
    expect(silent.requests).toHaveLength(1)
  })

  test('a requested delay of more than two seconds is skipped when there is a fallback', async () => {
    const first = await named('first', { status: 429, headers: { 'retry-after': '20' } })
    const spare = await named('spare', { text: 'here' })
    const { failed } = await asked(withFallbacks(first.model, { fallbacks: [{ model: spare.model }] }))
    expect(failed).toMatchObject([{ code: 'rate_limited', waitMs: 0 }])
  })

  test('are tried while the provider’s queue is full', async () => {
    const held = gate()
    const server = await serve({ beforeHeaders: held, text: 'slow' })
    const full = guardModel(modelAt(server), { queue: requestQueue({ concurrency: 1, waiting: 0 }) })
    const slow = asked(full)
    await expect.poll(() => server.requests.length).toBe(1)
    const spare = await named('spare', { text: 'here' })
    const model = withFallbacks(full, { retry: { baseMs: 30_000 }, fallbacks: [{ model: spare.model }] })
    expect(text((await asked(model)).reply!)).toBe('here')
    held.open()
    await slow
  })

  test('one that the request does not fit is skipped for the next', async () => {
    const tooLong = { status: 400, body: { error: { message: 'prompt is too long' } } }
    const first = await named('first', down.always)
    const small = await named('small', tooLong)
    const strict = await named('strict', { status: 400 })
    const good = await named('good', { text: 'here' })
    const fallbacks = [
      { model: small.model, weight: 1e9 },
      { model: strict.model, weight: 1e4 },
      { model: good.model, weight: 1e-6 },
    ]
    const { reply, failed } = await asked(withFallbacks(first.model, { retry: { attempts: 1 }, fallbacks }))
    expect(text(reply!)).toBe('here')
    expect(failed.map(({ code }) => code)).toEqual(['overloaded', 'context_overflow', 'invalid_request'])
  })

  test('when all refuse the request, the error of the requested model is reported', async () => {
    const first = await named('first', down.always)
    const small = await named('small', { status: 400, body: { error: { message: 'prompt is too long' } } })
    const model = withFallbacks(first.model, { retry: { attempts: 1 }, fallbacks: [{ model: small.model }] })
    expect((await asked(model)).error).toMatchObject({ code: 'overloaded', status: 503 })
  })

  test.each([
    ['400 Model Not Exist', { status: 400, body: { error: { message: 'Model Not Exist' } } }, 1],
    ['400 Arrearage', { status: 400, body: { error: { code: 'Arrearage', message: 'Access denied.' } } }, 1],
    ['301', { status: 301, headers: { location: 'https://new.example/v1' } }, 1],
    ['421', { status: 421 }, 1],
    ['499', { status: 499 }, 1],
    ['409', { status: 409 }, 3],
    ['425', { status: 425 }, 3],
  ])('are tried after %s, which is not about the request', async (_, reply, requests) => {
    const first = await serve(reply, reply, reply, reply)
    const spare = await named('spare', { text: 'here' })
    const model = withFallbacks(modelAt(first), { retry: quick, fallbacks: [{ model: spare.model }] })
    expect(text((await asked(model)).reply!)).toBe('here')
    expect(first.requests).toHaveLength(requests)
  })

  test('a heavier one is chosen more often', async () => {
    const taken = { light: 0, heavy: 0 }
    const answering = (name: keyof typeof taken): Model => ({
      id: name,
      async generate() {
        taken[name]++
        return { blocks: [{ type: 'text', text: name }], finishReason: 'stop', usage: noTokens, model: name }
      },
    })
    const first = await serve()
    first.script('*', down)
    const model = withFallbacks(modelAt(first), {
      retry: { attempts: 1 },
      fallbacks: [{ model: answering('light') }, { model: answering('heavy'), weight: 9 }],
    })
    for (let i = 0; i < 60; i++) await asked(model)
    expect(taken.light + taken.heavy).toBe(60)
    expect(taken.heavy).toBeGreaterThan(taken.light * 2)
  })
})

const noTokens = {
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  estimated: true,
}

import { createModels, type ModelListeners, type ModelsConfig } from '@oxbow/models'
import type { Reply, ScriptedRequest } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'

const start = rigs()
const usage = { prompt_tokens: 1_000, completion_tokens: 100 }

const config = (baseUrl: string): ModelsConfig => ({
  models: {
    main: { provider: 'vllm', model: 'main', baseUrl, contextWindow: 32_000, fallbacks: [{ model: 'spare' }] },
    spare: { provider: 'vllm', model: 'spare', baseUrl, price: { input: 1, output: 10 } },
  },
  aliases: { default: 'main' },
})
const models = (url: string, listeners: ModelListeners) => createModels(config(url), {}, listeners)
/** The first model is refused; the other answers. */
const replies = ({ body }: ScriptedRequest): Reply =>
  body.model === 'main' ? { status: 401, body: { error: { message: 'secret words' } } } : { text: 'hi', usage }

describe('B1: the state of the models', () => {
  test('is in /metrics: circuit breakers, requests, failed attempts by code, answers of fallbacks, cost', async () => {
    const rig = await start({ models, replies })
    await rig.post('/api/chat', { sessionId: 's', message: 'Hello.' })
    const text = await (await rig.get('/metrics')).text()
    expect(text).toContain('oxbow_model_breaker{name="main",model="vllm:main",state="closed"} 1\n')
    expect(text).toContain('oxbow_model_breaker{name="main",model="vllm:main",state="open"} 0\n')
    expect(text).toContain(`oxbow_model_requests{address="${rig.model.url}",state="running"} 0\n`)
    expect(text).toContain('oxbow_model_failed_attempts_total{model="vllm:main",code="auth"} 1\n')
    expect(text).toContain('oxbow_model_fallbacks_total{model="vllm:main",answered_by="vllm:spare"} 1\n')
    expect(text).toMatch(/oxbow_model_cost_dollars_total\{model="vllm:spare"\} 0\.002\n/)
    expect(text).toContain('oxbow_model_tokens_total{model="vllm:spare",kind="input"} 1000\n')
  })

  test('is listed for administrators, without a key or a secret', async () => {
    const rig = await start({ models, replies })
    await rig.post('/api/chat', { sessionId: 's', message: 'Hello.' })
    const { models: listed } = await json(rig.get('/admin/api/models'))
    expect(listed).toMatchObject([
      {
        name: 'main',
        model: 'vllm:main',
        aliases: ['default'],
        address: rig.model.url,
        contextWindow: 32_000,
        fallbacks: [{ model: 'spare', weight: 1 }],
        health: { breaker: 'closed', answered: 0, failed: 1, lastFailure: { code: 'auth' } },
      },
      { name: 'spare', aliases: [], price: { input: 1, output: 10 }, health: { answered: 1, failed: 0 } },
    ])
  })

  test('is in the log: a failed request without the provider’s text', async () => {
    const rig = await start({ models, replies, overrides: { 'log.level': 'info' } })
    await rig.post('/api/chat', { sessionId: 's', message: 'Hello.' })
    expect(rig.logged).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        model: 'main',
        asked: 'vllm:main',
        code: 'auth',
        msg: 'model request failed',
      }),
    )
    expect(JSON.stringify(rig.logged)).not.toContain('secret words')
  })

  test('an opening circuit breaker is in the log and in /metrics', async () => {
    const rig = await start({
      models: (url, listeners) =>
        createModels({ models: { only: { provider: 'vllm', model: 'x', baseUrl: url } } }, {}, listeners),
      replies: () => ({ status: 503 }),
    })
    await Promise.all(
      Array.from({ length: 5 }, (_, n) => rig.post('/api/chat', { sessionId: `s${n}`, message: 'Hello.' })),
    )
    expect(rig.logged).toContainEqual(
      expect.objectContaining({ model: 'only', breaker: 'open', msg: 'circuit breaker open' }),
    )
    expect(await (await rig.get('/metrics')).text()).toContain(
      'oxbow_model_breaker{name="only",model="vllm:x",state="open"} 1\n',
    )
  })
})

describe('X6: the usage of a session', () => {
  const url = '/api/sessions/s/usage'
  const of = (calls: number) => ({
    inputTokens: 1_000 * calls,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 100 * calls,
    reasoningTokens: 0,
    estimated: false,
  })

  test('is separate for the current context, the last turn and the session', async () => {
    const rig = await start({ models, replies })
    await rig.post('/api/chat', { sessionId: 's', message: 'One.' })
    await rig.post('/api/chat', { sessionId: 's', turnId: 'second', message: 'Two.' })
    expect(await json(rig.get(url))).toEqual({
      sessionId: 's',
      context: { tokens: 1_100, window: 32_000 },
      turn: { turnId: 'second', ...of(1), cost: 0.002 },
      session: { ...of(2), cost: 0.004 },
    })
  })

  test('omits an unknown cost and window, and marks estimates', async () => {
    const rig = await start({ replies: [{ text: 'hi', usage: null }] })
    await rig.post('/api/chat', { sessionId: 's', message: 'One.' })
    expect(await json(rig.get(url))).toMatchObject({
      context: { window: null },
      turn: { estimated: true, cost: null },
      session: { estimated: true, cost: null },
    })
    expect((await rig.get('/api/sessions/other/usage')).status).toBe(404)
  })
})

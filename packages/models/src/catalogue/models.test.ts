import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { ask, askInVain, serve } from '../asking.fixture.ts'
import { createModels, type ModelDefinition, type ModelsConfig } from '../index.ts'

const configError = (message: RegExp) =>
  expect.objectContaining({ code: 'model_config', message: expect.stringMatching(message) })
const vllm = (baseUrl: string, more: Partial<ModelDefinition> = {}): ModelDefinition => ({
  provider: 'vllm',
  model: 'any',
  baseUrl,
  ...more,
})
const local = (more: Partial<ModelDefinition> = {}) => vllm('http://127.0.0.1:1/v1', more)

describe('Y15, B13: a model by its name', () => {
  test('has what its definition sets: address, key, headers, options, price, window', async () => {
    const server = await serve({ text: 'a', usage: { prompt_tokens: 1_000, completion_tokens: 100 } })
    const main: ModelDefinition = {
      provider: 'deepseek',
      model: 'deepseek-chat',
      keyVariable: 'TEAM_KEY',
      baseUrl: server.url,
      headers: { 'x-team': 'blue' },
      options: { top_p: 0.5 },
      price: { input: 1, output: 10 },
      contextWindow: 64_000,
    }
    const model = createModels({ models: { main } }, { TEAM_KEY: 'sk-1', DEEPSEEK_API_KEY: 'sk-2' }).get('main')
    expect(model.contextWindow).toBe(64_000)
    expect((await ask(model, { options: { seed: 7 } })).reply.usage.cost).toBeCloseTo(0.002, 12)
    expect(server.requests[0]).toMatchObject({
      body: { model: 'deepseek-chat', top_p: 0.5, seed: 7 },
      headers: { authorization: 'Bearer sk-1', 'x-team': 'blue' },
    })
  })

  test('is found by its aliases as one object', () => {
    const models = createModels({ models: { a: local(), b: local() }, aliases: { default: 'a', fast: 'b' } })
    expect(models.get('fast')).toBe(models.get('b'))
    expect(models.get('default')).toBe(models.get('a'))
    expect(models.get('vllm:other').id).toBe('vllm:other')
  })

  test('is the default when it is the only one; a named default overrides the alias', () => {
    const aliases = { default: 'a', fast: 'b' }
    const models = { a: local({ model: 'A' }), b: local({ model: 'B' }) }
    expect(createModels({ models: { b: local({ model: 'B' }) } }).get('default').id).toBe('vllm:B')
    expect(createModels({ models, aliases, default: 'fast' }).get('default').id).toBe('vllm:B')
    expect(createModels({ models, aliases, default: 'vllm:C' }).get('default').id).toBe('vllm:C')
  })

  test('comes from the environment without a configuration, with the same protection', async () => {
    expect(createModels().get('default').id).toBe('offline:offline')
    const server = await serve({ status: 503 }, { text: 'now' })
    const attempts: unknown[] = []
    const models = createModels(
      {},
      { OXBOW_MODEL: 'vllm:m', VLLM_BASE_URL: server.url },
      { onFailedAttempt: (name, attempt) => attempts.push([name, attempt.code]) },
    )
    await ask(models.get('default'))
    expect(attempts).toEqual([['vllm:m', 'overloaded']])
    expect(models.health()).toMatchObject([{ name: 'vllm:m', breaker: 'closed', answered: 1, failed: 1 }])
  })

  test('gets its window from the public list after its first answer', async () => {
    const server = await serve({ text: 'a' })
    const model = createModels({}, { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: server.url }).get('openai:gpt-4o-mini')
    expect(model.contextWindow).toBeUndefined()
    await ask(model)
    expect(model.contextWindow).toBe(128_000)
  })
})

describe('B1: fallback models', () => {
  test('answer when the model cannot, and share one breaker per model', async () => {
    const down = await serve({ status: 401 }, { status: 401 })
    const up = await serve({ text: 'spare' }, { text: 'itself' })
    const models = createModels({
      models: { main: vllm(down.url, { fallbacks: [{ model: 'cheap' }] }), other: vllm(up.url, { model: 'other' }) },
      aliases: { default: 'main', cheap: 'other' },
    })
    expect((await ask(models.get('default'))).reply).toMatchObject({ source: 'vllm:other' })
    await ask(models.get('other'))
    expect(models.health()).toMatchObject([
      { name: 'main', answered: 0, failed: 1, lastFailure: { code: 'auth' } },
      { name: 'other', answered: 2 },
    ])
  })

  test('an opening breaker is reported with the model’s name', async () => {
    const server = await serve(...Array.from({ length: 5 }, () => ({ status: 503 })))
    const told: unknown[] = []
    const stop = new AbortController()
    const onBreaker = (...change: unknown[]) => {
      told.push(change)
      stop.abort()
    }
    const model = createModels({ models: { main: vllm(server.url) } }, {}, { onBreaker }).get('main')
    await Promise.all(Array.from({ length: 5 }, () => askInVain(model, {}, stop.signal)))
    expect(told).toEqual([['main', 'open']])
  })
})

test('models at one address share one queue', async () => {
  const held = gate()
  const server = await serve({ beforeHeaders: held, text: 'a' }, { text: 'b' })
  const models = createModels({
    models: { a: vllm(server.url, { limits: { concurrency: 1 } }), b: vllm(`${server.url}`, { model: 'b' }) },
    aliases: { default: 'a' },
  })
  const first = ask(models.get('a'))
  const second = ask(models.get('b'))
  await expect
    .poll(() => models.health())
    .toMatchObject([
      { running: 1, waiting: 1 },
      { running: 1, waiting: 1 },
    ])
  await expect.poll(() => server.requests.length).toBe(1)
  held.open()
  await Promise.all([first, second])
})

describe('mistakes are reported at the start, with their key', () => {
  const two = { main: local(), spare: local() }
  const cases: [string, ModelsConfig, RegExp][] = [
    [
      'an unknown fallback',
      { models: { main: local({ fallbacks: [{ model: 'spar' }] }), spare: local() }, default: 'main' },
      /^models\.main\.fallbacks: unknown model "spar"; did you mean "spare"\?/,
    ],
    [
      'a model as its own fallback',
      { models: { main: local({ fallbacks: [{ model: 'main' }] }) } },
      /a model cannot be its own fallback/,
    ],
    [
      'a model as its own fallback through an alias',
      { models: { a: local({ fallbacks: [{ model: 'fast' }] }), b: local() }, aliases: { default: 'a', fast: 'a' } },
      /^models\.a\.fallbacks: a model cannot be its own fallback/,
    ],
    [
      'an alias to an unknown model',
      { models: { main: local() }, aliases: { fast: 'man' } },
      /^models\.aliases\.fast: unknown model "man"; did you mean "main"\?/,
    ],
    [
      'an alias with a model’s name',
      { models: two, aliases: { default: 'main', spare: 'main' } },
      /models\.aliases\.spare: a model has this name; choose another/,
    ],
    ['no default', { models: two }, /models\.aliases\.default: required: name the default model, one of main, spare/],
    [
      'an unknown provider',
      { models: { main: { provider: 'opnai' } } },
      /^models\.main: Unknown provider "opnai"; did you mean openai\?/,
    ],
    [
      'two limits for one address',
      {
        models: { main: local({ limits: { concurrency: 1 } }), spare: local({ limits: { concurrency: 2 } }) },
        default: 'main',
      },
      /^models\.spare\.limits: differ from those of models\.main/,
    ],
  ]
  test.each(cases)('%s', (_, config, message) => {
    expect(() => createModels(config)).toThrow(configError(message))
  })

  test('models may be each other’s fallbacks: fallbacks of a fallback are not tried', () => {
    const models = {
      a: local({ fallbacks: [{ model: 'b' }, { model: 'c' }] }),
      b: local({ fallbacks: [{ model: 'c' }] }),
      c: local({ fallbacks: [{ model: 'a' }] }),
    }
    expect(() => createModels({ models, default: 'a' })).not.toThrow()
  })

  test('a missing key is reported when the model, or one it is a fallback of, is requested', () => {
    const models = createModels({
      models: {
        main: local({ fallbacks: [{ model: 'spare' }] }),
        spare: { provider: 'openai', keyVariable: 'SPARE_KEY' },
      },
      default: 'main',
    })
    expect(() => models.get('main')).toThrow(configError(/openai:gpt-5-mini needs an API key\. Set SPARE_KEY\./))
    expect(models.list()).toMatchObject([
      { name: 'main', aliases: ['default'], fallbacks: [{ model: 'spare', weight: 1 }] },
      { name: 'spare', aliases: [], key: { variable: 'SPARE_KEY', present: false } },
    ])
  })

  test('an unknown name is refused', () => {
    const models = createModels({ models: { main: local() } })
    expect(() => models.get('mian')).toThrow(configError(/Unknown model "mian"; did you mean main\?/))
    expect(() => models.get('constructor')).toThrow(configError(/Unknown model "constructor"/))
  })
})

test('the list does not show secrets in an address', () => {
  const models = createModels({ models: { main: vllm('http://host/v1?api-key=abc') } })
  expect(models.list()).toMatchObject([{ address: 'http://host/v1' }])
})

describe('names and addresses in any spelling', () => {
  test.each(['constructor', 'toString', '__proto__x'])('a fallback may be named %s', async (name) => {
    const down = await serve({ status: 401 })
    const spare = await serve({ text: 'here' })
    const main = vllm(down.url, { fallbacks: [{ model: name }] })
    const models = createModels({ models: { main, [name]: vllm(spare.url) }, aliases: { default: 'main' } })
    expect((await ask(models.get('main'))).reply.blocks).toEqual([{ type: 'text', text: 'here' }])
  })

  test('a trailing slash does not make another queue, and the order of limits does not matter', async () => {
    const held = gate()
    const server = await serve({ beforeHeaders: held, text: 'a' }, { text: 'b' })
    const models = createModels({
      models: {
        a: vllm(server.url, { limits: { concurrency: 1, requestsPerMinute: 600 } }),
        b: vllm(`${server.url}/`, { limits: { requestsPerMinute: 600, concurrency: 1 } }),
      },
      aliases: { default: 'a' },
    })
    const both = [ask(models.get('a')), ask(models.get('b'))]
    await expect.poll(() => models.health().map(({ waiting }) => waiting)).toEqual([1, 1])
    await expect.poll(() => server.requests.length).toBe(1)
    held.open()
    await Promise.all(both)
  })

  test('the list has a model’s public price after its first answer', async () => {
    const server = await serve({ text: 'a' })
    const main = { provider: 'openai', model: 'gpt-4o-mini', baseUrl: server.url }
    const models = createModels({ models: { main } }, { OPENAI_API_KEY: 'sk-1' })
    expect(models.list()[0]!.price).toBeUndefined()
    await ask(models.get('main'))
    expect(models.list()[0]!.price).toMatchObject({ input: expect.any(Number), output: expect.any(Number) })
  })
})

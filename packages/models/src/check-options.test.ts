import { expect, test } from 'vitest'
import {
  aiSdk,
  anthropic,
  arkMultimodal,
  createModels,
  guardModel,
  jinaRerank,
  modelFromEnvironment,
  offline,
  openaiChat,
  openaiEmbeddings,
  openaiResponses,
  requestQueue,
  resolveModel,
  withFacts,
  withFallbacks,
} from './index.ts'

const at = { provider: 'test', model: 'm', baseUrl: 'http://127.0.0.1:1/v1' }
const drivers = { anthropic, arkMultimodal, jinaRerank, openaiChat, openaiEmbeddings, openaiResponses }

const refused = (message: string) =>
  expect.objectContaining({ name: 'OxbowError', code: 'model_config', message: expect.stringContaining(message) })

test.each(Object.entries(drivers))('B1: %s() names the option that is unknown, invalid or missing', (name, driver) => {
  const make = (options: unknown) => () => driver(options as never)
  expect(make({ ...at, apikey: 'k' })).toThrow(refused(`${name}(): unknown field "apikey". Did you mean "apiKey"?`))
  expect(make({ ...at, timeouts: { idle: 5 } })).toThrow(refused('Did you mean "timeouts.idleMs"?'))
  expect(make({ ...at, limits: { call: 5 } })).toThrow(refused('Did you mean "limits.calls"?'))
  expect(make({ ...at, fetch: true })).toThrow(refused(`${name}(): fetch must be a function; got true`))
  expect(make({ baseUrl: at.baseUrl, model: 'm' })).toThrow(refused(`${name}(): provider is required.`))
  expect(make({ provider: 'test', model: 'm' })).toThrow(refused(`${name}(): baseUrl is required.`))
  for (const it of [undefined, null, 'gpt-5']) expect(make(it)).toThrow(refused(`${name}(): it must be an object`))
  expect(make(at)).not.toThrow()
})

test.each([
  [{ headers: new Headers({ authorization: 'Bearer sk-secret' }) }, 'headers must be an object of texts'],
  [{ headers: 'Bearer sk-secret' }, 'headers must be an object of texts'],
  [{ apiKey: ['sk-secret'] }, 'apiKey must be a text.'],
])('B1: what may hold a key is not shown when it is refused, and never ignored: %o', (options, message) => {
  const made = () => openaiChat({ ...at, ...options } as never)
  expect(made).toThrow(refused(message))
  expect(made).not.toThrow('secret')
})

test.each<[string, () => unknown, string]>([
  ['quirks', () => openaiChat({ ...at, quirks: { thinkTag: 'open' } } as never), 'Did you mean "quirks.thinkTags"?'],
  ['quirks', () => anthropic({ ...at, quirks: { output: 'json' } } as never), 'quirks.output must be one of'],
  ['reasoning', () => openaiResponses({ ...at, reasoning: 'high' } as never), 'reasoning must be true or false'],
  ['prefixes', () => openaiEmbeddings({ ...at, prefixes: { doc: '' } } as never), '"prefixes.doc"'],
  [
    'aiSdk',
    () => aiSdk({ specificationVersion: 'v4' } as never, { idd: 'x' } as never),
    'aiSdk(): unknown field "idd"',
  ],
  ['queue', () => requestQueue({ concurency: 5 } as never), 'requestQueue(): unknown field "concurency". Did you mean'],
  ['guard', () => guardModel(offline(), { brekaer: {} } as never), 'Did you mean "breaker"?'],
  ['guard', () => guardModel(offline(), { breaker: { openMS: 5 } } as never), 'Did you mean "breaker.openMs"?'],
  ['guard', () => guardModel('openai:gpt-5' as never), 'guardModel(): needs a Model, for example openModel('],
  ['fallbacks', () => withFallbacks(offline(), { fallback: [] } as never), 'Did you mean "fallbacks"?'],
  ['fallbacks', () => withFallbacks(offline(), { retry: { attempt: 5 } } as never), 'Did you mean "retry.attempts"?'],
  ['fallbacks', () => withFallbacks({ id: 'm' } as never), 'withFallbacks(): needs a Model'],
  ['facts', () => withFacts(offline(), { price: { in: 1 } } as never), 'withFacts(): unknown field "price.in"'],
  ['facts', () => withFacts(undefined as never), 'withFacts(): needs a Model'],
  [
    'models',
    () => createModels({ model: {} } as never),
    'createModels(): unknown field "model". Did you mean "models"?',
  ],
  ['models', () => createModels({ models: 'x' } as never), 'createModels(): models must be an object; got "x"'],
  [
    'models',
    () => createModels({ models: { a: { ...at, baseURL: 'x' } } } as never),
    'Did you mean "models.a.baseUrl"?',
  ],
  ['models', () => createModels({}, {}, { onbreaker: () => {} } as never), 'Did you mean "onBreaker"?'],
  [
    'name',
    () => resolveModel(undefined as never, {}),
    'A model name must be a string like "openai:gpt-5": got nothing.',
  ],
  ['environment', () => modelFromEnvironment({ OPENAI_API_KEY: 'k' }, { idle: 5 } as never), 'field "idle"'],
])('B1: a misspelt option is refused with the nearest name, not ignored: %s', (_, make, message) => {
  expect(make).toThrow(refused(message))
})

import { expect, test } from 'vitest'
import { modelAt } from './asking.fixture.ts'
import {
  arkMultimodal,
  createModels,
  guardModel,
  jinaRerank,
  type ModelDefinition,
  openaiEmbeddings,
  requestQueue,
  withFacts,
  withFallbacks,
} from './index.ts'

const at = { provider: 'acme', model: 'm', baseUrl: 'http://127.0.0.1:9/v1' }
const model = modelAt({ url: at.baseUrl })
const models = (main: Partial<ModelDefinition>) =>
  createModels({ models: { main: { ...at, provider: 'vllm', ...main } } })

test.each<[string, (number: number) => unknown]>([
  ['concurrency', (it) => openaiEmbeddings({ ...at, concurrency: it })],
  ['batchTexts', (it) => openaiEmbeddings({ ...at, batchTexts: it })],
  ['batchTokens', (it) => openaiEmbeddings({ ...at, batchTokens: it })],
  ['dimensions', (it) => openaiEmbeddings({ ...at, dimensions: it })],
  ['retry.attempts', (it) => openaiEmbeddings({ ...at, retry: { attempts: it } })],
  ['concurrency', (it) => arkMultimodal({ ...at, concurrency: it })],
  ['maxDocuments', (it) => jinaRerank({ ...at, maxDocuments: it })],
  ['concurrency', (it) => requestQueue({ concurrency: it })],
  ['requestsPerMinute', (it) => requestQueue({ requestsPerMinute: it })],
  ['requests', (it) => guardModel(model, { breaker: { requests: it } })],
  ['failureRate', (it) => guardModel(model, { breaker: { failureRate: it } })],
  ['minimum', (it) => guardModel(model, { breaker: { minimum: it } })],
  ['openMs', (it) => guardModel(model, { breaker: { openMs: it } })],
  ['retry.attempts', (it) => withFallbacks(model, { retry: { attempts: it } })],
  ['weight', (it) => withFallbacks(model, { fallbacks: [{ model, weight: it }] })],
  ['contextWindow', (it) => withFacts(model, { contextWindow: it })],
  ['timeouts.idleMs', (it) => modelAt({ url: at.baseUrl }, { timeouts: { idleMs: it } })],
  ['limits.calls', (it) => modelAt({ url: at.baseUrl }, { limits: { calls: it } })],
  ['models.main.limits.concurrency', (it) => models({ limits: { concurrency: it } })],
  ['models.main.limits.requestsPerMinute', (it) => models({ limits: { requestsPerMinute: it } })],
  ['models.main.contextWindow', (it) => models({ contextWindow: it })],
  ['models.main.timeouts.totalMs', (it) => models({ timeouts: { totalMs: it } })],
])('%s must be a number in range', (name, make) => {
  for (const number of [0, -1, Number.NaN]) {
    const told = expect.objectContaining({ code: 'model_config', message: expect.stringContaining(`${name} must be`) })
    expect(() => make(number)).toThrow(told)
  }
})

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, 1e308])('a price of %d is refused', (input) => {
  const told = expect.objectContaining({
    code: 'model_config',
    message: expect.stringContaining('price.input must be'),
  })
  expect(() => models({ price: { input, output: 1 } })).toThrow(told)
  expect(() => withFacts(model, { price: { input, output: 1 } })).toThrow(told)
})

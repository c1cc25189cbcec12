// Models opened by name alone.
import { expect, test } from 'vitest'
import { ask, modelAt, serve, text } from '../asking.fixture.ts'
import { createModels, offline, openModel, resolveModel, withFallbacks } from '../index.ts'

const configError = (message: RegExp) =>
  expect.objectContaining({ code: 'model_config', message: expect.stringMatching(message) })

test('a name is enough; the model has retries and is the same object each time', async () => {
  const server = await serve({ status: 503 }, { text: 'hello' })
  const environment = { VLLM_BASE_URL: server.url }
  const model = openModel('vllm:qwen3', { environment })
  expect(model.id).toBe('vllm:qwen3')
  expect(openModel(' vllm:qwen3 ', { environment })).toBe(model)
  expect(text((await ask(model)).reply)).toBe('hello')
})

test('`default` and `offline` are names too', () => {
  expect(openModel('default', { environment: {} }).id).toBe(offline().id)
  expect(openModel('offline', { environment: {} }).id).toBe(offline().id)
})

test.each([
  ['foo', /^Unknown model "foo"\. Use provider:model, for example openai:gpt-5\. Providers: openai, .*offline\./],
  ['opnai:gpt-5', /^Model "opnai:gpt-5": Unknown provider "opnai"; did you mean openai\? Use provider:model/],
  ['openai:gpt-5', /^openai:gpt-5 needs an API key\. Set OPENAI_API_KEY\.$/],
  ['vllm', /^Model "vllm": vllm has no default model\. Use vllm:MODEL\.$/],
  ['', /^A model name must be a string like "openai:gpt-5": got ""\.$/],
])('%j is refused with the valid form', (name, message) => {
  expect(() => openModel(name, { environment: {} })).toThrow(configError(message))
})

test('with an address and a key the model is asked there, with that key', async () => {
  const server = await serve({ text: 'hello' })
  const model = openModel('openai:gpt-5', { environment: {}, baseUrl: server.url, apiKey: 'own-key' })
  expect(model.id).toBe('openai:gpt-5')
  expect(text((await ask(model)).reply)).toBe('hello')
  expect(server.requests[0]?.headers.authorization).toBe('Bearer own-key')
})

test('a key alone keeps the address that the environment names', async () => {
  const server = await serve({ text: 'hello' })
  const environment = { OXBOW_BASE_URL: server.url, OPENAI_API_KEY: 'other' }
  expect(text((await ask(openModel('openai', { environment, apiKey: 'own-key' }))).reply)).toBe('hello')
  expect(server.requests[0]?.headers.authorization).toBe('Bearer own-key')
})

test.each([
  ['openai:gpt-5', { apikey: 'k' }, /^openModel\(\): unknown field "apikey"\. Did you mean "apiKey"\?$/],
  ['openai:gpt-5', { apiKey: '' }, /^openai:gpt-5 needs an API key\. Set apiKey\.$/],
  ['openai:gpt-5', { apiKey: 'two words' }, /^apiKey is empty or contains invalid characters\.$/],
  ['openai:gpt-5', { baseUrl: '' }, /^openModel\(\): baseUrl must be a text that is not empty; got ""$/],
  ['vllm:m', { baseUrl: 'gpu:8000' }, /The base URL of vllm is not a URL/],
  ['default', { apiKey: 'k' }, /^openModel\(\): the offline model has no address and no key\. Name another/],
])('%j with %j is refused', (name, options, message) => {
  expect(() => openModel(name, { environment: {}, ...options } as never)).toThrow(configError(message))
})

test('gemini is an alias of google', () => {
  const environment = { GEMINI_API_KEY: 'k' }
  expect(resolveModel('gemini:gemini-3-pro', environment).id).toBe('google:gemini-3-pro')
  expect(openModel('gemini:gemini-3-pro', { environment }).id).toBe('google:gemini-3-pro')
})

test('fallbacks that are not models are refused with the valid form', () => {
  const fallbacks = ['spare'] as never
  const model = modelAt({ url: 'http://127.0.0.1:1' })
  expect(() => withFallbacks(model, { fallbacks })).toThrow(configError(/fallbacks must be a list like .* got "spare"/))
  const main = { provider: 'vllm', model: 'm', fallbacks }
  expect(() => createModels({ models: { main } })).toThrow(
    configError(/^models\.main\.fallbacks: must be a list like .* got "spare"/),
  )
})

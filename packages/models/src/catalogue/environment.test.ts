import { describe, expect, test } from 'vitest'
import { needPackage } from '../ai-sdk/load.ts'
import { ask, serve } from '../asking.fixture.ts'
import { modelFromEnvironment, providers, resolveModel } from '../index.ts'

const configError = (message: RegExp) =>
  expect.objectContaining({ name: 'OxbowError', code: 'model_config', message: expect.stringMatching(message) })

describe('which model', () => {
  test('without configuration it is the offline model', () => {
    expect(modelFromEnvironment({}).id).toBe('offline:offline')
    expect(modelFromEnvironment({ OXBOW_MODEL: '', OPENAI_API_KEY: ' ' }).id).toBe('offline:offline')
  })

  test('OXBOW_MODEL decides', () => {
    const environment = { OPENAI_API_KEY: 'k', DEEPSEEK_API_KEY: 'k' }
    expect(modelFromEnvironment({ ...environment, OXBOW_MODEL: 'deepseek:deepseek-reasoner' }).id).toBe(
      'deepseek:deepseek-reasoner',
    )
    expect(modelFromEnvironment({ ...environment, OXBOW_MODEL: 'offline' }).id).toBe('offline:offline')
    expect(modelFromEnvironment({ ...environment, OXBOW_MODEL: 'offline:offline' }).id).toBe('offline:offline')
  })

  test('a provider alone means its default model', () => {
    expect(modelFromEnvironment({ OXBOW_MODEL: 'deepseek', DEEPSEEK_API_KEY: 'k' }).id).toBe('deepseek:deepseek-chat')
  })

  test('otherwise the first provider whose key is set decides', () => {
    expect(modelFromEnvironment({ DEEPSEEK_API_KEY: 'k' }).id).toBe('deepseek:deepseek-chat')
    expect(modelFromEnvironment({ DEEPSEEK_API_KEY: 'k', DASHSCOPE_API_KEY: 'k' }).id).toBe('dashscope:qwen-plus')
  })

  test('only the first colon separates', () => {
    expect(resolveModel('ollama:qwen3:8b', {}).id).toBe('ollama:qwen3:8b')
  })

  test.each(Object.entries(providers))('%s can be configured by its key and its default', (id, provider) => {
    const [variable] = provider.keyVariables
    const parts = [...provider.baseUrl.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, 'x'] as const)
    const environment = { ...Object.fromEntries(parts), ...(variable ? { [variable]: 'k' } : {}) }
    expect(resolveModel(`${id}:some/model`, environment).id).toBe(`${id}:some/model`)
    expect(URL.canParse(provider.baseUrl.replace(/\{\w+\}/g, 'x'))).toBe(true)
    if (provider.defaultModel && variable)
      expect(modelFromEnvironment(environment).id).toBe(`${id}:${provider.defaultModel}`)
  })
})

describe('errors name what to set', () => {
  test('an unknown provider', () => {
    expect(() => resolveModel('acme:x', {})).toThrow(
      configError(
        /Unknown provider "acme"\. Use provider:model, for example openai:gpt-5\. Providers: openai, anthropic, dashscope.*VLLM_BASE_URL/,
      ),
    )
    expect(() => resolveModel('constructor', {})).toThrow(
      configError(/^Unknown model "constructor"\. Use provider:model/),
    )
    expect(() => modelFromEnvironment({ OXBOW_MODEL: 'gpt-5' })).toThrow(
      configError(/^Unknown model "gpt-5"\. Use provider:model, for example openai:gpt-5\. Providers: openai, /),
    )
  })

  test('a missing key', () => {
    expect(() => resolveModel('openai:gpt-5', {})).toThrow(configError(/Set OPENAI_API_KEY\./))
    expect(() => resolveModel('zhipu', {})).toThrow(configError(/Set ZHIPU_API_KEY or ZHIPUAI_API_KEY\./))
  })

  test('a missing part of an address', () => {
    expect(() => resolveModel('azure:d', { AZURE_API_KEY: 'k' })).toThrow(
      configError(/Set AZURE_RESOURCE_NAME, or AZURE_BASE_URL\./),
    )
    expect(() => resolveModel('azure-responses:d', { AZURE_API_KEY: 'k' })).toThrow(
      configError(/Set AZURE_RESOURCE_NAME, or AZURE_RESPONSES_BASE_URL\./),
    )
    expect(() => resolveModel('bedrock:m', { AWS_BEARER_TOKEN_BEDROCK: 'k' })).toThrow(configError(/Set AWS_REGION/))
  })

  test('a package that is not installed', () => {
    expect(() =>
      needPackage('acme', {
        name: '@ai-sdk/no-such',
        version: '3',
        secrets: [],
        load: async () => expect.unreachable(),
      }),
    ).toThrow(configError(/^Models of acme need a package\. Install it: npm i @ai-sdk\/no-such@3$/))
  })

  test('a missing model', () => {
    expect(() => resolveModel('ollama', {})).toThrow(configError(/ollama has no default model\. Use ollama:MODEL\./))
  })

  test('an invalid base URL', () => {
    expect(() => resolveModel('vllm:m', { VLLM_BASE_URL: 'localhost' })).toThrow(configError(/base URL/))
  })
})

describe('the base URL', () => {
  test.each(['OXBOW_BASE_URL', 'DEEPSEEK_BASE_URL'])('%s replaces the provider’s', async (variable) => {
    const server = await serve({ text: 'a' })
    await ask(resolveModel('deepseek:deepseek-chat', { DEEPSEEK_API_KEY: ' sk-1 ', [variable]: server.url }))
    expect(server.requests[0]).toMatchObject({
      path: '/v1/chat/completions',
      model: 'deepseek-chat',
      headers: { authorization: 'Bearer sk-1' },
    })
  })

  test('OXBOW_BASE_URL wins, and a trailing slash does not matter', async () => {
    const server = await serve({ text: 'a' })
    await ask(resolveModel('vllm:m', { OXBOW_BASE_URL: `${server.url}/`, VLLM_BASE_URL: 'http://127.0.0.1:1/v1' }))
    expect(server.requests[0]?.headers.authorization).toBeUndefined()
    expect(server.requests[0]?.path).toBe('/v1/chat/completions')
  })

  test('timeouts are passed on', async () => {
    const server = await serve({ text: 'one two', silentAfterChunks: 1 })
    const model = resolveModel('vllm:m', { OXBOW_BASE_URL: server.url }, { timeouts: { idleMs: 30 } })
    await expect(ask(model)).rejects.toMatchObject({ code: 'idle_timeout' })
  })
})

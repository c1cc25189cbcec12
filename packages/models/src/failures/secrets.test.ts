// What errors must not show, wherever a provider or a library echoes it.
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { anthropicAt, askInVain, modelAt, responsesAt, serve } from '../asking.fixture.ts'
import { aiSdk } from '../index.ts'
import { addressOf, scrubber } from './secrets.ts'

/** Everything that a logger could print of it. */
const all = (error: unknown): string => inspect(error, { depth: 9 }) + JSON.stringify(error)

const drivers = [
  ['chat completions', modelAt],
  ['messages', anthropicAt],
  ['responses', responsesAt],
] as const

describe.each(drivers)('errors of a model behind %s do not show', (_, at) => {
  test.each([
    ['the key', '', 'sk-secret'],
    ['the query of the base URL', '?key=query-secret&api-version=1', 'query-secret'],
    ['a key in the path of the base URL', '/sk-a1b2c3d4e5f6', 'sk-a1b2c3d4e5f6'],
    ['a long key in the path', '/0a1b2c3d4e5f60718293', '0a1b2c3d4e5f60718293'],
  ])('%s', async (_, address, secret) => {
    const server = await serve({ status: 400, body: { error: { message: `no: ${secret} at ?key=${secret}` } } })
    const { error } = await askInVain(at({ url: server.url + address }))
    expect(error.message).toContain('[key]')
    expect(all(error)).not.toContain(secret)
  })

  test('the address when the connection is refused', async () => {
    const { error } = await askInVain(at({ url: 'http://127.0.0.1:1/v1/sk-pathsecret?key=query-secret' }))
    expect(error).toMatchObject({ code: 'provider_error', cause: { code: 'ECONNREFUSED' } })
    expect(all(error)).not.toMatch(/query-secret|pathsecret/)
  })

  test.each(['http://:pass-word@127.0.0.1:1/v1', 'http://me:pass-word@127.0.0.1:1/v1', 'http://me@127.0.0.1:1/v1'])(
    'a password in %s, which is refused',
    (url) => {
      let error: unknown
      try {
        at({ url })
      } catch (thrown) {
        error = thrown
      }
      expect(error).toMatchObject({ code: 'model_config', message: expect.stringContaining('holds a password') })
      expect(all(error)).not.toContain('pass-word')
    },
  )

  test.each([
    ['an escape of JSON', 'sk\\u002dsecret'],
    ['an escaped slash', 'sk-a\\/bc', 'sk-a/bc'],
    ['an escape in JSON inside JSON', 'sk\\\\u002Dsecret'],
    ['percents', 'sk%2Dsecret'],
  ])('the key with %s', async (_, told, apiKey = 'sk-secret') => {
    const server = await serve({ status: 400, body: `{"error":{"message":"you sent ${told}!"}}` })
    const { error } = await askInVain(at(server, { apiKey }))
    expect(error.message).toContain('you sent [key]!')
    expect(all(error)).not.toMatch(/secret|a\W+bc/)
  })
})

test('a key that is a word, without changing longer words', async () => {
  const server = await serve({ status: 400, body: { error: { message: 'Company many things, not any.' } } })
  const { error } = await askInVain(modelAt(server, { apiKey: 'any' }))
  expect(error.message).toContain('Company many things, not [key].')
})

test('an error of a package is kept without secrets and without its own fields', async () => {
  const thrown = Object.assign(new Error('no way to http://h/v1?key=package-secret'), { prompt: 'the conversation' })
  thrown.cause = new Error('package-secret')
  const model = aiSdk(
    {
      specificationVersion: 'v4',
      provider: 'fake.chat',
      modelId: 'm',
      supportedUrls: {},
      doGenerate: () => Promise.reject(thrown),
      doStream: () => Promise.reject(thrown),
    },
    { secrets: ['package-secret'] },
  )
  const { error } = await askInVain(model)
  expect(error.cause).toMatchObject({ message: 'no way to http://h/v1?key=[key]', cause: { message: '[key]' } })
  expect(all(error)).not.toMatch(/package-secret|the conversation/)
})

test('an API version and the names of models and deployments are not keys', () => {
  const baseUrl = 'https://h.example/openai/deployments/gpt-4o-mini-2024-07-18/v1?api-version=2025-04-01-preview'
  expect(scrubber({ baseUrl })(baseUrl)).toBe(baseUrl)
  expect(addressOf(baseUrl)).toBe('https://h.example/openai/deployments/gpt-4o-mini-2024-07-18/v1')
  expect(addressOf('https://h.example/0a1b2c3d4e5f60718293/v1?key=x')).toBe('https://h.example/[key]/v1')
})

test('a text of backslashes is searched in linear time', () => {
  const scrub = scrubber({ keys: ['\\\\\\\\\\\\\\\\x', 'sk-secret'] })
  const startedAt = performance.now()
  scrub('\\'.repeat(50_000))
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

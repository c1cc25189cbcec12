import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import { type Reply, type ScriptedRequest, scriptedModel } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createModels, type ModelDefinition, type ProbeCheck, probeModel } from '../index.ts'
import { proxyFor } from './proxy.ts'

async function checksOf(
  definition: Partial<ModelDefinition>,
  environment = { KEY: 'sk-secret-1' },
): Promise<ProbeCheck[]> {
  const main = { provider: 'openai', model: 'gpt-4o-mini', keyVariable: 'KEY', ...definition }
  const probe = createModels({ models: { main } }, environment).probe('main')!
  const checks: ProbeCheck[] = []
  for await (const check of probeModel(probe, new AbortController().signal)) checks.push(check)
  return checks
}

async function at(script: (request: ScriptedRequest) => Reply): Promise<string> {
  const server = await scriptedModel({ scripts: { '*': script } })
  onTestFinished(() => server.close())
  return server.url
}

/** A server on a real port that is not a model. */
async function standIn(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

const usage = { prompt_tokens: 20, completion_tokens: 5 }
const works = ({ messages, tools, body }: ScriptedRequest): Reply => {
  if ((body as { response_format?: unknown }).response_format) return { text: '{"ready": true}', usage }
  if (messages.at(-1)?.role === 'tool') return { text: 'The code is k7-heron.', usage }
  if (tools.length > 0) return { calls: [{ name: 'get_code', arguments: { place: 'here' } }], usage }
  return { text: 'ready', usage }
}
const results = (checks: readonly ProbeCheck[]) => checks.map(({ name, result }) => [name, result])

describe('a model under test', () => {
  test('that works answers, reports its usage, calls a tool and returns JSON', async () => {
    const checks = await checksOf({ baseUrl: await at(works) })
    expect(results(checks)).toEqual([
      ['answer', 'ok'],
      ['usage', 'ok'],
      ['tool call', 'ok'],
      ['structured output', 'ok'],
      ['clock', 'ok'],
    ])
    expect(checks[0]!.detail).toMatch(/^first words after \d+ ms, \d+ ms in all/)
    expect(checks[1]!.detail).toMatch(/^20 tokens in, 5 out, \$0\.0000060/)
  })

  test('that only talks gets warnings, not failures', async () => {
    const checks = await checksOf({ baseUrl: await at(() => ({ text: 'ready', usage: null })) })
    expect(results(checks)).toEqual([
      ['answer', 'ok'],
      ['usage', 'warning'],
      ['tool call', 'warning'],
      ['structured output', 'warning'],
      ['clock', 'ok'],
    ])
  })

  test('that refuses tools or JSON fails only there', async () => {
    const refuses = (request: ScriptedRequest): Reply =>
      request.tools.length > 0 || (request.body as { response_format?: unknown }).response_format
        ? { status: 400, body: { error: { message: 'tools are not supported' } } }
        : { text: 'ready', usage }
    const checks = await checksOf({ baseUrl: await at(refuses) })
    expect(results(checks).slice(2, 4)).toEqual([
      ['tool call', 'failed'],
      ['structured output', 'warning'],
    ])
    expect(checks[2]!.diagnosis?.fault).toBe('request')
  })

  test('on a machine with a wrong clock reports by how much', async () => {
    const late = new Date(Date.now() - 600_000).toUTCString()
    const baseUrl = await standIn((_, response) => response.writeHead(401, { date: late }).end('{}'))
    expect((await checksOf({ baseUrl })).at(-1)).toMatchObject({
      name: 'clock',
      result: 'warning',
      detail: expect.stringMatching(/6\d\d s ahead of/),
    })
  })
})

describe('failures are reported with what to do', () => {
  const error = (message: string, code?: string) => ({ error: { message, ...(code !== undefined && { code }) } })
  const replies: [string, Reply, string][] = [
    ['a key that is refused', { status: 401, body: error('Incorrect API key provided: sk-secret-1') }, 'key'],
    ['an unknown model', { status: 404, body: error('The model `x` does not exist', 'model_not_found') }, 'model_name'],
    ['an unknown model, as DeepSeek reports it', { status: 400, body: error('Model Not Exist') }, 'model_name'],
    ['an unknown path', { status: 404, body: 'Not Found' }, 'address'],
    [
      'an empty account',
      { status: 429, body: error('You exceeded your current quota', 'insufficient_quota') },
      'quota',
    ],
    ['an empty account, as DeepSeek reports it', { status: 402, body: error('Insufficient Balance') }, 'quota'],
    ['too many requests', { status: 429, body: error('Rate limit reached') }, 'rate_limited'],
    ['overload', { status: 503 }, 'overloaded'],
    ['a provider failure', { status: 500 }, 'provider'],
    ['a stream that is cut', { text: 'one two three', cutAfterChunks: 2 }, 'stream_cut'],
    ['an option that is refused', { status: 400, body: error('Unknown parameter: verbosity') }, 'request'],
  ]
  test.each(replies)('%s', async (_, reply, fault) => {
    const [answer] = await checksOf({ baseUrl: await at(() => reply) })
    expect(answer).toMatchObject({ name: 'answer', result: 'failed', diagnosis: { fault } })
    expect(JSON.stringify(answer)).not.toContain('sk-secret-1')
  })

  test('a web page', async () => {
    const baseUrl = await standIn((_, response) => response.end('<!doctype html><title>Welcome</title>'))
    expect((await checksOf({ baseUrl }))[0]).toMatchObject({ diagnosis: { fault: 'address' } })
  })

  test('a redirect to another address', async () => {
    const baseUrl = await standIn((_, response) => response.writeHead(301, { location: 'https://example.com/' }).end())
    expect((await checksOf({ baseUrl }))[0]).toMatchObject({ diagnosis: { fault: 'address' } })
  })

  test('a port where nothing listens', async () => {
    const server = createTcpServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const [answer] = await checksOf({ baseUrl: `http://127.0.0.1:${port}/v1` })
    expect(answer).toMatchObject({ diagnosis: { fault: 'refused' } })
  })

  test('an unknown host', async () => {
    expect((await checksOf({ baseUrl: 'http://oxbow.invalid/v1' }))[0]).toMatchObject({ diagnosis: { fault: 'dns' } })
  })

  test('TLS to a server without TLS', async () => {
    const baseUrl = (await standIn((_, response) => response.end())).replace('http:', 'https:')
    expect((await checksOf({ baseUrl }))[0]).toMatchObject({ diagnosis: { fault: 'tls' } })
  })

  test('a silent server', async () => {
    const baseUrl = await standIn(() => {})
    const [answer] = await checksOf({ baseUrl, timeouts: { firstByteMs: 100 } })
    expect(answer).toMatchObject({ diagnosis: { fault: 'timeout' } })
  })
})

test.each([
  ['https://api.example.com/v1', { HTTPS_PROXY: 'http://user:secret@proxy:3128' }, 'http://proxy:3128'],
  ['https://api.example.com/v1', { HTTP_PROXY: 'http://proxy:3128' }, undefined],
  ['https://api.example.com/v1', { https_proxy: 'http://a:1', HTTPS_PROXY: 'http://b:1' }, 'http://a:1'],
  ['https://api.example.com/v1', { HTTPS_PROXY: 'http://p:1', NO_PROXY: 'other.com, .example.com' }, undefined],
  ['https://api.example.com/v1', { HTTPS_PROXY: 'http://p:1', NO_PROXY: 'example.com' }, 'http://p:1'],
  ['http://localhost:8000/v1', { HTTP_PROXY: 'http://p:1', NO_PROXY: 'localhost:8000' }, undefined],
  ['http://localhost:8000/v1', { HTTP_PROXY: 'http://p:1', NO_PROXY: 'localhost:80' }, 'http://p:1'],
  ['http://localhost:8000/v1', { HTTP_PROXY: 'http://p:1', NO_PROXY: '*' }, undefined],
])('%s with %j goes through %s', (address, environment, proxy) => {
  expect(proxyFor(address, environment)).toBe(proxy)
})

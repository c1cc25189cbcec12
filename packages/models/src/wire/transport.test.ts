// Requests over node:http: compressed bodies, reused connections, proxies, and a caller's own `fetch`.
import http, { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, constants, createGzip, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ask, askInVain, frame, modelAt, sse, text } from '../asking.fixture.ts'

async function listening(listener: RequestListener) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const body = sse([frame({ content: 'hello 天气' }), frame({}, 'stop')])

describe('B1: a compressed body', () => {
  test.each([
    ['gzip', gzipSync(body)],
    ['GZIP', gzipSync(body)],
    ['deflate', deflateSync(body)],
    ['br', brotliCompressSync(body)],
    ['identity', Buffer.from(body)],
  ])('in %s is decompressed', async (encoding, bytes) => {
    const { url } = await listening((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': encoding }).end(bytes)
    })
    expect(text((await ask(modelAt({ url }))).reply)).toBe('hello 天气')
  })

  test('arrives piece by piece as it is sent', async () => {
    const seen = Promise.withResolvers<void>()
    const { url } = await listening(async (_, response) => {
      const packer = createGzip()
      packer.pipe(response.writeHead(200, { 'content-encoding': 'gzip' }))
      packer.write(sse([frame({ content: 'first' })], ''))
      packer.flush(constants.Z_SYNC_FLUSH)
      // The end is sent only when the beginning has been read.
      await seen.promise
      packer.end(sse([frame({ content: ' second' }), frame({}, 'stop')]))
    })
    const reply = await modelAt({ url }).generate(
      { system: '', messages: [], tools: [] },
      { signal: AbortSignal.timeout(5_000), onDelta: () => seen.resolve() },
    )
    expect(text(reply)).toBe('first second')
  })

  test.each([
    ['that is broken', 'gzip', Buffer.concat([gzipSync(body).subarray(0, 20), Buffer.from('garbage garbage')])],
    ['of an unknown encoding', 'zstd', Buffer.from(body)],
  ])('%s is a cut answer, never a whole one', async (_, encoding, bytes) => {
    const { url } = await listening((_, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end(bytes)
    })
    expect((await askInVain(modelAt({ url }))).error).toMatchObject({ code: 'stream_cut', retryable: true })
  })
})

describe('B1: connections', () => {
  test('a request on a connection that is being closed is sent over another', async () => {
    let answered = 0
    const { url } = await listening((incoming, response) => {
      answered++
      // The second request on a connection finds it closed, as after a long idle time.
      if ((incoming.socket as { used?: boolean }).used) return void incoming.socket.resetAndDestroy()
      Object.assign(incoming.socket, { used: true })
      response.end(body)
    })
    const model = modelAt({ url })
    for (let i = 0; i < 3; i++) {
      await ask(model)
      await new Promise(setImmediate)
    }
    expect(answered).toBeGreaterThan(3)
  })

  test('a connection that breaks during a first request is an error', async () => {
    const { url } = await listening((incoming) => void incoming.socket.resetAndDestroy())
    expect((await askInVain(modelAt({ url }))).error).toMatchObject({ code: 'provider_error', retryable: true })
  })

  test('a connection that stays open after the answer has ended is closed', async () => {
    const closed = Promise.withResolvers<void>()
    const { url } = await listening((_, response) => {
      response.on('close', closed.resolve)
      response.write(body)
    })
    expect(text((await ask(modelAt({ url }))).reply)).toBe('hello 天气')
    await closed.promise
  })

  test('the proxy of the process is used', async () => {
    const asked: (string | undefined)[] = []
    const { url } = await listening((incoming, response) => {
      asked.push(incoming.url)
      response.end(body)
    })
    const before = http.globalAgent
    onTestFinished(() => {
      http.globalAgent = before
    })
    http.globalAgent = new http.Agent({ proxyEnv: { HTTP_PROXY: url } })
    expect(text((await ask(modelAt({ url: 'http://model.invalid/v1' }))).reply)).toBe('hello 天气')
    expect(asked).toEqual(['http://model.invalid/v1/chat/completions'])
  })
})

describe('a custom `fetch`', () => {
  test('sends the requests instead', async () => {
    const asked: unknown[] = []
    const own: typeof fetch = async (input, init) => {
      asked.push([input, init?.method, new Headers(init?.headers).get('authorization')])
      return new Response(body)
    }
    expect(text((await ask(modelAt({ url: 'http://model.invalid/v1' }, { fetch: own }))).reply)).toBe('hello 天气')
    expect(asked).toEqual([['http://model.invalid/v1/chat/completions', 'POST', 'Bearer sk-secret']])
  })

  test('that fails is reported as a network failure', async () => {
    const own: typeof fetch = async () => {
      throw Object.assign(new Error('no'), { code: 'ENOTFOUND' })
    }
    const { error } = await askInVain(modelAt({ url: 'http://model.invalid/v1' }, { fetch: own }))
    expect(error.message).toMatch(/\(ENOTFOUND\)/)
  })
})

test('of two headers that differ in letter case only, the custom one is sent', async () => {
  const seen: (string | undefined)[] = []
  const { url } = await listening((incoming, response) => {
    seen.push(incoming.headers.authorization)
    response.end(body)
  })
  await ask(modelAt({ url }, { headers: { Authorization: 'Bearer mine' } }))
  expect(seen).toEqual(['Bearer mine'])
})

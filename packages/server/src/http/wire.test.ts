// Bytes that never become a request.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { gate, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hostSystem } from '../identity/introspection/host-system.fixture.ts'
import { rigs } from '../test.fixture.ts'

const start = rigs()

function open(url: string): { socket: Socket; closed: Promise<unknown>; text(): string } {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const received: Buffer[] = []
  socket.on('data', (data) => received.push(data))
  socket.on('error', () => {})
  return {
    socket,
    closed: new Promise((resolve) => socket.once('close', resolve)),
    text: () => Buffer.concat(received).toString(),
  }
}

async function sent(url: string, ...parts: string[]): Promise<{ status: number; code: string; text: string }> {
  const { socket, closed, text } = open(url)
  for (const it of parts) socket.write(it)
  await closed
  const { error } = JSON.parse(text().slice(text().indexOf('\r\n\r\n')))
  return { status: Number(text().slice(9, 12)), code: error.code, text: text() }
}

const POST = 'POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n'

describe('refused before routing, in the usual error form:', () => {
  test.each([
    ['a request that is not HTTP', 'hello\r\n\r\n', 400, 'invalid_request'],
    ['an unknown method', 'BREW /api/chat HTTP/1.1\r\nhost: localhost\r\n\r\n', 400, 'invalid_request'],
    ['a header without an end', 'GET / HTTP/1.1\r\nhost: localhost\r\na\0b: 1\r\n\r\n', 400, 'invalid_request'],
    ['two content lengths', `${POST}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`, 400, 'invalid_request'],
    ['a missing host', 'GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'invalid_request'],
    ['a head that is too large', `GET / HTTP/1.1\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'head_too_large'],
    ['an unsupported expectation', `${POST}expect: tea\r\ncontent-length: 2\r\n\r\n{}`, 417, 'expectation_failed'],
  ])('%s', async (_, request, status, code) => {
    const { url } = await start()
    const answer = await sent(url, request)
    expect([answer.status, answer.code]).toEqual([status, code])
    expect(answer.text).toMatch(/^content-type: application\/json\r$/im)
    expect(answer.text).toMatch(/^x-content-type-options: nosniff\r$/im)
  })

  test('a head that is too large, also when the client keeps sending', async () => {
    const { url } = await start()
    const body = 'y'.repeat(500_000)
    const head = `${POST}x: ${'x'.repeat(20_000)}\r\ncontent-length: ${body.length}\r\n\r\n`
    expect(await sent(url, head, body)).toMatchObject({ status: 431 })
  })

  test('a body that misses its time limit', async () => {
    const { url, logged } = await start({ overrides: { 'server.limits.requestTime': '1s' } })
    expect(await sent(url, `${POST}content-length: 100\r\n\r\n{"mess`)).toMatchObject({
      status: 408,
      code: 'request_timeout',
    })
    expect(await sent(url, 'GET /healthz HTTP/1.1\r\nhost: loc')).toMatchObject({ status: 408 })
    expect(logged.filter((it) => it.level === 'error')).toEqual([])
  })

  test('an upgrade without its key', async () => {
    const { url, post } = await start({ replies: [{ text: 'Hi.' }] })
    await post('/agent/task?wait=5', { taskId: 't', message: 'Hi.' })
    const head = 'GET /agent/ws/t HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'
    expect(await sent(url, head)).toMatchObject({ status: 400, code: 'invalid_upgrade' })
  })
})

const UPGRADE =
  'GET /agent/ws/t HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n' +
  'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'

describe('a WebSocket request', () => {
  test('that is refused leaves no connection open, whatever the client sends next', async () => {
    const { url, service } = await start()
    const { socket, closed, text } = open(url)
    socket.write(`${UPGRADE}\r\n`)
    await once(socket, 'data')
    socket.write('x'.repeat(1_000))
    await closed
    expect(text()).toMatch(/^HTTP\/1\.1 404 /)
    await service.close()
  })

  test('that is aborted during authentication has no effect', async () => {
    const held = gate()
    const host = await hostSystem()
    onTestFinished(() => host.close())
    host.behave(async (_request, response) => {
      await held.pass()
      response.end('{"code":200,"user":{"userName":"ann"}}')
    })
    const { url, get, logged } = await start({
      overrides: { 'identity.mode': 'introspection', 'identity.introspection': { preset: 'ruoyi', url: host.url } },
    })
    const { socket, closed } = open(url)
    socket.write(`${UPGRADE}authorization: Bearer t1\r\n\r\n`)
    await held.reached
    socket.resetAndDestroy()
    await closed
    held.open()
    await until(() => logged.some((it) => it.msg === 'request' && it.path === '/agent/ws/t'))
    expect((await get('/healthz')).status).toBe(200)
  })
})

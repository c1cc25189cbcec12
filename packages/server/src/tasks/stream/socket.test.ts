import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { gate } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { messagesOf } from '../../agent-protocol/protocol.fixture.ts'
import { json, type Rig, rigs } from '../../test.fixture.ts'

const start = rigs()

interface Watched {
  readonly frames: { id: number; event: string; data: Record<string, unknown> }[]
  readonly socket: WebSocket
  /** The code with which the server closes the socket. */
  readonly closed: Promise<number>
}

async function watch({ url }: Rig, path: string, options: object = {}): Promise<Watched> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, options)
  const frames: Watched['frames'] = []
  socket.on('message', (data) => frames.push(JSON.parse(String(data))))
  const closed = once(socket, 'close').then(([code]) => code as number)
  await once(socket, 'open')
  return { socket, frames, closed }
}

/** The answer to a refused upgrade. */
async function refused({ url }: Rig, path: string, options: object = {}): Promise<[number, string]> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, options)
  const [, answer] = await once(socket, 'unexpected-response')
  let text = ''
  for await (const part of answer) text += part
  return [answer.statusCode, JSON.parse(text).error.code]
}

test('B9: a WebSocket has the frames of the event stream, from any position', async () => {
  const held = gate()
  const rig = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
  const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
  const live = await watch(rig, `/agent/ws/${taskId}`)
  held.open()
  expect(await live.closed).toBe(1000)
  expect(live.frames.at(-1)).toMatchObject({ event: 'done', data: { result: 'one two' } })
  const received = messagesOf(await (await rig.get(`/agent/stream/${taskId}`)).text())
  const whole = await watch(rig, `/agent/ws/${taskId}`)
  await whole.closed
  expect(whole.frames).toEqual(received)
  const rest = await watch(rig, `/agent/ws/${taskId}?after=${received[1]!.id}`)
  await rest.closed
  expect(rest.frames).toEqual(received.slice(2))
})

test('B9: a client that disconnects stops nothing', async () => {
  const held = gate()
  const rig = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
  const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
  const { socket, closed } = await watch(rig, `/agent/ws/${taskId}`)
  socket.close()
  await closed
  held.open()
  const received = messagesOf(await (await rig.get(`/agent/stream/${taskId}`)).text())
  expect(received.at(-1)).toMatchObject({ event: 'done' })
})

test('a refused upgrade gets an ordinary answer', async () => {
  const rig = await start()
  expect(await refused(rig, '/agent/ws/unknown')).toEqual([404, 'unknown_task'])
  expect(await refused(rig, '/nothing')).toEqual([404, 'not_found'])
  expect(await refused(rig, '/agent/ws/x', { headers: { host: 'evil.example' } })).toEqual([403, 'host_not_allowed'])
  for (const origin of ['http://evil.example', 'http://localhost:3000'])
    expect(await refused(rig, '/agent/ws/x', { origin })).toEqual([403, 'origin_not_allowed'])
  // An upgrade of a route without WebSockets is answered like an ordinary request.
  const socket = new WebSocket(`${rig.url.replace('http', 'ws')}/healthz`)
  const [, answer] = await once(socket, 'unexpected-response')
  expect(answer.statusCode).toBe(200)
  expect((await rig.get('/agent/ws/x')).status).toBe(426)
})

test('a client that offers an HTTP/2 upgrade is answered in HTTP/1.1, and its body is read', async () => {
  const rig = await start({ replies: [{ text: 'Done.' }] })
  const { hostname, port } = new URL(rig.url)
  const body = JSON.stringify({ message: 'Go.' })
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST /agent/task?wait=30 HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\n` +
      `http2-settings: AAMAAABk\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  const answer = await text(socket)
  expect(answer).toMatch(/^HTTP\/1.1 200 /)
  expect(answer).toContain('"result":"Done."')
})

test('a stopping service tells its sockets to reconnect, and does not wait for them', async () => {
  const held = gate()
  const rig = await start({
    replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
    overrides: { 'server.shutdownGrace': '0ms' },
  })
  const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
  const { closed } = await watch(rig, `/agent/ws/${taskId}`)
  await rig.service.close()
  expect(await closed).toBe(1001)
  held.open()
})

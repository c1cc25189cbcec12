// A reader that does not read costs little, and misses nothing.
import { once } from 'node:events'
import { connect } from 'node:net'
import { gate, until } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { messagesOf, type SseMessage } from '../../agent-protocol/protocol.fixture.ts'
import { json, rigs } from '../../test.fixture.ts'

const start = rigs()
/** More than the kernel buffers for a connection, about 4 MB on Linux, and more than the server keeps for it. */
const TEXT = Array.from({ length: 2_450 }, (_, i) => String(i).padEnd(4_000, 'x')).join(' ')

const textIn = (messages: readonly Pick<SseMessage, 'event' | 'data'>[]): string =>
  messages
    .filter((it) => it.event === 'message')
    .map((it) => it.data.text)
    .join('')

test('B9: a slow reader of a task loses nothing, in order, with an end', { timeout: 60_000 }, async () => {
  const held = gate()
  const rig = await start({ replies: [{ text: TEXT, hold: { atChunk: 1, gate: held } }] })
  const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
  const { hostname, port } = new URL(rig.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.pause()
  socket.write(`GET /agent/stream/${taskId} HTTP/1.0\r\nhost: localhost\r\n\r\n`)
  const web = new WebSocket(`${rig.url.replace('http', 'ws')}/agent/ws/${taskId}`)
  const frames: SseMessage[] = []
  web.on('message', (data) => frames.push(JSON.parse(String(data))))
  await once(web, 'open')
  web.pause()
  await until(async () => /oxbow_streams_open 1/.test(await (await rig.get('/metrics')).text()))
  held.open()
  await until(async () => (await json(rig.get(`/agent/task/${taskId}`))).state === 'COMPLETED', { deadlineMs: 30_000 })

  const parts: Buffer[] = []
  socket.on('data', (part) => parts.push(part))
  socket.resume()
  const closed = once(web, 'close')
  web.resume()
  await Promise.all([once(socket, 'close'), closed])
  const answer = Buffer.concat(parts).toString()
  const messages = messagesOf(answer.slice(answer.indexOf('\r\n\r\n') + 4))
  for (const received of [messages, frames]) {
    expect(textIn(received)).toBe(TEXT)
    expect(received.at(-1)!.event).toBe('done')
    const ids = received.map((it) => it.id)
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b))
    // The reader was behind: dropped fragments arrive in one piece.
    expect(Math.max(...received.map((it) => String(it.data.text ?? '').length))).toBeGreaterThan(40_000)
  }
})

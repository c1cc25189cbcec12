// Readers that connect but never read use a bounded amount of memory, and slow nobody down.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gate, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { accepted } from '../ag-ui/client.fixture.ts'
import { endOf, framesOf, json, rigs, runInput, textOf } from '../test.fixture.ts'
import { readStream } from './reader.fixture.ts'
import { type Sse, sseStreams } from './sse.ts'

const start = rigs()
const READERS = 200
/** More than the kernel buffers for a connection, about 4 MB on Linux, and more than the server keeps for it. */
const CHUNKS = 3_500
const CHUNK_LENGTH = 4_000
const MEBIBYTE = 1_048_576

/** A connection that requests the stream and never reads. */
async function connectWithoutReading(url: string, path: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
  return socket
}

/** The rest of the event stream as text. */
async function readAll(socket: Socket): Promise<string> {
  const parts: Buffer[] = []
  socket.on('data', (part) => parts.push(part))
  socket.resume()
  await once(socket, 'close')
  const answer = Buffer.concat(parts)
  const bodyAt = answer.indexOf('\r\n\r\n') + 4
  const body: Buffer[] = []
  for (let at = bodyAt; at < answer.length; ) {
    const lineEnd = answer.indexOf('\r\n', at)
    const size = Number.parseInt(answer.toString('latin1', at, lineEnd), 16)
    if (size === 0) break
    body.push(answer.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
  return Buffer.concat(body).toString()
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const used = (): number => {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

test(`${READERS} readers that never read a long turn`, { timeout: 60_000 }, async () => {
  const held = gate()
  const text = Array.from({ length: CHUNKS }, (_, i) => String(i).padEnd(CHUNK_LENGTH, 'x')).join(' ')
  const { url, post, get } = await start({
    replies: [{ text, hold: { atChunk: 1, gate: held } }, { text: 'Quick.' }],
  })
  const good = readStream(await post('/api/chat/stream', runInput('Hi')))
  await held.reached
  const path = '/api/sessions/thread/stream'
  const readers = await Promise.all(Array.from({ length: READERS }, () => connectWithoutReading(url, path)))
  await until(async () => (await (await get('/metrics')).text()).includes(`oxbow_streams_open ${READERS + 1}`))

  const before = used()
  let most = before
  const watching = setInterval(() => {
    const { heapUsed, external } = process.memoryUsage()
    most = Math.max(most, heapUsed + external)
  }, 20)
  held.open()
  const frames = await good.rest()
  clearInterval(watching)

  // Active readers and other requests are not affected.
  expect(textOf(frames)).toBe(text)
  expect(endOf(frames).type).toBe('RUN_FINISHED')
  const startedAt = performance.now()
  expect((await json(post('/api/chat', { message: 'Hi' }))).reply).toBe('Quick.')
  expect(performance.now() - startedAt).toBeLessThan(2_000)

  // Without a limit, the data that the kernel does not buffer would be about 2 GB.
  expect(most - before).toBeLessThan(200 * MEBIBYTE)
  expect(used() - before).toBeLessThan(100 * MEBIBYTE)

  // A late reader gets everything, in order, with an end.
  const late = framesOf(await readAll(readers[7]!))
  // The client's reducer is quadratic in the number of fragments.
  await accepted(late.filter((it, i) => it.type !== 'TEXT_MESSAGE_CONTENT' || i < 20))
  expect(textOf(late)).toBe(text)
  expect(endOf(late).type).toBe('RUN_FINISHED')
  // The reader was behind: dropped fragments arrive in one piece.
  const longest = Math.max(...late.map((it) => String(it.delta ?? '').length))
  expect(longest).toBeGreaterThan(10 * CHUNK_LENGTH)
  expect(await (await get('/metrics')).text()).toMatch(/oxbow_stream_repairs_total [1-9]/)

  for (const it of readers) it.destroy()
  await until(async () => (await (await get('/metrics')).text()).includes('oxbow_streams_open 0'))
})

describe('one stream', () => {
  async function opened(heartbeatMs: number, stalledMs?: number) {
    const responses: ServerResponse[] = []
    const server = createServer((_request, response) => responses.push(response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const socket = await connectWithoutReading(`http://127.0.0.1:${port}`, '/')
    const response = await until(() => responses[0])
    const streams = sseStreams(heartbeatMs, stalledMs)
    const close = () => {
      socket.destroy()
      streams.close()
      server.close()
    }
    return { socket, response, streams, sse: streams.open(response, {}), close }
  }

  /** Writes until the reader's buffer is full, and returns what the writer waits for. */
  async function fill(sse: Sse): Promise<{ drained: Promise<void> }> {
    for (;;) {
      const waiting = sse.write('x'.repeat(10_000))
      if (waiting === undefined) continue
      const soon = waiting.then(() => true)
      let turns = 50
      const patience = async (): Promise<boolean> => {
        while (turns-- > 0) await new Promise(setImmediate)
        return false
      }
      if (!(await Promise.race([soon, patience()]))) return { drained: waiting }
    }
  }

  test('blocks its writer while nobody reads, and releases it afterwards', async () => {
    const { socket, response, sse, close } = await opened(60_000)
    const { drained } = await fill(sse)
    expect(response.writableLength).toBeLessThan(128 * 1_024)
    socket.on('data', () => {})
    socket.resume()
    await drained
    close()
  })

  test('releases its writer when the reader disconnects', async () => {
    const { socket, sse, close } = await opened(60_000)
    const { drained } = await fill(sse)
    socket.destroy()
    await drained
    expect(sse.signal.aborted).toBe(true)
    expect(sse.write('more')).toBeUndefined()
    close()
  })

  test('is closed when its reader reads nothing for too long', async () => {
    const { response, sse, close } = await opened(5, 20)
    const { drained } = await fill(sse)
    await drained
    expect(response.destroyed).toBe(true)
    expect(sse.signal.aborted).toBe(true)
    close()
  })

  test('gets comments while it is idle, and none while its reader is behind', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { socket, response, streams, sse, close } = await opened(5)
    expect(streams.count).toBe(1)
    sse.write('data: {}\n\n')
    const received: string[] = []
    socket.on('data', (data) => received.push(data.toString()))
    socket.resume()
    vi.advanceTimersByTime(5)
    await until(() => received.join('').includes(': keep-alive\n\n'))
    socket.pause()
    await fill(sse)
    const length = response.writableLength
    vi.advanceTimersByTime(50)
    expect(response.writableLength).toBe(length)
    close()
  })
})

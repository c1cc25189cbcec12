// The WebSocket of tasks against those who do not speak it as they should.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { OF_BOB, startTarget, type Target } from './service.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 150)
const BOUND_MS = 5_000

let target: Target
beforeAll(async () => {
  target = await startTarget('api-keys')
})
afterAll(() => target.close())

interface Handshake {
  readonly task: string
  readonly query: string
  readonly method: string
  readonly version: string
  readonly key: string
  readonly more: readonly (readonly [string, string])[]
  readonly caller: 'ann' | 'nobody'
}

const text = fc.string({ unit: 'grapheme-ascii', maxLength: 20 }).map((it) => it.replace(/[\r\n]/g, ''))
const good = randomBytes(16).toString('base64')
const handshake: fc.Arbitrary<Handshake> = fc.record({
  task: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom('task-ann', 'agent-done-ann', 'task-bob', 'done-bob:t1') },
    text.map(encodeURIComponent),
  ),
  query: fc.constantFrom('', '', '?after=1', '?after=-1', '?after=x', '?userId=bob', '?after=1&after=2'),
  method: fc.constantFrom('GET', 'GET', 'GET', 'POST', 'HEAD'),
  version: fc.constantFrom('13', '13', '13', '8', '99', '', 'x'),
  key: fc.oneof({ weight: 4, arbitrary: fc.constant(good) }, text),
  more: fc.array(
    fc.tuple(fc.constantFrom('sec-websocket-protocol', 'sec-websocket-extensions', 'origin', 'content-length'), text),
    { maxLength: 2 },
  ),
  caller: fc.constantFrom('ann', 'ann', 'ann', 'nobody'),
})
const frames = fc.array(
  fc.record({
    first: fc.integer({ min: 0, max: 255 }),
    masked: fc.boolean(),
    length: fc.constantFrom(0, 1, 125, 126, 65_535, 70_000, 2 ** 40),
    payload: fc.uint8Array({ maxLength: 200 }),
  }),
  { maxLength: 6 },
)

/** A frame whose parts need not fit together. */
function bytesOf({
  first,
  masked,
  length,
  payload,
}: {
  first: number
  masked: boolean
  length: number
  payload: Uint8Array
}) {
  const mask = masked ? 0x80 : 0
  const head =
    length < 126
      ? Buffer.from([first, mask | length])
      : length < 65_536
        ? Buffer.from([first, mask | 126, length >> 8, length & 255])
        : Buffer.concat([Buffer.from([first, mask | 127]), bigEndian(length)])
  return Buffer.concat([head, masked ? Buffer.from([0, 0, 0, 0]) : Buffer.alloc(0), payload])
}

function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}

function open({ task, query, method, version, key, more, caller }: Handshake): { socket: Socket; received: Buffer[] } {
  const { hostname, port } = new URL(target.url)
  const socket = connect(Number(port), hostname)
  const received: Buffer[] = []
  socket.on('data', (data) => received.push(data))
  socket.on('error', () => {})
  const headers = [
    ['host', 'localhost'],
    ['upgrade', 'websocket'],
    ['connection', 'Upgrade'],
    ['sec-websocket-version', version],
    ['sec-websocket-key', key],
    ...(caller === 'ann' ? [['authorization', `Bearer ${target.keys.ann}`]] : []),
    ...more,
  ]
  const fields = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`${method} /agent/ws/${task}${query} HTTP/1.1\r\n${fields}\r\n`)
  return { socket, received }
}

test('no handshake and no frame makes it fail, and none shows what is another user’s', async () => {
  const statuses = new Set<number>()
  await fc.assert(
    fc.asyncProperty(handshake, frames, async (asked, sent) => {
      const { socket, received } = open(asked)
      const late = setTimeout(() => socket.destroy(new Error('late')), BOUND_MS)
      const closed = once(socket, 'close')
      await Promise.race([once(socket, 'data').catch(() => {}), closed])
      for (const it of sent) if (!socket.destroyed) socket.write(bytesOf(it))
      socket.end()
      await closed
      clearTimeout(late)
      const answer = Buffer.concat(received).toString('latin1')
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])
      statuses.add(status)
      expect(socket.errored?.message).not.toBe('late')
      expect([status, status < 500]).toEqual([status, true])
      expect(answer).not.toContain(OF_BOB)
      if (asked.caller === 'nobody') expect(status).not.toBe(101)
      // What was not upgraded is refused in the form of every refusal.
      if (status >= 400 && asked.method !== 'HEAD')
        expect(answer).toMatch(/\{"error":\{"code":"[a-z_]+","message":".+"/)
    }),
    { numRuns: RUNS },
  )
  expect([...statuses]).toEqual(expect.arrayContaining([101, 400, 401, 404]))
  expect((await fetch(`${target.url}/readyz`)).status).toBe(200)
  expect(target.logged.filter((it) => it.level === 'error')).toEqual([])
}, 600_000)

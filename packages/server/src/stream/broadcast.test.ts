// Many readers of one turn.
import { once } from 'node:events'
import type { Event, SessionItem } from '@oxbow/core'
import { until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { type Beginning, type Broadcast, broadcasts, type Piece, type ReadOutcome } from './broadcast.ts'
import { pump } from './pump.ts'

const READERS = 100
const fragment = (n: number, text: string): SessionItem => ({
  type: 'text.delta',
  turnId: 't',
  step: 1,
  block: 0,
  offset: n * text.length,
  text,
})
const event = (seq: number, type: 'step.started' | 'turn.finished'): SessionItem =>
  ({ seq, at: 0, type, turnId: 't' }) as Event

interface ReaderResult {
  readonly texts: string[]
  readonly outcome: Promise<ReadOutcome>
}

/** Reads everything. With `takes`, the reader's first write finishes only when that resolves. */
function reader(
  broadcast: Broadcast,
  options: { id?: number; takes?: Promise<unknown>; signal?: AbortSignal } = {},
): ReaderResult {
  const { id = 0, takes, signal = new AbortController().signal } = options
  const texts: string[] = []
  const wire = {
    signal: new AbortController().signal,
    write(text: string) {
      texts.push(text)
      return texts.length === 1 && takes !== undefined ? takes.then(() => {}) : undefined
    },
  }
  return { texts, outcome: broadcast.read({ id, wire, signal }) }
}

/** Items that arrive when the gate opens, encoded as events only or with fragments. */
function beginning(
  items: readonly SessionItem[],
  options: { opens: Promise<unknown>; fragments?: boolean; stays?: boolean },
) {
  const encoded: SessionItem[] = []
  let ended = false
  let seq = 0
  const made: Beginning = {
    startedAfter: 0,
    async *follow(signal) {
      yield event(1, 'step.started')
      await options.opens
      yield* items
      if (options.stays) await once(signal, 'abort')
    },
    encoding: {
      take(item): Piece[] {
        encoded.push(item)
        if ('seq' in item) seq = item.seq
        ended = item.type === 'turn.finished'
        if ('seq' in item) return [{ id: seq, text: `${item.type};`, always: ended }]
        if (options.fragments === false || item.type !== 'text.delta') return []
        return [{ id: seq + 0.5, text: item.text, always: false }]
      },
      get ended() {
        return ended
      },
      fail: () => [],
    },
  }
  return { made, encoded }
}

test('each item is encoded once, and every reader gets all of them in order', async () => {
  const burst = Promise.withResolvers<void>()
  const items = [...Array.from({ length: 2_000 }, (_, n) => fragment(n, 'word ')), event(2, 'turn.finished')]
  const { made, encoded } = beginning(items, { opens: burst.promise })
  const broadcast = broadcasts(pump()).open('x', () => made)
  const readers = Array.from({ length: READERS }, () => reader(broadcast))
  burst.resolve()
  for (const { texts, outcome } of readers) {
    expect(await outcome).toEqual({ type: 'ended', whole: true })
    expect(texts.join('')).toBe(`step.started;${'word '.repeat(2_000)}turn.finished;`)
    // Items that arrive together are written together.
    expect(texts.length).toBeLessThan(20)
  }
  expect(encoded).toHaveLength(2_002)
})

test('items that a form omits are written to no reader', async () => {
  const burst = Promise.withResolvers<void>()
  const items = [...Array.from({ length: 2_000 }, (_, n) => fragment(n, 'word ')), event(2, 'turn.finished')]
  const { made } = beginning(items, { opens: burst.promise, fragments: false })
  const { texts, outcome } = reader(broadcasts(pump()).open('x', () => made))
  burst.resolve()
  await outcome
  expect(texts.join('')).toBe('step.started;turn.finished;')
  expect(texts.length).toBeLessThanOrEqual(2)
})

describe('a reader that does not read', () => {
  const long = 'x'.repeat(100_000)
  const items = [...Array.from({ length: 100 }, (_, n) => fragment(n, long)), event(2, 'turn.finished')]

  test('delays nobody, is dropped, and learns its last position', async () => {
    const [burst, taken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { made } = beginning(items, { opens: burst.promise })
    const broadcast = broadcasts(pump()).open('x', () => made)
    const slow = reader(broadcast, { takes: taken.promise })
    const quick = reader(broadcast)
    burst.resolve()
    expect(await quick.outcome).toEqual({ type: 'ended', whole: true })
    expect(quick.texts.join('')).toHaveLength('step.started;turn.finished;'.length + 100 * long.length)
    expect(slow.texts).toEqual(['step.started;'])
    taken.resolve()
    expect(await slow.outcome).toEqual({ type: 'lost', id: 1, seq: 1, progress: new Map() })
  })

  test('slows the turn down when it is the only one', async () => {
    const [burst, taken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { made, encoded } = beginning(items, { opens: burst.promise })
    const slow = reader(
      broadcasts(pump()).open('x', () => made),
      { takes: taken.promise },
    )
    burst.resolve()
    for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
    expect(encoded.length).toBeLessThan(10)
    taken.resolve()
    expect(await slow.outcome).toEqual({ type: 'ended', whole: true })
  })
})

test('a reader that leaves gets a position to resume from', async () => {
  const left = new AbortController()
  const { made } = beginning([fragment(0, 'one '), fragment(1, 'two ')], { opens: Promise.resolve(), stays: true })
  const { texts, outcome } = reader(
    broadcasts(pump()).open('x', () => made),
    { signal: left.signal },
  )
  await until(() => texts.join('').includes('two'))
  left.abort()
  const block = { kind: 'text', callId: '', tool: '', length: 8 }
  expect(await outcome).toEqual({ type: 'left', id: 1.5, seq: 1, progress: new Map([[0, block]]) })
})

test('a reader begins after what it already has', async () => {
  const burst = Promise.withResolvers<void>()
  const { made } = beginning([fragment(0, 'one '), event(2, 'turn.finished')], { opens: burst.promise })
  const { texts, outcome } = reader(
    broadcasts(pump()).open('x', () => made),
    { id: 1 },
  )
  burst.resolve()
  await outcome
  expect(texts.join('')).toBe('one turn.finished;')
})

test('writing to many readers does not starve other work', async () => {
  const work = pump()
  let written = 0
  const busy = (): boolean => {
    const until = performance.now() + 1
    while (performance.now() < until);
    written += 1
    return false
  }
  for (let n = 0; n < READERS; n++) work.wake(() => busy())
  await new Promise(setImmediate)
  expect(written).toBeLessThan(READERS)
})

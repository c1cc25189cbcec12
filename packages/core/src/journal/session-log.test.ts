// The log that folds a write at once and stores it in order, on a real store whose appends a test may hold or fail.
import { memory } from '@oxbow/backends'
import { type Gate, gate } from '@oxbow/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OxbowError } from '../errors.ts'
import { type EventBody, isEvent, type SessionItem } from '../events/types.ts'
import type { Journal } from '../ports.ts'
import type { Draft } from './draft.ts'
import { liveStep } from './live-step.ts'
import { SessionLog } from './session-log.ts'

const key = { tenant: 'default', user: 'ann', session: 's1' }
const never = (): boolean => false

const opened: EventBody = {
  type: 'session.opened',
  schemaVersion: 1,
  key,
  agent: { name: 'helper', version: '1' },
}
const started = (turnId: string): EventBody => ({
  type: 'turn.started',
  turnId,
  input: [{ type: 'text', text: turnId }],
  surface: 'library',
  principal: { user: 'ann' },
  agent: { name: 'helper', version: '1' },
  options: {},
})
const progress = (text: string): SessionItem => ({ type: 'progress.delta', turnId: 't', step: 1, callId: 'c', text })

function logOn(journal: Journal): SessionLog {
  return new SessionLog(key, journal, {
    now: Date.now,
    faultPoint: undefined,
    secretsOf: () => undefined,
    limitsOf: () => undefined,
  })
}

/** The journal with `before` run ahead of each append. */
const withAppend = (journal: Journal, before: () => Promise<void>): Journal => ({
  ...journal,
  append: async (...args) => {
    await before()
    return journal.append(...args)
  },
})

function heldJournal(): { journal: Journal; appends: Gate[]; hold: (count: number) => void } {
  const appends: Gate[] = []
  let holding = 0
  const journal = withAppend(memory().journal, async () => {
    if (holding === 0) return
    holding -= 1
    const it = gate()
    appends.push(it)
    await it.pass()
  })
  return {
    journal,
    appends,
    hold: (count) => {
      holding = count
    },
  }
}

/** Reads items until `count` have come. */
async function take(reader: AsyncIterable<SessionItem>, count: number): Promise<SessionItem[]> {
  const items: SessionItem[] = []
  for await (const it of reader) {
    items.push(it)
    if (items.length === count) break
  }
  return items
}
const named = (items: readonly SessionItem[]): string[] =>
  items.map((it) => (it.type === 'progress.delta' ? it.text : it.type === 'turn.started' ? it.turnId : it.type))

describe('a write ahead of the store', () => {
  test('is folded at once, and what is folded meanwhile is stored in one append', async () => {
    const { journal, hold, appends } = heldJournal()
    const log = logOn(journal)
    hold(1)
    const stored = [opened, started('a'), started('b')].map((it) => log.appendAhead((draft) => draft.add(it), never))
    expect(log.ahead.seq).toBe(3)
    expect(log.state.seq).toBe(0)
    await expect.poll(() => appends.length).toBe(1)
    appends[0]!.open()
    await Promise.all(stored)
    expect(log.state).toBe(log.ahead)
    expect((await journal.read(key, 0)).map((it) => it.type)).toEqual([
      'session.opened',
      'turn.started',
      'turn.started',
    ])
    expect(appends).toHaveLength(1)
  })

  test('is stored with everything else that the same turn of the event loop folds', async () => {
    const { journal } = memory()
    const sizes: number[] = []
    const log = logOn({
      ...journal,
      append: async (...args) => {
        sizes.push(args[2].length)
        return journal.append(...args)
      },
    })
    await log.append((draft) => draft.add(opened))
    const stored = log.appendAhead((draft) => draft.add(started('a')), never)
    await Promise.resolve()
    await Promise.all([stored, log.appendAhead((draft) => draft.add(started('b')), never)])
    expect(sizes).toEqual([1, 2])
  })

  test('refused by its build adds nothing and throws at once', async () => {
    const log = logOn(memory().journal)
    await log.append((draft) => draft.add(opened))
    expect(() =>
      log.appendAhead((draft) => {
        draft.add(started('a'))
        throw new Error('no')
      }, never),
    ).toThrow('no')
    expect(log.ahead.seq).toBe(1)
  })

  test('that adds nothing is durable when everything before it is', async () => {
    const { journal, hold, appends } = heldJournal()
    const log = logOn(journal)
    hold(1)
    const order: string[] = []
    const first = log.append((draft) => draft.add(opened)).then(() => order.push('event'))
    const second = log.append(() => {}).then(() => order.push('nothing'))
    appends[0]!.open()
    await Promise.all([first, second])
    expect(order).toEqual(['event', 'nothing'])
  })
})

describe('readers', () => {
  test('see stored events only, and a fragment behind the events that were folded before it', async () => {
    const { journal, hold, appends } = heldJournal()
    const log = logOn(journal)
    await log.append((draft) => draft.add(opened))
    const reader = log.follow(1)
    log.publish(progress('now'))
    hold(2)
    void log.appendAhead((draft) => draft.add(started('a')), never)
    log.publish(progress('behind a'))
    await expect.poll(() => appends.length).toBe(1)
    void log.appendAhead((draft) => draft.add(started('b')), never)
    log.publish(progress('behind b'))
    expect(named(await take(log.follow(0), 1))).toEqual(['session.opened'])
    const items = take(reader, 5)
    appends[0]!.open()
    await expect.poll(() => appends.length).toBe(2)
    appends[1]!.open()
    expect(named(await items)).toEqual(['now', 'a', 'behind a', 'b', 'behind b'])
  })

  test('that join while fragments wait get each fragment once', async () => {
    const { journal, hold, appends } = heldJournal()
    const log = logOn(journal)
    await log.append((draft) => draft.add(opened, started('t')))
    const live = liveStep(key, 't', 1)
    log.live = live
    log.publish(live.push({ type: 'text', block: 0, text: 'one ' }))
    hold(1)
    void log.appendAhead((draft) => draft.add(started('later')), never)
    log.publish(live.push({ type: 'text', block: 0, text: 'two' }))
    const items = take(log.follow(), 3)
    await expect.poll(() => appends.length).toBe(1)
    appends[0]!.open()
    expect((await items).map((it) => (it.type === 'text.delta' ? it.text : it.type))).toEqual([
      'one ',
      'turn.started',
      'two',
    ])
  })
})

describe('another writer', () => {
  test('that was first: what waits is folded again on its events, and what no longer fits is refused', async () => {
    const { journal, hold, appends } = heldJournal()
    const [ours, theirs] = [logOn(journal), logOn(journal)]
    await ours.append((draft) => draft.add(opened))
    await theirs.catchUp()
    hold(1)
    const onlyFirst = (draft: Draft): void => {
      if (draft.state.turn !== undefined) throw new Error('too late')
      draft.add(started('a'))
    }
    const refused = ours.appendAhead(onlyFirst, never)
    const kept = ours.appendAhead((draft) => draft.add(started('b')), never)
    await expect.poll(() => appends.length).toBe(1)
    await theirs.append((draft) => draft.add(started('theirs')))
    appends[0]!.open()
    await expect(refused).rejects.toThrow('too late')
    await kept
    expect(named(await journal.read(key, 1))).toEqual(['theirs', 'b'])
    expect(ours.state.seq).toBe(3)
  })

  test('whatever the interleaving, every write is stored once and every reader sees each event once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ log: fc.nat({ max: 2 }), yields: fc.nat({ max: 3 }) }), { maxLength: 40 }),
        fc.scheduler(),
        async (writes, scheduler) => {
          const { journal } = memory()
          const slow = withAppend(journal, () => scheduler.schedule(Promise.resolve(), 'append'))
          const logs = [logOn(slow), logOn(slow), logOn(slow)]
          await logOn(journal).append((draft) => draft.add(opened))
          await Promise.all(logs.map((it) => it.catchUp()))
          const readers = logs.map((it) => take(it.follow(1), writes.length))
          const stored: Promise<void>[] = []
          for (const [n, { log, yields }] of writes.entries()) {
            stored.push(logs[log]!.appendAhead((draft) => draft.add(started(`t${n}`)), never))
            for (let i = 0; i < yields; i++) await Promise.resolve()
          }
          await scheduler.waitFor(Promise.all(stored))
          await Promise.all(logs.map((it) => it.catchUp()))
          const events = await journal.read(key, 1)
          const expected = writes.map((_, n) => `t${n}`)
          expect(named(events).toSorted()).toEqual(expected.toSorted())
          expect(events.map((it) => it.seq)).toEqual(events.map((_, n) => n + 2))
          for (const [n, log] of logs.entries()) {
            expect(log.state).toEqual(logs[0]!.state)
            expect(log.ahead).toBe(log.state)
            if (writes.length > 0) expect((await readers[n]!).filter(isEvent)).toEqual(events)
          }
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('a store that fails', () => {
  const full = new OxbowError('storage_full', 'The disk is full.', { retryable: true })

  test('for a moment: a patient write is stored later, one that is not is rejected', async () => {
    const { journal } = memory()
    let failures = 1
    const log = logOn(
      withAppend(journal, async () => {
        if (log.state.seq > 0 && failures-- > 0) throw full
      }),
    )
    await log.append((draft) => draft.add(opened))
    const patient = log.appendAhead((draft) => draft.add(started('patient')), never)
    await expect(log.append((draft) => draft.add(started('hasty')))).rejects.toThrow('The disk is full.')
    await patient
    expect(named(await journal.read(key, 1))).toEqual(['patient'])
    expect(log.ahead).toBe(log.state)
  })

  test('for good: everything that waits is rejected, and nothing of it remains', async () => {
    const { journal } = memory()
    const log = logOn(
      withAppend(journal, async () => {
        if (log.state.seq > 0) throw new OxbowError('storage_error', 'The disk failed.')
      }),
    )
    await log.append((draft) => draft.add(opened))
    const writes = ['a', 'b'].map((it) => log.appendAhead((draft) => draft.add(started(it)), never))
    for (const it of await Promise.allSettled(writes)) expect(it).toMatchObject({ status: 'rejected' })
    expect(log.ahead.seq).toBe(1)
  })

  test('after the append was stored all the same: a build that looks first stores nothing twice', async () => {
    const { journal } = memory()
    let failures = 1
    const log = logOn({
      ...journal,
      append: async (...args) => {
        const outcome = await journal.append(...args)
        if (log.state.seq > 0 && failures-- > 0) throw full
        return outcome
      },
    })
    await log.append((draft) => draft.add(opened))
    await log.appendAhead((draft) => {
      if (draft.state.turn === undefined) draft.add(started('once'))
    }, never)
    expect(named(await journal.read(key, 1))).toEqual(['once'])
  })
})

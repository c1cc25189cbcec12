import { eventsOf, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { bench, call, echo, ofType } from '../core.fixture.ts'
import { isEvent, type SessionItem } from '../index.ts'

/** What a careful reader makes of fragments: each block's text, by its offsets. */
function texts(items: readonly SessionItem[]): Map<string, string> {
  const blocks = new Map<string, string>()
  for (const it of items) {
    if (it.type !== 'text.delta') continue
    const name = `${it.turnId}.${it.step}.${it.block}`
    const known = blocks.get(name) ?? ''
    expect(it.offset, 'no fragment may leave a gap').toBeLessThanOrEqual(known.length)
    blocks.set(name, known.slice(0, it.offset) + it.text)
  }
  return blocks
}

describe('a follower', () => {
  test('that joins late gets the events, then the step so far, then the rest', async () => {
    const { session, server } = await bench(
      [call('echo', { text: 'x' }), { text: 'one two three', silentAfterChunks: 2 }],
      {
        tools: [echo],
      },
    )
    const stream = session.stream('Go.')
    for await (const it of stream) if (it.type === 'text.delta' && it.text.includes('two')) break
    const items: SessionItem[] = []
    for await (const it of session.follow({ after: 0 })) {
      items.push(it)
      if (it.type === 'text.delta') break
    }
    const events = items.filter(isEvent)
    expect(events.map((it) => it.seq)).toEqual(events.map((_, n) => n + 1))
    expect(items.at(-1)).toMatchObject({ type: 'text.delta', offset: 0, text: 'one two' })
    await session.interrupt()
    expect(await stream.result).toMatchObject({ text: 'one two' })
    server.assertDrained()
  })

  test('that stops reading loses fragments, never events, and its text has no gap', async () => {
    const words = Array.from({ length: 3_000 }, (_, n) => `w${n}`).join(' ')
    const { session } = await bench([{ text: words }, { text: 'again' }])
    const reader = session.follow({ after: 0 })
    const first = await Promise.race([reader.next(), session.submit('Go.', { turnId: 't1' }).then(() => reader.next())])
    expect(first.done).toBe(false)
    // Nothing is read until the turn is over.
    await until(async () => (await session.state()).finished.length === 1)
    const items: SessionItem[] = []
    for await (const it of reader) {
      items.push(it)
      if (it.type === 'turn.finished') break
    }
    const seqs = items.filter(isEvent).map((it) => it.seq)
    expect(seqs).toEqual(seqs.map((_, n) => seqs[0]! + n))
    expect(items.length).toBeLessThan(1_000)
    expect(ofType(items, 'model.finished')[0]?.message.blocks).toEqual([{ type: 'text', text: words }])
  })

  test('that falls behind in the middle of an answer continues with the answer so far', async () => {
    const words = Array.from({ length: 2_000 }, (_, n) => `w${n}`).join(' ')
    const { session } = await bench([{ text: words }])
    const stream = session.stream('Go.')
    const items: SessionItem[] = []
    for await (const it of stream) {
      items.push(it)
      // A reader that is slow now and then.
      if (items.length % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    const [text] = texts(items).values()
    expect(words.startsWith(text!)).toBe(true)
    expect(items.filter(isEvent).at(-1)?.type).toBe('turn.finished')
  })

  test('leaves when its signal fires, even while it waits', async () => {
    const { session } = await bench([])
    const controller = new AbortController()
    const reading = Array.fromAsync(session.follow({ after: 0, signal: controller.signal }))
    controller.abort()
    expect(await reading).toEqual([])
  })

  test('sees what another process appends', async () => {
    const { session, another } = await bench([{ text: 'from there' }])
    const reader = session.follow({ after: 0 })
    const other = another().session({ user: 'ann', session: 's1' })
    await other.run('Go.')
    // The memory back end has no other processes and sends no wake-ups; reading the state reads the journal.
    await session.state()
    const items: SessionItem[] = []
    for await (const it of reader) {
      items.push(it)
      if (it.type === 'turn.finished') break
    }
    expect(items.filter(isEvent)).toEqual(await eventsOf(session))
  })
})

describe('a snapshot', () => {
  test('is a cache: with it, without it and with a broken one the state is the same', async () => {
    const { session, backend, another } = await bench(() => ({ text: 'ok' }))
    for (let n = 0; n < 110; n++) await session.run(`Turn ${n}.`)
    const state = await session.state()
    const snapshot = await backend.journal.getSnapshot(session.key)
    expect(snapshot?.seq).toBeGreaterThan(400)
    const read = () => another().session({ user: 'ann', session: 's1' }).state()
    expect(await read()).toEqual(state)
    await backend.journal.putSnapshot(session.key, { ...snapshot!, data: '{"seq":' })
    expect(await read()).toEqual(state)
    await backend.journal.putSnapshot(session.key, { ...snapshot!, version: 99 })
    expect(await read()).toEqual(state)
    await backend.journal.putSnapshot(session.key, { ...snapshot!, seq: 1_000_000 })
    expect(await read()).toEqual(state)
  })
})

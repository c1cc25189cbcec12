import assert from 'node:assert/strict'
import type { Event } from '@oxbow/core'
import { type ConformanceCheck, conformanceEvent, eventsAfter, readAll, someKey, summary } from './support.ts'

export function journalConformance(check: ConformanceCheck): void {
  check('an unwritten session has head 0 and no events', async ({ journal }) => {
    assert.equal(await journal.head(someKey), 0)
    assert.deepEqual(await journal.read(someKey, 0), [])
    assert.deepEqual(await journal.list({}), [])
  })

  check('appended events come back in order, with a dense sequence', async ({ journal }) => {
    assert.deepEqual(await journal.append(someKey, 0, eventsAfter(0, 3), summary), { ok: true })
    assert.deepEqual(await journal.append(someKey, 3, eventsAfter(3, 1), summary), { ok: true })
    assert.equal(await journal.head(someKey), 4)
    assert.deepEqual(await journal.read(someKey, 0), eventsAfter(0, 4))
  })

  check('an append at an older head is a conflict that reports the head and stores nothing', async ({ journal }) => {
    await journal.append(someKey, 0, eventsAfter(0, 3), summary)
    const stale = await journal.append(someKey, 1, eventsAfter(1, 2, 'stale'), { ...summary, title: 'stale' })
    assert.deepEqual(stale, { ok: false, head: 3 })
    assert.deepEqual(await journal.append(someKey, 0, eventsAfter(0, 1), summary), { ok: false, head: 3 })
    assert.deepEqual(await journal.read(someKey, 0), eventsAfter(0, 3))
    assert.equal((await journal.list({}))[0]?.title, 'Hello')
  })

  check('an append beyond the head is a conflict that reports the head and stores nothing', async ({ journal }) => {
    assert.deepEqual(await journal.append(someKey, 7, eventsAfter(7, 1), summary), { ok: false, head: 0 })
    assert.equal(await journal.head(someKey), 0)
    await journal.append(someKey, 0, eventsAfter(0, 3), summary)
    assert.deepEqual(await journal.append(someKey, 4, eventsAfter(4, 1), summary), { ok: false, head: 3 })
    assert.deepEqual(await journal.read(someKey, 0), eventsAfter(0, 3))
  })

  const malformed: Record<string, [number, Event[]]> = {
    'with a gap': [0, [conformanceEvent(1), conformanceEvent(3)]],
    'with a repeated number': [0, [conformanceEvent(1), conformanceEvent(1)]],
    'that starts too late': [0, [conformanceEvent(2)]],
    'that starts too early': [2, [conformanceEvent(2)]],
    'without events': [0, []],
    'after a negative number': [-1, [conformanceEvent(0)]],
    'after a fraction': [0.5, [conformanceEvent(1.5)]],
  }
  for (const [what, [expectedSeq, events]] of Object.entries(malformed)) {
    check(`a batch ${what} is refused whole`, async ({ journal }) => {
      await assert.rejects(journal.append(someKey, expectedSeq, events, summary), { code: 'invalid_append' })
      assert.equal(await journal.head(someKey), 0)
    })
  }

  check('a batch is stored whole or not at all, regardless of concurrent appends', async ({ journal }) => {
    const batch = (writer: number) => eventsAfter(0, 100, `writer ${writer}`)
    const answers = await Promise.all([0, 1, 2].map((writer) => journal.append(someKey, 0, batch(writer), summary)))
    const winner = answers.findIndex((answer) => answer.ok)
    assert.equal(answers.filter((answer) => answer.ok).length, 1)
    assert.deepEqual(await journal.read(someKey, 0), batch(winner))
  })

  check('of many concurrent appenders exactly one wins each sequence number', async ({ journal }) => {
    const appenders = 20
    const each = 10
    const won: number[] = []
    await Promise.all(
      Array.from({ length: appenders }, async (_, appender) => {
        let head = 0
        for (let wins = 0; wins < each; ) {
          const answer = await journal.append(
            someKey,
            head,
            [conformanceEvent(head + 1, `appender ${appender}`)],
            summary,
          )
          if (answer.ok) {
            wins += 1
            head += 1
            won[head] = appender
          } else {
            assert.notEqual(answer.head, head)
            head = answer.head
          }
        }
      }),
    )
    const events = await readAll(journal, someKey)
    assert.equal(events.length, appenders * each)
    for (const stored of events) assert.deepEqual(stored, conformanceEvent(stored.seq, `appender ${won[stored.seq]}`))
  })

  check('sessions written in parallel do not affect each other', async ({ journal }) => {
    const keys = Array.from({ length: 50 }, (_, number) => ({ ...someKey, session: `session-${number}` }))
    await Promise.all(
      keys.map(async (key) => {
        for (let seq = 0; seq < 20; seq += 2) {
          const answer = await journal.append(key, seq, eventsAfter(seq, 2, key.session), summary)
          assert.deepEqual(answer, { ok: true })
        }
      }),
    )
    for (const key of keys) assert.deepEqual(await journal.read(key, 0), eventsAfter(0, 20, key.session))
  })

  check('a stale append does not fail those that arrive with it', async ({ journal }) => {
    const other = { ...someKey, session: 'other' }
    await journal.append(someKey, 0, eventsAfter(0, 2), summary)
    const [stale, fresh, malformedOne] = await Promise.allSettled([
      journal.append(someKey, 0, eventsAfter(0, 1), summary),
      journal.append(other, 0, eventsAfter(0, 1), summary),
      journal.append(other, 0, [conformanceEvent(9)], summary),
    ])
    assert.deepEqual(stale, { status: 'fulfilled', value: { ok: false, head: 2 } })
    assert.deepEqual(fresh, { status: 'fulfilled', value: { ok: true } })
    assert.equal(malformedOne?.status, 'rejected')
  })

  check('reading returns pages: after a number, at most a limit, 500 without one', async ({ journal }) => {
    await journal.append(someKey, 0, eventsAfter(0, 600), summary)
    assert.deepEqual(await journal.read(someKey, 0), eventsAfter(0, 500))
    assert.deepEqual(await journal.read(someKey, 500), eventsAfter(500, 100))
    assert.deepEqual(await journal.read(someKey, 100, 3), eventsAfter(100, 3))
    assert.deepEqual(await journal.read(someKey, 599, 3), eventsAfter(599, 1))
    assert.deepEqual(await journal.read(someKey, 600), [])
    assert.deepEqual(await journal.read(someKey, 10_000), [])
  })

  check('a session holds 100,000 events', async ({ journal }) => {
    const total = 100_000
    const batch = 1_000
    for (let seq = 0; seq < total; seq += batch) {
      assert.deepEqual(await journal.append(someKey, seq, eventsAfter(seq, batch), summary), { ok: true })
    }
    assert.equal(await journal.head(someKey), total)
    const events = await readAll(journal, someKey, 5_000)
    assert.equal(events.length, total)
    assert.ok(events.every(({ seq }, index) => seq === index + 1))
    assert.deepEqual(events.at(-1), conformanceEvent(total))
    assert.deepEqual(await journal.append(someKey, total, eventsAfter(total, 1), summary), { ok: true })
  })

  const texts = {
    'other scripts and emoji': 'Grüße, 世界, مرحبا, 👩‍👩‍👧‍👦',
    'decomposed and composed characters': 'e\u0301 \u00e9',
    'line separators U+2028 and U+2029': 'a\u2028b\u2029c',
    'control characters and NUL': '\u0000\u0001\u001f\u007f\u0085',
    'lone surrogates': '\ud800 and \udc00',
    'quotes and backslashes': `'"\`\\ \\u0000 '); DROP TABLE events; --`,
    'a megabyte': 'x\u00e9'.repeat(500_000),
    nothing: '',
  }
  for (const [what, text] of Object.entries(texts)) {
    check(`text is kept exactly: ${what}`, async ({ journal }) => {
      const appended = [conformanceEvent(1, text), conformanceEvent(2, text)]
      await journal.append(someKey, 0, appended, summary)
      assert.deepEqual(await journal.read(someKey, 0), appended)
    })
  }

  check('numbers, truth values, null and absent fields are kept exactly', async ({ journal }) => {
    const details = { zero: 0, tiny: 5e-324, huge: Number.MAX_SAFE_INTEGER, yes: true, none: null, deep: [[{}], []] }
    const failed = {
      type: 'turn.failed',
      turnId: 'turn-1',
      error: { code: 'x', message: 'x', retryable: false, details },
      seq: 1,
      at: 1_764_000_000_000,
    } as unknown as Event
    await journal.append(someKey, 0, [failed], summary)
    assert.deepEqual(await journal.read(someKey, 0), [failed])
  })

  check('changes to the caller’s array after an append have no effect', async ({ journal }) => {
    const events = eventsAfter(0, 2)
    const appending = journal.append(someKey, 0, events, summary)
    events.push(conformanceEvent(3))
    events[0] = conformanceEvent(9)
    await appending
    const read = await journal.read(someKey, 0)
    assert.deepEqual(read, eventsAfter(0, 2))
    read.pop()
    assert.equal((await journal.read(someKey, 0)).length, 2)
  })

  check('watching a session that only this back end writes never wakes, and stops', async ({ journal }) => {
    let wakes = 0
    const stop = journal.watch(someKey, () => {
      wakes += 1
    })
    for (let seq = 0; seq < 50; seq += 1) {
      await journal.append(someKey, seq, eventsAfter(seq, 1), summary)
    }
    stop()
    stop()
    assert.equal(wakes, 0)
  })
}

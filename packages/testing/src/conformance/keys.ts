import assert from 'node:assert/strict'
import type { SessionKey } from '@oxbow/core'
import { type ConformanceCheck, eventsAfter, someKey, summary } from './support.ts'

const names = [
  'a',
  'A',
  'a/b',
  'a\\b',
  'a:b',
  '.',
  '..',
  '../..',
  ' ',
  '  ',
  'a ',
  ' a',
  '\u200b',
  '\t',
  '\n',
  '\u0001',
  '\u001b[31m',
  '\u007f',
  'x'.repeat(64),
  `${'x'.repeat(63)}y`,
  'caf\u00e9',
  'cafe\u0301',
  '\u0430', // Cyrillic a
  '\uff41', // fullwidth a
  '\u{1f600}',
  '\uffff',
  "'",
  '"',
  `' OR 1=1 --`,
  '%',
  '_',
  '*',
  '?',
  '{}',
  'null',
  'undefined',
  '__proto__',
  'constructor',
  '0',
  '00',
]

/** Keys that a careless join of their fields would make equal. */
const shifted: SessionKey[] = [
  { tenant: 'a', user: 'b/c', session: 'd' },
  { tenant: 'a/b', user: 'c', session: 'd' },
  { tenant: 'a', user: 'b', session: 'c/d' },
  { tenant: 'a', user: 'b:c', session: 'd' },
  { tenant: 'a:b', user: 'c', session: 'd' },
  { tenant: 'ab', user: 'c', session: 'd' },
  { tenant: 'a', user: 'bc', session: 'd' },
  { tenant: 'a', user: 'b', session: 'cd' },
  { tenant: '1:a', user: '1', session: 'b' },
  { tenant: '1', user: ':a1', session: 'b' },
  { tenant: 'b', user: 'a', session: 'd' },
]

export function keyConformance(check: ConformanceCheck): void {
  const keys = [
    ...names.map((session) => ({ ...someKey, session })),
    ...names.map((user) => ({ ...someKey, user })),
    ...names.map((tenant) => ({ ...someKey, tenant })),
    ...shifted,
  ]
  const textOf = (key: SessionKey) => JSON.stringify(key)

  check('no two keys share a journal, a snapshot or a file, whatever characters they hold', async (backend) => {
    await Promise.all(
      keys.map(async (key) => {
        const answer = await backend.journal.append(key, 0, eventsAfter(0, 1, textOf(key)), summary)
        assert.deepEqual(answer, { ok: true }, textOf(key))
        await backend.journal.putSnapshot(key, { seq: 1, version: 1, data: textOf(key) })
        await backend.files.put(key, 'name', Buffer.from(textOf(key)), 0)
      }),
    )
    for (const key of keys) {
      assert.deepEqual(await backend.journal.read(key, 0), eventsAfter(0, 1, textOf(key)))
      assert.equal((await backend.journal.getSnapshot(key))?.data, textOf(key))
      assert.equal(Buffer.from((await backend.files.get(key, 'name'))!.data).toString(), textOf(key))
      assert.equal((await backend.files.list(key, '')).length, 1)
    }
    const listed = await backend.journal.list({ limit: 1_000 })
    assert.deepEqual(new Set(listed.map((row) => textOf(row.key))), new Set(keys.map(textOf)))
  })

  check('the name of a user or tenant in a query matches that one only', async ({ journal }) => {
    for (const key of keys) await journal.append(key, 0, eventsAfter(0, 1), summary)
    for (const user of names) {
      const rows = await journal.list({ tenant: someKey.tenant, user, limit: 1_000 })
      assert.ok(rows.length > 0)
      assert.ok(rows.every((row) => row.key.user === user && row.key.tenant === someKey.tenant))
    }
  })

  for (const [what, bad] of Object.entries({ 'a NUL': 'a\0b', 'a lone surrogate': 'a\ud800' })) {
    check(
      `a name with ${what} is refused, because storage could not distinguish it`,
      async ({ journal, files, workers }) => {
        for (const key of [
          { ...someKey, tenant: bad },
          { ...someKey, user: bad },
          { ...someKey, session: bad },
        ]) {
          await assert.rejects(journal.append(key, 0, eventsAfter(0, 1), summary), { code: 'invalid_key' })
          await assert.rejects(journal.read(key, 0), { code: 'invalid_key' })
        }
        await assert.rejects(files.put(someKey, bad, new Uint8Array()), { code: 'invalid_key' })
        await assert.rejects(workers.announce(bad), { code: 'invalid_key' })
      },
    )
  }
}

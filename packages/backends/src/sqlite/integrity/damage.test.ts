import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import type { Backend } from '@oxbow/core'
import { eventsAfter, someKey, summary } from '@oxbow/testing/conformance'
import { describe, expect, test } from 'vitest'
import { freshPath, open, tamper } from '../helpers.fixture.ts'

/** A closed file with a session of ten events and a few others. */
async function filled(): Promise<string> {
  const path = freshPath()
  const backend = open(path)
  await backend.journal.append(someKey, 0, eventsAfter(0, 10), summary)
  for (let number = 0; number < 50; number += 1) {
    await backend.journal.append({ ...someKey, session: `s${number}` }, 0, eventsAfter(0, 10, 'x'.repeat(900)), summary)
  }
  await backend.close()
  return path
}

describe('a session whose rows contradict each other is an error, never a shorter or a fresh session', () => {
  const damages = {
    'a gap in the middle': 'DELETE FROM events WHERE session = 1 AND seq = 5',
    'a lost beginning': 'DELETE FROM events WHERE session = 1 AND seq < 4',
    'a body that is not JSON': `UPDATE events SET body = substr(body, 1, 20) WHERE session = 1 AND seq = 5`,
    'a body of another event': `UPDATE events SET body = (SELECT body FROM events WHERE session = 1 AND seq = 6)
                                WHERE session = 1 AND seq = 5`,
    'a body that is not an event': `UPDATE events SET body = 'null' WHERE session = 1 AND seq = 5`,
  }
  for (const [what, sql] of Object.entries(damages)) {
    test(`${what} fails reads that reach it`, async () => {
      const path = await filled()
      tamper(path, sql)
      const { journal } = open(path)
      await expect(journal.read(someKey, 0)).rejects.toMatchObject({ code: 'journal_corrupt' })
      await expect(journal.read(someKey, 0)).rejects.toThrow(path)
      expect(await journal.read({ ...someKey, session: 's1' }, 0)).toHaveLength(10)
    })
  }

  const heads = {
    'a lost end': 'DELETE FROM events WHERE session = 1 AND seq > 8',
    'all events lost': 'DELETE FROM events WHERE session = 1',
    'a head that is behind': 'UPDATE sessions SET head = 9 WHERE id = 1',
    'a head that is ahead': 'UPDATE sessions SET head = 11 WHERE id = 1',
  }
  for (const [what, sql] of Object.entries(heads)) {
    test(`${what} fails reading, the head and appending`, async () => {
      const path = await filled()
      tamper(path, sql)
      const { journal } = open(path)
      const corrupt = { code: 'journal_corrupt', retryable: false }
      await expect(journal.read(someKey, 0)).rejects.toMatchObject(corrupt)
      await expect(journal.read(someKey, 9)).rejects.toMatchObject(corrupt)
      await expect(journal.head(someKey)).rejects.toMatchObject(corrupt)
      for (const seq of [0, 8, 9, 10, 11]) {
        await expect(journal.append(someKey, seq, eventsAfter(seq, 1), summary)).rejects.toMatchObject(corrupt)
      }
      expect(await journal.head({ ...someKey, session: 's1' })).toBe(10)
    })
  }

  test('events beyond a head that an open back end relies on fail its append, and only that one', async () => {
    const path = await filled()
    const { journal } = open(path)
    await journal.append(someKey, 10, eventsAfter(10, 1), summary)
    tamper(
      path,
      `INSERT INTO events (session, seq, body, sum)
       SELECT session, seq + 1, body, sum FROM events WHERE session = 1 AND seq = 11`,
    )
    const [bad, good] = await Promise.allSettled([
      journal.append(someKey, 11, eventsAfter(11, 1), summary),
      journal.append({ ...someKey, session: 's1' }, 10, eventsAfter(10, 1), summary),
    ])
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'journal_corrupt' } })
    expect(good).toMatchObject({ status: 'fulfilled', value: { ok: true } })
  })
})

test('the check of an open back end finds pages that were overwritten', async () => {
  const backend = open(await filled())
  await backend.check()
  const path = (backend.name.match(/^sqlite (.+)$/) ?? [])[1]!
  await backend.close()
  const again = open(path)
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(statSync(path).size - 4096), 0, undefined, 4096)
  closeSync(file)
  await expect(again.check()).rejects.toMatchObject({ code: 'journal_corrupt' })
})

describe('a damaged file is refused', () => {
  test('a file that is not a database', async () => {
    const path = freshPath()
    writeFileSync(path, 'not a database, but long enough to be mistaken for one: '.repeat(100))
    const before = readFileSync(path)
    expect(() => open(path)).toThrow(expect.objectContaining({ code: 'journal_corrupt' }))
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('an empty file, which a crash cannot leave', () => {
    const path = freshPath()
    writeFileSync(path, '')
    expect(() => open(path)).toThrow(expect.objectContaining({ code: 'journal_corrupt' }))
    expect(statSync(path).size).toBe(0)
  })

  test('a log without its database file', async () => {
    const path = freshPath()
    const backend = open(path)
    await backend.journal.append(someKey, 0, eventsAfter(0, 1), summary)
    copyFileSync(`${path}-wal`, `${path}.saved`)
    await backend.close()
    rmSync(path)
    copyFileSync(`${path}.saved`, `${path}-wal`)
    expect(() => open(path)).toThrow(expect.objectContaining({ code: 'journal_corrupt' }))
  })

  test('a file that was cut short', async () => {
    const path = await filled()
    truncateSync(path, Math.floor(statSync(path).size / 2))
    expect(await outcomes(path)).toEqual(['journal_corrupt', 'journal_corrupt', 'journal_corrupt'])
  })

  test('pages that were overwritten with zeros', async () => {
    const path = await filled()
    const file = openSync(path, 'r+')
    writeSync(file, Buffer.alloc(statSync(path).size - 4096), 0, undefined, 4096)
    closeSync(file)
    expect(await outcomes(path)).toEqual(['journal_corrupt', 'journal_corrupt', 'journal_corrupt'])
  })

  test('a database of another program, which is left unchanged', async () => {
    const path = freshPath()
    tamper(path, `CREATE TABLE mine (a); PRAGMA user_version = 3`)
    const before = readFileSync(path)
    expect(() => open(path)).toThrow(expect.objectContaining({ code: 'storage_foreign' }))
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('a file of a newer schema, with the numbers of both', async () => {
    const path = await filled()
    tamper(path, 'PRAGMA user_version = 99')
    expect(() => open(path)).toThrow(expect.objectContaining({ code: 'storage_newer' }))
    expect(() => open(path)).toThrow(/schema 99; this one supports 3/)
  })
})

/** The results of reading a session, reopening it and appending to it: error codes, or "done". */
async function outcomes(path: string): Promise<string[]> {
  const attempts = [
    (backend: Backend) => backend.journal.read(someKey, 0),
    (backend: Backend) => backend.journal.append(someKey, 0, eventsAfter(0, 1), summary),
    (backend: Backend) => backend.journal.append(someKey, 10, eventsAfter(10, 1), summary),
  ]
  const settled = await Promise.allSettled(attempts.map(async (attempt) => attempt(open(path))))
  return settled.map((one) => (one.status === 'rejected' ? one.reason.code : 'done'))
}

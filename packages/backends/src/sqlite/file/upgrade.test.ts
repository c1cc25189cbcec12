import { copyFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { eventsAfter } from '@oxbow/testing/conformance'
import { expect, test } from 'vitest'
import { freshPath, open, tamper } from '../helpers.fixture.ts'

/** A store that Oxbow 0.1.0 wrote: two sessions of ada with three turns, one tool call each, and a file. */
const fixture = fileURLToPath(new URL('./fixtures/store-0.1.0.db', import.meta.url))
const first = { tenant: 'default', user: 'ada', session: 'first' }
const notes = { status: 'idle', agent: 'explainer', title: 'What does the word mean?' } as const

function copied(): string {
  const path = freshPath()
  copyFileSync(fixture, path)
  return path
}

function rowsOf(path: string, sql: string) {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return db.prepare(sql).all()
  } finally {
    db.close()
  }
}

test('a store of 0.1.0 keeps its sessions, audit records and files, and accepts new events', async () => {
  const path = copied()
  const bodies = rowsOf(fixture, 'SELECT body FROM events WHERE session = 1 ORDER BY seq').map((it) => it.body)
  const records = rowsOf(fixture, 'SELECT body FROM audit ORDER BY id').map((it) => JSON.parse(String(it.body)))
  const sessions = rowsOf(fixture, 'SELECT session, head, updated_at FROM sessions ORDER BY updated_at DESC')
  const { journal, files, check } = open(path)
  await check()
  expect((await journal.read(first, 0)).map((it) => JSON.stringify(it))).toEqual(bodies)
  expect((await journal.audit({})).records).toEqual(records)
  expect((await journal.audit({ tool: 'lookup', session: 'second' })).records).toHaveLength(2)
  expect(
    (await journal.list({ tenant: 'default', user: 'ada' })).map(({ key, head, updatedAt }) => ({
      session: key.session,
      head,
      updated_at: updatedAt,
    })),
  ).toEqual(sessions)
  expect(Buffer.from((await files.get(first, 'note.txt'))!.data).toString()).toBe('kept')
  expect(await journal.append(first, 21, eventsAfter(21, 2), notes)).toEqual({ ok: true })
  expect(await open(path).journal.read(first, 21)).toEqual(eventsAfter(21, 2))
})

test('X13: data of 0.1.0 is reported as unchecked, newer data is checked', async () => {
  const path = copied()
  const backend = open(path)
  await backend.journal.append(first, 21, eventsAfter(21, 2), notes)
  expect(await backend.verify()).toEqual({
    sessions: 2,
    events: 34,
    files: 1,
    unchecked: 33,
    marked: true,
    problems: [],
  })
  tamper(path, 'UPDATE events SET sum = NULL WHERE session = 1 AND seq = 22')
  expect((await backend.verify()).problems).toEqual(['session first of ada: event 23 has a wrong checksum'])
})

test('a file of schema 1 is upgraded when it is opened, and keeps its sessions', async () => {
  const path = copied()
  tamper(
    path,
    `DROP TABLE audit; DROP INDEX sessions_by_wake; ALTER TABLE sessions DROP COLUMN wake_at; PRAGMA user_version = 1`,
  )
  const [one, two] = [open(path), open(path)]
  expect(await one.journal.read(first, 0)).toHaveLength(21)
  expect(await two.journal.append(first, 21, eventsAfter(21, 1), { ...notes, wakeAt: 5 })).toEqual({ ok: true })
  expect(await one.journal.list({ dueBy: 5 })).toHaveLength(1)
})

test('a process of 0.1.0 that has a file open while it is upgraded can no longer store anything', () => {
  const path = copied()
  const old = new DatabaseSync(path)
  const insert = old.prepare('INSERT INTO events (session, seq, at, type, body) VALUES (1, 22, 1, ?, ?)')
  open(path)
  expect(() => insert.run('turn.steered', '{}')).toThrow(/no column named type/)
  old.close()
})

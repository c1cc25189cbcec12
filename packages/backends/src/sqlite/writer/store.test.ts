// The writes themselves, without the thread, on connections that fail as disks do.
import { expect, test } from 'vitest'
import { storageError } from '../errors.ts'
import { connect } from '../file/schema.ts'
import { freshPath, open } from '../helpers.fixture.ts'
import { type Append, stored, type WriterAnswer } from './protocol.ts'
import { openWriterStore } from './store.ts'

function storeOn(path: string, settings: string) {
  open(path)
  const db = connect(path)
  db.exec(settings)
  return { db, store: openWriterStore(db) }
}

const append = (session: string, expectedSeq: number, body = '{}', at = 1): Append => [
  'append',
  'acme',
  'ada',
  session,
  expectedSeq,
  'idle',
  'assistant',
  'title',
  null,
  [],
  [at, body],
]

const codeOf = (answer: WriterAnswer | undefined) =>
  typeof answer === 'number' ? answer : storageError('oxbow.db', answer).code

test('on a full disk an append fails with storage_full, stores nothing, and succeeds once there is space', () => {
  const { db, store } = storeOn(freshPath(), 'PRAGMA max_page_count = 30')
  expect(store.apply([append('a', 0)])).toEqual([stored])
  const large = append('a', 1, `"${'x'.repeat(200_000)}"`)
  const answers = store.apply([append('b', 0), large, append('c', 0)])
  expect(answers.map(codeOf)).toEqual([stored, 'storage_full', stored])
  expect(
    db
      .prepare('SELECT head FROM sessions ORDER BY session')
      .all()
      .map((row) => row.head),
  ).toEqual([1, 1, 1])
  db.exec('PRAGMA max_page_count = 1000')
  expect(store.apply([large])).toEqual([stored])
  db.close()
})

test('a file that cannot be written fails appends with storage_readonly', () => {
  const { db, store } = storeOn(freshPath(), 'PRAGMA query_only = ON')
  expect(store.apply([append('a', 0), append('b', 0)]).map(codeOf)).toEqual(['storage_readonly', 'storage_readonly'])
  db.close()
})

test('a file that another process keeps locked fails a whole batch with storage_busy after one wait', () => {
  const path = freshPath()
  const { db, store } = storeOn(path, 'PRAGMA busy_timeout = 50')
  const other = connect(path)
  other.exec('BEGIN IMMEDIATE')
  const batch = Array.from({ length: 100 }, (_, number) => append(`s${number}`, 0))
  const before = performance.now()
  expect(new Set(store.apply(batch).map(codeOf))).toEqual(new Set(['storage_busy']))
  // Waiting for each would take five seconds.
  expect(performance.now() - before).toBeLessThan(2_500)
  other.exec('ROLLBACK')
  expect(store.apply([append('a', 0)])).toEqual([stored])
  other.close()
  db.close()
})

test('a write that the tables refuse fails alone, and is rolled back', () => {
  const { db, store } = storeOn(freshPath(), '')
  const answers = store.apply([append('a', 0), append('b', 0, '{}', 1.5), append('a', 1), append('b', 0)])
  expect(answers.map(codeOf)).toEqual([stored, 'storage_error', stored, stored])
  expect(db.prepare('SELECT count(*) AS events FROM events').get()?.events).toBe(3)
  db.close()
})

test('appends of one batch see each other', () => {
  const { db, store } = storeOn(freshPath(), '')
  expect(store.apply([append('a', 0), append('a', 0), append('a', 1), append('a', 7)])).toEqual([stored, 1, stored, 2])
  db.close()
})

test('appends of other connections are distinguished from this one’s', () => {
  const path = freshPath()
  const { db, store: ours } = storeOn(path, '')
  const { db: otherDb, store: theirs } = storeOn(path, '')
  const key = ['acme', 'ada', 'a'] as const
  expect(ours.foreignHead(key, 0)).toBe(0)
  ours.apply([append('a', 0), append('a', 1)])
  expect(ours.foreignHead(key, 2)).toBe(0)
  theirs.apply([append('a', 2)])
  expect(ours.foreignHead(key, 3)).toBe(3)
  ours.apply([append('a', 3)])
  expect(ours.foreignHead(key, 4)).toBe(3)
  db.close()
  otherDb.close()
})

test('a probe writes, so that a file that cannot be written is detected', async () => {
  const path = freshPath()
  await open(path).close()
  const db = connect(path)
  const store = openWriterStore(db)
  expect(store.apply([['probe']])).toEqual([0])
  db.exec('PRAGMA query_only = ON')
  expect(store.apply([['probe']])).toMatchObject([{ errcode: 8 }])
  db.exec('PRAGMA query_only = OFF')
  for (const table of ['sessions', 'events', 'workers'])
    expect(db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()).toEqual({ rows: 0 })
  db.close()
})

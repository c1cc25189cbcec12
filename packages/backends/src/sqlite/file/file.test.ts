import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { eventsAfter, someKey, summary } from '@oxbow/testing/conformance'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { freshPath, open, runModule } from '../helpers.fixture.ts'
import { shrinkWhenIdle } from '../writer/shrink.ts'
import { connect, logLimitBytes } from './schema.ts'

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

test.skipIf(process.platform === 'win32')(
  'created directories and files are accessible to their owner only',
  async () => {
    const path = join(dirname(freshPath()), 'a', 'b', 'oxbow.db')
    const { journal } = open(path)
    await journal.append(someKey, 0, eventsAfter(0, 1), summary)
    expect(mode(dirname(path))).toBe('700')
    expect(mode(dirname(dirname(path)))).toBe('700')
    expect([path, `${path}-wal`, `${path}-shm`].map(mode)).toEqual(['600', '600', '600'])
  },
)

test('closing leaves the file with everything in it, and its mark', async () => {
  const path = freshPath()
  const backend = open(path)
  await backend.journal.append(someKey, 0, eventsAfter(0, 3), summary)
  await backend.close()
  expect(readdirSync(dirname(path))).toEqual(['oxbow.db', 'oxbow.db-mark'])
  const db = new DatabaseSync(path, { readOnly: true })
  expect(db.prepare('SELECT count(*) AS events FROM events').get()?.events).toBe(3)
  db.close()
})

test('every connection logs ahead, waits for the disk at each commit, and waits for others five seconds', () => {
  const path = freshPath()
  open(path)
  const db = connect(path)
  const setting = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get()!)[0]
  expect(setting('journal_mode')).toBe('wal')
  expect(setting('synchronous')).toBe(2)
  expect(setting('busy_timeout')).toBe(5_000)
  expect(setting('foreign_keys')).toBe(1)
  db.close()
})

describe('a log that grew under a reader who held an old state of the file', () => {
  const large = 'x'.repeat(1_000_000)
  const logSize = (path: string) => statSync(`${path}-wal`).size

  /** Writes 50 MB during a read; returns the function that ends the read. */
  async function grown(path: string) {
    const { journal } = open(path)
    await journal.append(someKey, 0, eventsAfter(0, 1), summary)
    const reader = new DatabaseSync(path, { readOnly: true })
    reader.exec('BEGIN; SELECT count(*) FROM events')
    for (let seq = 1; seq <= 50; seq += 1) await journal.append(someKey, seq, eventsAfter(seq, 1, large), summary)
    expect(logSize(path)).toBeGreaterThan(logLimitBytes)
    return { journal, reader }
  }

  test('shrinks when nothing is written', async () => {
    const path = freshPath()
    const { journal, reader } = await grown(path)
    const held = logSize(path)
    await journal.append({ ...someKey, session: 'other' }, 0, eventsAfter(0, 1), summary)
    expect(logSize(path)).toBeGreaterThanOrEqual(held)
    expect(reader.prepare('SELECT count(*) AS n FROM events').get()?.n).toBe(1)
    reader.close()
    await expect.poll(() => logSize(path), { timeout: 10_000 }).toBe(0)
    expect(await journal.head(someKey)).toBe(51)
  })

  test('is retried while the reader stays, without delaying writes', async () => {
    const path = freshPath()
    const { reader } = await grown(path)
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const db = connect(path)
    shrinkWhenIdle(db, path)
    const start = performance.now()
    for (let tries = 0; tries < 3; tries += 1) vi.advanceTimersByTime(1_000)
    expect(performance.now() - start).toBeLessThan(2_000)
    expect(logSize(path)).toBeGreaterThan(logLimitBytes)
    expect(db.prepare('PRAGMA busy_timeout').get()?.timeout).toBe(5_000)
    reader.close()
    vi.advanceTimersByTime(1_000)
    expect(logSize(path)).toBe(0)
    db.close()
  })

  test('shrinks even when writing continues', async () => {
    const path = freshPath()
    const { journal, reader } = await grown(path)
    reader.close()
    let seq = 0
    const more = async () => {
      await journal.append({ ...someKey, session: 'other' }, seq, eventsAfter(seq, 1), summary)
      seq += 1
      return logSize(path)
    }
    await expect.poll(more, { interval: 10, timeout: 10_000 }).toBeLessThanOrEqual(logLimitBytes)
  })
})

test('two back ends of one process share a file', async () => {
  const path = freshPath()
  const [one, two] = [open(path), open(path)]
  await one.journal.append(someKey, 0, eventsAfter(0, 1), summary)
  expect(await two.journal.append(someKey, 0, eventsAfter(0, 1), summary)).toEqual({ ok: false, head: 1 })
  expect(await two.journal.append(someKey, 1, eventsAfter(1, 1), summary)).toEqual({ ok: true })
  await one.close()
  expect(await two.journal.read(someKey, 0)).toEqual(eventsAfter(0, 2))
})

test('processes that create the file concurrently create one file', async () => {
  const path = freshPath()
  const append = `await journal.append({ ...someKey, session: 's' + process.pid }, 0, eventsAfter(0, 1), summary)`
  const children = await Promise.all([1, 2, 3, 4].map(() => runModule(path, append)))
  for (const child of children) expect(child).toMatchObject({ status: 0, stderr: '' })
  expect(await open(path).journal.list({})).toHaveLength(4)
  expect(readdirSync(dirname(path)).sort()).toEqual(['oxbow.db', 'oxbow.db-mark', 'oxbow.db-shm', 'oxbow.db-wal'])
})

test('the check fails once the file was deleted or replaced', async () => {
  const path = freshPath()
  const backend = open(path)
  await backend.check()
  renameSync(path, `${path}.away`)
  await expect(backend.check()).rejects.toThrow(/deleted or replaced/)
  await open(`${path}.other`).check()
  renameSync(`${path}.other`, path)
  await expect(backend.check()).rejects.toThrow(/deleted or replaced/)
  rmSync(path)
  renameSync(`${path}.away`, path)
  await backend.check()
})

test.skipIf(process.platform === 'win32').for(
  Object.entries({
    'the directory was deleted': (path: string) => rmSync(dirname(path), { recursive: true }),
    'the directory was moved': (path: string) => renameSync(dirname(path), `${dirname(path)}.away`),
    'the file was deleted': (path: string) => rmSync(path),
    'the file was replaced': (path: string) => {
      copyFileSync(path, `${path}.copy`)
      renameSync(`${path}.copy`, path)
    },
    'its log was deleted': (path: string) => rmSync(`${path}-wal`),
    'the index of its log was deleted': (path: string) => rmSync(`${path}-shm`),
  }),
)('once %s, every write and the check fail with what to do', async ([, remove]) => {
  const path = join(dirname(freshPath()), 'store', 'oxbow.db')
  const backend = open(path)
  const { journal, files, workers } = backend
  await journal.append(someKey, 0, eventsAfter(0, 1), summary)
  await workers.announce('me')
  remove(path)
  const writes = [
    journal.append(someKey, 1, eventsAfter(1, 1), summary),
    journal.append({ ...someKey, session: 'other' }, 0, eventsAfter(0, 1), summary),
    journal.putSnapshot(someKey, { seq: 1, version: 1, data: '' }),
    files.put(someKey, 'a', new Uint8Array(1)),
    workers.announce('you'),
    backend.check(),
  ]
  for (const outcome of await Promise.allSettled(writes)) {
    expect(outcome).toMatchObject({
      status: 'rejected',
      reason: {
        code: 'storage_displaced',
        retryable: false,
        message: expect.stringMatching(/deleted or replaced .* restore the files or a backup, and start again/),
      },
    })
  }
  expect(await journal.read(someKey, 0)).toHaveLength(1)
})

test('a file deleted right after it was opened is not recreated, and appends fail', async () => {
  const path = freshPath()
  const { journal } = open(path)
  rmSync(path)
  const appending = journal.append(someKey, 0, eventsAfter(0, 1), summary)
  await expect(appending).rejects.toMatchObject({ code: 'storage_error' })
  expect(existsSync(path)).toBe(false)
})

test('a title cut within a character is stored with the replacement character', async () => {
  const { journal } = open(freshPath())
  await journal.append(someKey, 0, eventsAfter(0, 1), { ...summary, title: 'cut \ud83d' })
  expect((await journal.list({}))[0]?.title).toBe('cut \ufffd')
})

test('a directory in place of the file is reported as one', () => {
  const path = freshPath()
  mkdirSync(path)
  expect(() => open(path)).toThrow(/is a directory\. Give the path of a file, such as .*oxbow\.db/)
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Event } from '@oxbow/core'
import { expect, onTestFinished, test } from 'vitest'
import { sqlite } from './index.ts'

const key = { tenant: 'acme', user: 'ada', session: 'first' }
const notes = { status: 'idle', agent: 'assistant', title: 'Hello' } as const
const opened = (seq: number): Event => ({
  type: 'session.opened',
  schemaVersion: 1,
  key,
  agent: { name: 'assistant', version: '1' },
  seq,
  at: seq,
})

test('a file of schema 1 is lifted when it is opened, and keeps its sessions', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-upgrade-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'oxbow.db')
  const before = sqlite({ path })
  await before.journal.append(key, 0, [opened(1)], notes)
  await before.close()
  const db = new DatabaseSync(path)
  db.exec(
    `DROP TABLE audit; DROP INDEX sessions_by_wake; ALTER TABLE sessions DROP COLUMN wake_at; PRAGMA user_version = 1`,
  )
  db.close()

  const [one, two] = [sqlite({ path }), sqlite({ path })]
  expect(await one.journal.read(key, 0)).toEqual([opened(1)])
  expect(await two.journal.append(key, 1, [opened(2)], { ...notes, wakeAt: 5 })).toEqual({ ok: true })
  expect(await one.journal.list({ dueBy: 5 })).toHaveLength(1)
  await one.close()
  await two.close()
})

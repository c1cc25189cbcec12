// What the tests of this folder share.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Backend } from '@oxbow/core'
import { afterEach } from 'vitest'
import { type SqliteOptions, sqlite } from './index.ts'

const directories: string[] = []
const opened: Backend[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((backend) => backend.close()))
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

/** A path for a database in a directory of its own, which is deleted after the test. */
export function freshPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-sqlite-'))
  directories.push(directory)
  return join(directory, 'oxbow.db')
}

/** A back end that is closed after the test. */
export function open(path: string, options?: Omit<SqliteOptions, 'path'>): Backend {
  const backend = sqlite({ path, ...options })
  opened.push(backend)
  return backend
}

/** Runs SQL on the file, past Oxbow. */
export function tamper(path: string, sql: string): void {
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  try {
    db.exec(sql)
  } finally {
    db.close()
  }
}

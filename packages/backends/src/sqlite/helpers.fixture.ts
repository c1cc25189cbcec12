// Helpers shared by the tests of this folder.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
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

/** Runs SQL on the file directly. */
export function tamper(path: string, sql: string): void {
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  try {
    db.exec(sql)
  } finally {
    db.close()
  }
}

/**
 * Runs a module in a process of its own, with `backend` open on `path` and the helpers of the conformance suite. The
 * process ends when nothing keeps it alive. `shell` goes before it on a command line of sh.
 */
export async function runModule(path: string, body: string, shell?: string) {
  const source = `
    import { sqlite } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    import { eventsAfter, someKey, summary } from ${JSON.stringify(import.meta.resolve('@oxbow/testing/conformance'))}
    const backend = sqlite({ path: ${JSON.stringify(path)} })
    const { journal, workers } = backend
    ${body}`
  const command = [process.execPath, ...process.execArgv, '--input-type=module', '-e', source]
  const [file, ...args] = shell === undefined ? command : ['sh', '-c', `${shell}; exec "$@"`, 'sh', ...command]
  const child = spawn(file!, args, { timeout: 15_000 })
  const [stdout, stderr, [status, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  return { stdout, stderr, status, signal }
}

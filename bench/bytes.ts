// The bytes that one turn writes: those of its events, and the bytes that SQLite adds to its log for them, exactly.
//   node -C oxbow-source bench/bytes.ts
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { onSqlite } from './contenders/oxbow.ts'
import { startModelServer } from './processes.ts'

/** Few enough that the log is not started anew between the first turn and the last. */
const TURNS = 20

export interface BytesRow {
  readonly sessions: string
  readonly eventBytes: number
  readonly auditBytes: number
  readonly logBytes: number
  /** Log bytes per byte of events. */
  readonly ratio: number
}

/** Measures `TURNS` turns, one after another: all in one session, or each in a new one. */
async function measure(url: string, sessions: 'one' | 'new'): Promise<BytesRow> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-bytes-'))
  const contender = await onSqlite({ url, directory })
  const path = join(directory, 'bench.db')
  const reader = new DatabaseSync(path, { readOnly: true })
  const sum = (sql: string): number => Number(Object.values(reader.prepare(sql).get()!)[0])
  const now = () => ({
    events: sum('SELECT sum(length(CAST(body AS BLOB))) FROM events'),
    audit: sum('SELECT sum(length(CAST(audit AS BLOB))) FROM events'),
    log: statSync(`${path}-wal`).size,
  })
  try {
    await contender.turn(0)
    const before = now()
    for (let turn = 1; turn <= TURNS; turn += 1) await contender.turn(sessions === 'one' ? 0 : turn)
    const after = now()
    const eventBytes = (after.events - before.events) / TURNS
    const logBytes = (after.log - before.log) / TURNS
    const auditBytes = (after.audit - before.audit) / TURNS
    return { sessions, eventBytes, auditBytes, logBytes, ratio: logBytes / eventBytes }
  } finally {
    reader.close()
    await contender.close()
    rmSync(directory, { recursive: true })
  }
}

export async function bytesPerTurn(url: string): Promise<BytesRow[]> {
  return [await measure(url, 'one'), await measure(url, 'new')]
}

if (import.meta.main) {
  const server = await startModelServer()
  console.table(await bytesPerTurn(server.url))
  server.close()
}

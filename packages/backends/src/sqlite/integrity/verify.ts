// Reads all stored data and compares it with its checksums.
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import type { StoreReport } from '@oxbow/core'
import { readMark } from '../file/mark.ts'
import { checkRow, Damage, nameOf, type StoredRow, sessionRows } from '../file/session-row.ts'
import { dataSum, sumAlone } from '../file/sums.ts'
import { eventReader } from '../reading/events.ts'
import { KEEPER } from '../writer/erased.ts'
import { checkMark } from './start.ts'

const pageOfEvents = 500
/** One damaged page can break thousands of rows; this many are enough to report. */
const mostProblems = 100

/**
 * Checks the whole store, and lets other work of the process run between pages. Never throws for damage: it reports it.
 */
export async function verifyStore(
  db: DatabaseSync,
  path: string,
  onProgress: (done: number, total: number) => void,
): Promise<StoreReport> {
  const problems: string[] = []
  const found = (what: string): void => {
    if (problems.length < mostProblems) problems.push(what)
  }
  const counts = { sessions: 0, events: 0, unchecked: 0, files: 0 }
  const attempt = async (run: () => unknown): Promise<void> => {
    try {
      await run()
    } catch (error) {
      found(error instanceof Error ? error.message : String(error))
    }
  }
  const mark = readMark(path)
  await attempt(() => {
    const lost = checkMark(db, path, mark)
    if (lost !== undefined) found(lost.message)
  })
  await attempt(() => structure(db).forEach(found))
  await attempt(async () => {
    const total = Number(db.prepare('SELECT count(*) AS n FROM events').get()?.n)
    const ids = db.prepare('SELECT id FROM sessions WHERE updated_hour >= 0 ORDER BY id').all()
    const read = eventReader(db)
    const rows = sessionRows(db)
    for (const { id } of ids) {
      counts.sessions += 1
      await attempt(async () => {
        const { row, end } = rows.get(Number(id))
        for (let after = 0; after < end.seq; after += pageOfEvents) {
          const page = read(row, after, end.seq, pageOfEvents)
          counts.events += page.length
          counts.unchecked += page.filter(({ sum }) => sum === null).length
          await attempt(() => checkColumns(db, row, after, after + page.length))
          onProgress(counts.events, total)
          await setImmediate()
        }
      })
    }
  })
  await attempt(() => {
    const kept = db.prepare(
      `SELECT events.id, events.sum, events.audit FROM sessions JOIN events ON events.session = sessions.id
       WHERE sessions.updated_hour = ${KEEPER}`,
    )
    for (const { id, sum, audit } of kept.iterate())
      if (sum !== sumAlone(audit as string | null)) found(`the audit record in row ${id} has a wrong checksum`)
  })
  await attempt(async () => {
    const readFile = db.prepare('SELECT path, session, data, sum FROM files WHERE rowid = ?')
    for (const { rowid } of db.prepare('SELECT rowid FROM files WHERE data IS NOT NULL').all()) {
      counts.files += 1
      await attempt(() => {
        const { path: name, session, data, sum } = readFile.get(Number(rowid))!
        if (sum === null) counts.unchecked += 1
        else if (sum !== dataSum(data as Uint8Array))
          throw new Damage(`the file ${name} of session ${session} has a wrong checksum`)
      })
      await setImmediate()
    }
  })
  return { ...counts, marked: mark !== undefined, problems }
}

/** SQLite's own checks: broken pages, indexes that disagree with their tables, events without a session. */
function structure(db: DatabaseSync): string[] {
  const broken = db
    .prepare(`PRAGMA integrity_check(${mostProblems})`)
    .all()
    .map((it) => String(it.integrity_check))
    .filter((it) => it !== 'ok')
  const orphans = db.prepare('PRAGMA foreign_key_check').all()
  return [...broken, ...orphans.map((it) => `row ${it.rowid} of ${it.table} belongs to a missing session`)]
}

/** The columns for queries must match the checksummed texts. */
function checkColumns(db: DatabaseSync, row: StoredRow, after: number, last: number): void {
  checkRow(row)
  const wrong = db
    .prepare(
      `SELECT seq FROM events WHERE session = ? AND seq > ? AND seq <= ? AND (
         at IS NOT json_extract(audit, '$.at') OR (audit IS NULL) <> (tool IS NULL) OR tool IS NOT json_extract(audit, '$.tool')
         OR user IS NOT json_extract(audit, '$.principal.user') OR status IS NOT json_extract(audit, '$.status'))`,
    )
    .get(row.id, after, last)
  if (wrong !== undefined) throw new Damage(`${nameOf(row)}: the columns of event ${wrong.seq} contradict its text`)
}

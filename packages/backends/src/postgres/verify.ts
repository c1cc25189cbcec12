// Reads everything that is stored and compares it with its checksums.

import { crc32 } from 'node:zlib'
import type { AuditRecord, SessionKey, StoreReport } from '@oxbow/core'
import { sumOf } from './append.ts'
import type { Database } from './database.ts'
import { NO_SESSION } from './life.ts'

const PAGE = 500
/** These are enough to know. */
const MOST_PROBLEMS = 100

interface SessionRow {
  readonly id: string
  readonly tenant: string
  readonly usr: string
  readonly session: string
  readonly head: string
}

export async function verifyDatabase(
  database: Database,
  onProgress: (done: number, total: number) => void,
): Promise<StoreReport> {
  const { schema } = database
  const problems: string[] = []
  const found = (what: string): void => {
    if (problems.length < MOST_PROBLEMS) problems.push(what)
  }
  const counts = { sessions: 0, events: 0, files: 0 }
  const [{ total } = { total: '0' }] = await database.query<{ total: string }>(
    `SELECT coalesce(sum(head), 0) AS total FROM ${schema}.sessions`,
  )

  async function checkSession({ id, tenant, usr: user, session, head }: SessionRow): Promise<void> {
    const key: SessionKey = { tenant, user, session }
    let last = 0
    for (;;) {
      const rows = await database.query<{ seq: string; sum: string; body: string }>(
        `SELECT seq, sum, body FROM ${schema}.events WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT ${PAGE}`,
        [id, last],
      )
      for (const row of rows) {
        const seq = Number(row.seq)
        if (seq !== last + 1) found(`session ${session} of ${user} has a gap before event ${seq}`)
        if (Number(row.sum) !== sumOf(key, seq, row.body))
          found(`session ${session} of ${user}: event ${seq} has a wrong checksum`)
        last = seq
      }
      counts.events += rows.length
      onProgress(counts.events, Number(total))
      if (rows.length < PAGE) break
    }
    // Appends go on meanwhile, so there may be more events than the head that was read, never fewer.
    if (last < Number(head)) found(`session ${session} of ${user} ends at event ${last}, but its head is ${head}`)
    const audit = await database.query<{ seq: string; sum: string; body: string }>(
      `SELECT seq, sum, body FROM ${schema}.audit WHERE session = $1`,
      [id],
    )
    for (const { seq, sum, body } of audit)
      if (Number(sum) !== sumOf(key, Number(seq), body))
        found(`session ${session} of ${user}: the audit record of event ${seq} has a wrong checksum`)
  }

  for (let after = '0'; ; ) {
    const sessions = await database.query<SessionRow>(
      `SELECT id, tenant, usr, session, head FROM ${schema}.sessions
       WHERE id > $1 AND head > 0 ORDER BY id LIMIT ${PAGE}`,
      [after],
    )
    for (const it of sessions) {
      counts.sessions += 1
      await checkSession(it)
    }
    if (sessions.length < PAGE) break
    after = sessions.at(-1)!.id
  }

  for (const table of ['events', 'audit', 'snapshots']) {
    const [orphan] = await database.query<{ session: string }>(
      `SELECT session FROM ${schema}.${table} t
       WHERE session <> ${NO_SESSION} AND NOT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.id = t.session) LIMIT 1`,
    )
    if (orphan !== undefined) found(`rows of ${table} belong to session ${orphan.session}, which is not there`)
  }

  for (let after = '0'; ; ) {
    const records = await database.query<{ id: string; sum: string; body: string }>(
      `SELECT id, sum, body FROM ${schema}.audit WHERE session = ${NO_SESSION} AND id > $1 ORDER BY id LIMIT ${PAGE}`,
      [after],
    )
    for (const { id, sum, body } of records) {
      const { key, seq } = JSON.parse(body) as AuditRecord
      if (Number(sum) !== sumOf(key, seq, body)) found(`audit record ${id} has a wrong checksum`)
    }
    if (records.length < PAGE) break
    after = records.at(-1)!.id
  }

  const paths = await database.query<{ tenant: string; usr: string; session: string; path: string }>(
    `SELECT tenant, usr, session, path FROM ${schema}.files WHERE data IS NOT NULL`,
  )
  for (const { tenant, usr, session, path } of paths) {
    const [file] = await database.query<{ data: Buffer; sum: string }>(
      `SELECT data, sum FROM ${schema}.files
       WHERE tenant = $1 AND usr = $2 AND session = $3 AND path = $4 AND data IS NOT NULL`,
      [tenant, usr, session, path],
    )
    if (file === undefined) continue
    counts.files += 1
    if (Number(file.sum) !== crc32(file.data)) found(`the file ${path} of session ${session} has a wrong checksum`)
  }
  return { ...counts, unchecked: 0, marked: true, problems }
}

// Pages of the audit log. Ids are given out before transactions commit, so a smaller one can appear after a greater one:
// a page ends before the first record that such a transaction may still precede.

import { setTimeout as delay } from 'node:timers/promises'
import type { AuditQuery, AuditRecord } from '@oxbow/core'
import type { Database } from './database.ts'

interface Row {
  readonly id: string
  readonly settled: boolean
  readonly body: string
}

/** Appends take milliseconds, so an older transaction is waited for; a long one of somebody else is not. */
const ATTEMPTS = 20
const PAUSE_MS = 25

export async function readAudit(
  database: Database,
  { tenant, user, session, tool, status, from, to, after = 0, limit = 100 }: AuditQuery,
): Promise<{ records: AuditRecord[]; cursor: number }> {
  database.assertOpen()
  const values: unknown[] = []
  const value = (it: unknown): string => `$${values.push(it)}`
  const conditions = [
    `id > ${value(after)}`,
    tenant !== undefined && `tenant = ${value(tenant)}`,
    user !== undefined && `usr = ${value(user)}`,
    session !== undefined && `name = ${value(session)}`,
    tool !== undefined && `tool = ${value(tool)}`,
    status !== undefined && `status = ${value(status)}`,
    from !== undefined && `at >= ${value(from)}`,
    to !== undefined && `at < ${value(to)}`,
  ].filter((it) => it !== false)
  const sql = `SELECT id, xact < pg_snapshot_xmin(pg_current_snapshot()) AS settled, body FROM ${database.schema}.audit
    WHERE ${conditions.join(' AND ')} ORDER BY id LIMIT ${value(limit)}`
  for (let attempt = 1; ; attempt += 1) {
    const rows = await database.query<Row>(sql, values)
    const unsettled = rows.findIndex((it) => !it.settled)
    if (unsettled !== -1 && attempt < ATTEMPTS) {
      await delay(PAUSE_MS)
      continue
    }
    const page = unsettled === -1 ? rows : rows.slice(0, unsettled)
    const records = page.map((it) => JSON.parse(it.body) as AuditRecord)
    return { records, cursor: Number(page.at(-1)?.id ?? after) }
  }
}

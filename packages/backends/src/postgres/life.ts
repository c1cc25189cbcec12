// Whole sessions: to copy them, and to erase them.

import type { AuditRecord, Journal, SessionKey, StoredSession } from '@oxbow/core'
import { defined, withoutData } from '@oxbow/core/internal'
import { assertKey } from '../keys.ts'
import { sumOf } from './append.ts'
import type { Database } from './database.ts'
import { damaged } from './errors.ts'
import { type SummaryRow, summaryOf } from './session-row.ts'

const PAGE = 500
/** Rows that one statement erases: their locks are held for milliseconds. */
const STEP = 1_000

/** The session of audit records that describe no event that is stored. Real ids begin at 1. */
export const NO_SESSION = 0

type Life = Pick<Journal, 'note' | 'records' | 'sessions' | 'erase'>

export function postgresLife(database: Database, { read, head }: Pick<Journal, 'read' | 'head'>): Life {
  const { name, schema } = database
  const parts = ({ tenant, user, session }: SessionKey) => [tenant, user, session]

  /** Removes what erased sessions have left, a step at a time. */
  async function finish(): Promise<void> {
    const rows = await database.query<{ id: string }>(
      `SELECT id FROM ${schema}.sessions WHERE tenant = '' AND usr = '' AND head = 0 ORDER BY id`,
    )
    for (const { id } of rows) {
      let erased: unknown[]
      do {
        erased = await database.query(
          `DELETE FROM ${schema}.events WHERE session = $1 AND seq IN (
             SELECT seq FROM ${schema}.events WHERE session = $1 ORDER BY seq LIMIT ${STEP}) RETURNING 1`,
          [id],
        )
      } while (erased.length > 0)
      await stripAudit(id)
      await database.query(`DELETE FROM ${schema}.snapshots WHERE session = $1`, [id])
      await database.query(`DELETE FROM ${schema}.sessions WHERE id = $1`, [id])
    }
  }

  async function stripAudit(session: string): Promise<void> {
    for (;;) {
      const rows = await database.query<{ id: string; body: string }>(
        `SELECT id, body FROM ${schema}.audit WHERE session = $1 ORDER BY id LIMIT ${STEP}`,
        [session],
      )
      if (rows.length === 0) return
      const records = rows.map(({ body }) => withoutData(JSON.parse(body) as AuditRecord))
      const bodies = records.map((it) => JSON.stringify(it))
      const sums = records.map(({ key, seq }, n) => sumOf(key, seq, bodies[n]!))
      await database.query(
        `UPDATE ${schema}.audit a SET session = ${NO_SESSION}, body = n.body, sum = n.sum
         FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS n (id, body, sum) WHERE a.id = n.id`,
        [rows.map(({ id }) => id), bodies, sums],
      )
    }
  }

  return {
    async note(record) {
      const { key, seq, at, principal, tool, status } = record
      database.assertOpen()
      const body = JSON.stringify(record)
      await database.query(
        `INSERT INTO ${schema}.audit (session, seq, at, tenant, usr, name, tool, status, sum, body)
         VALUES (${NO_SESSION}, $1, $2, $3, $4, $5, $6, $7, $8, $9)`,
        [seq, at, key.tenant, principal.user, key.session, tool, status ?? null, sumOf(key, seq, body), body],
      )
    },

    async records(key, afterSeq, limit) {
      const events = await read(key, afterSeq, limit)
      if (events.length === 0) return []
      const rows = await database.query<{ seq: string; sum: string; body: string }>(
        `SELECT a.seq, a.sum, a.body FROM ${schema}.audit a JOIN ${schema}.sessions s ON s.id = a.session
         WHERE s.tenant = $1 AND s.usr = $2 AND s.session = $3 AND a.seq > $4 AND a.seq <= $5`,
        [...parts(key), afterSeq, events.at(-1)!.seq],
      )
      const audit = new Map<number, AuditRecord>()
      for (const { seq, sum, body } of rows) {
        if (Number(sum) !== sumOf(key, Number(seq), body))
          throw damaged(
            name,
            `session ${key.session} of ${key.user}: the audit record of event ${seq} has a wrong checksum`,
          )
        audit.set(Number(seq), JSON.parse(body) as AuditRecord)
      }
      return events.map((event) => ({ event, ...defined({ audit: audit.get(event.seq) }) }))
    },

    async *sessions({ tenant, user } = {}) {
      database.assertOpen()
      for (let after = '0'; ; ) {
        const rows = await database.query<SummaryRow & { id: string; wake_at: string | null }>(
          `SELECT * FROM ${schema}.sessions WHERE id > $1 AND ($2::text IS NULL OR tenant = $2)
             AND ($3::text IS NULL OR usr = $3) AND head > 0 ORDER BY id LIMIT ${PAGE}`,
          [after, tenant ?? null, user ?? null],
        )
        for (const row of rows)
          yield {
            ...summaryOf(row),
            ...(row.wake_at !== null && { wakeAt: Number(row.wake_at) }),
          } satisfies StoredSession
        if (rows.length < PAGE) return
        after = rows.at(-1)!.id
      }
    },

    async erase(key, expectedSeq) {
      database.assertOpen()
      assertKey(key)
      // No session has the head 0, so it is gone for everybody at once.
      const rows = await database.query(
        `UPDATE ${schema}.sessions SET tenant = '', usr = '', session = 'erasing ' || id, head = 0, status = 'idle', agent = '',
           title = '', wake_at = NULL
         WHERE tenant = $1 AND usr = $2 AND session = $3 AND head = $4 RETURNING id`,
        [...parts(key), expectedSeq],
      )
      if (rows.length === 0) {
        const found = await head(key)
        if (found !== expectedSeq) return { ok: false, head: found }
      }
      await finish()
      return { ok: true }
    },
  }
}

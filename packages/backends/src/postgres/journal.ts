// Sessions and their events.

import { crc32 } from 'node:zlib'
import type { Event, Journal, SessionKey } from '@oxbow/core'
import { assertAudit, assertDense, assertKey } from '../keys.ts'
import { appender, sumOf } from './append.ts'
import { readAudit } from './audit.ts'
import type { PostgresBus } from './bus.ts'
import type { Database } from './database.ts'
import { damaged } from './errors.ts'
import { postgresLife } from './life.ts'
import { type SummaryRow, summaryOf } from './session-row.ts'
import { topicOf, watching } from './watching.ts'

interface EventRow {
  readonly head: string
  readonly seq: string | null
  readonly sum: string
  readonly body: string
}

const nameOf = ({ user, session }: SessionKey): string => `session ${session} of ${user}`

export function postgresJournal(database: Database, bus: PostgresBus): Journal & { close(): Promise<unknown> } {
  const { name, schema } = database
  const own = `s.tenant = $1 AND s.usr = $2 AND s.session = $3`
  const appends = appender(database, (keys) => {
    for (const key of keys) bus.publish(topicOf(key), '')
  })
  const watcher = watching(database, bus)
  const values = (key: SessionKey): string[] => {
    database.assertOpen()
    assertKey(key)
    return [key.tenant, key.user, key.session]
  }
  const headOf = async (key: SessionKey): Promise<number> => {
    const sql = `SELECT s.head FROM ${schema}.sessions s WHERE ${own}`
    const [row] = await database.query<{ head: string }>(sql, values(key))
    return Number(row?.head ?? 0)
  }

  const read: Journal['read'] = async (key, afterSeq, limit = 500) => {
    const rows = await database.query<EventRow>(
      `SELECT s.head, e.seq, e.sum, e.body FROM ${schema}.sessions s
       LEFT JOIN ${schema}.events e ON e.session = s.id AND e.seq > $4 AND e.seq <= s.head
       WHERE ${own} ORDER BY e.seq LIMIT $5`,
      [...values(key), afterSeq, limit],
    )
    const head = Number(rows[0]?.head ?? 0)
    const found = rows.filter((it) => it.seq !== null)
    if (found.length !== Math.max(0, Math.min(limit, head - afterSeq)))
      throw damaged(name, `${nameOf(key)} has a gap after event ${afterSeq}`)
    return found.map((row, index) => eventOf(name, key, afterSeq + 1 + index, row))
  }

  return {
    ...postgresLife(database, { read, head: headOf }),

    async append(key, expectedSeq, events, notes) {
      values(key)
      assertDense(expectedSeq, events)
      assertAudit(events, notes.audit ?? [])
      if (await appends.append({ key, expectedSeq, events, notes })) return { ok: true }
      return { ok: false, head: await headOf(key) }
    },

    read,

    head: headOf,

    async list({ tenant, user, status, before, dueBy, limit = 100 }) {
      database.assertOpen()
      const given: unknown[] = []
      const value = (it: unknown): string => `$${given.push(it)}`
      const conditions = [
        tenant !== undefined && `tenant = ${value(tenant)}`,
        user !== undefined && `usr = ${value(user)}`,
        status !== undefined && status !== 'idle' && `status <> 'idle'`,
        status !== undefined && status !== 'open' && `status = ${value(status)}`,
        before !== undefined && `updated_at < ${value(before)}`,
        dueBy !== undefined && `wake_at <= ${value(dueBy)}`,
        // Those that are being erased have none.
        'head > 0',
      ].filter((it) => it !== false)
      // A page also holds all rows that share its last row's millisecond: `before` could not name the rest.
      const rows = await database.query<SummaryRow>(
        `SELECT tenant, usr, session, head, status, agent, title, created_at, updated_at FROM ${schema}.sessions
         WHERE ${conditions.join(' AND ')}
         ORDER BY updated_at DESC FETCH FIRST ${value(limit)} ROWS WITH TIES`,
        given,
      )
      return rows.map(summaryOf)
    },

    audit: (query) => readAudit(database, query),

    async getSnapshot(key) {
      const [row] = await database.query<{ seq: string; version: string; sum: string; data: string }>(
        `SELECT n.seq, n.version, n.sum, n.data FROM ${schema}.snapshots n JOIN ${schema}.sessions s ON s.id = n.session
         WHERE ${own}`,
        values(key),
      )
      // A cache: a damaged one is none.
      if (row === undefined || Number(row.sum) !== crc32(row.data)) return undefined
      return { seq: Number(row.seq), version: Number(row.version), data: row.data }
    },

    async putSnapshot(key, { seq, version, data }) {
      await database.query(
        `INSERT INTO ${schema}.snapshots AS n (session, seq, version, sum, data)
         SELECT s.id, $4, $5, $6, $7 FROM ${schema}.sessions s WHERE ${own}
         ON CONFLICT (session) DO UPDATE
         SET seq = excluded.seq, version = excluded.version, sum = excluded.sum, data = excluded.data
         WHERE n.version <> excluded.version OR n.seq <= excluded.seq`,
        [...values(key), seq, version, crc32(data), data],
      )
    },

    watch(key, wake) {
      values(key)
      return watcher.watch(key, wake)
    },

    /** Waits for the appends that are under way. */
    async close() {
      watcher.close()
      await appends.idle()
    },
  }
}

/** @throws OxbowError `journal_corrupt` */
function eventOf(name: string, key: SessionKey, seq: number, row: EventRow): Event {
  if (Number(row.seq) !== seq) throw damaged(name, `${nameOf(key)} has a gap before event ${row.seq}`)
  if (Number(row.sum) !== sumOf(key, seq, row.body))
    throw damaged(name, `${nameOf(key)}: event ${seq} has a wrong checksum`)
  return JSON.parse(row.body) as Event
}

// Reads sessions on the main thread and hands appends to the writer.
import type { AuditRecord, Event, Journal, SessionKey } from '@oxbow/core'
import { assertAudit, assertDense, assertKey } from '../../keys.ts'
import type { Context } from '../context.ts'
import { corrupt } from '../errors.ts'
import { type FoundSession, nameOf, sessionRows } from '../file/session-row.ts'
import { dataSum } from '../file/sums.ts'
import { stored } from '../writer/protocol.ts'
import { auditReader } from './audit.ts'
import { eventReader } from './events.ts'
import { sqliteLife } from './life.ts'
import { readSessionList } from './list.ts'

export function sqliteJournal(context: Context): Journal {
  const { db, writer, path, guard } = context
  const rows = sessionRows(db)
  const readEvents = eventReader(db)
  const readSnapshot = db.prepare(
    `SELECT seq, version, data, sum FROM snapshots
     WHERE session = (SELECT id FROM sessions WHERE tenant = ? AND user = ? AND session = ?)`,
  )
  const list = readSessionList(db)
  const auditLog = auditReader(db)

  const find = (key: Parameters<Journal['head']>[0]): FoundSession | undefined => {
    assertKey(key)
    return rows.find(key.tenant, key.user, key.session)
  }

  /** Up to the end just read: events appended between the two statements belong to the next read. */
  const rowsAfter = (key: SessionKey, afterSeq: number, limit: number) =>
    guard(() => {
      const found = find(key)
      if (found === undefined || afterSeq >= found.end.seq) return []
      return readEvents(found.row, afterSeq, found.end.seq, limit).map((it) => ({
        event: parse(it.body, it.seq, nameOf(found.row), path),
        audit: it.audit,
      }))
    })

  return {
    ...sqliteLife(context),
    async append(key, expectedSeq, events, { status, agent, title, wakeAt = null, audit = [] }) {
      guard(() => {
        assertKey(key)
        assertDense(expectedSeq, events)
        assertAudit(events, audit)
      })
      const flat: (string | number)[] = []
      for (const event of events) flat.push(event.at, JSON.stringify(event))
      const records = audit.flatMap((it) => [it.seq, it.principal.user, it.tool, it.status ?? null, JSON.stringify(it)])
      const head = await writer.write([
        'append',
        key.tenant,
        key.user,
        key.session,
        expectedSeq,
        status,
        agent,
        // A title is cut from an input, perhaps within a character.
        title.toWellFormed(),
        wakeAt,
        records,
        flat,
      ])
      return head === stored ? { ok: true } : { ok: false, head }
    },
    async read(key, afterSeq, limit = 500) {
      return rowsAfter(key, afterSeq, limit).map(({ event }) => event)
    },
    async records(key, afterSeq, limit = 500) {
      return rowsAfter(key, afterSeq, limit).map(({ event, audit }) => ({
        event,
        ...(audit !== null && { audit: JSON.parse(audit) as AuditRecord }),
      }))
    },
    async head(key) {
      return guard(() => find(key)?.end.seq ?? 0)
    },
    async list(query) {
      return guard(() => list(query))
    },
    async audit(query) {
      return guard(() => auditLog(query))
    },
    async getSnapshot(key) {
      return guard(() => {
        assertKey(key)
        const row = readSnapshot.get(key.tenant, key.user, key.session)
        // A cache: a damaged snapshot counts as missing.
        if (row === undefined || row.sum !== dataSum(String(row.data))) return undefined
        return { seq: Number(row.seq), version: Number(row.version), data: String(row.data) }
      })
    },
    async putSnapshot(key, { seq, version, data }) {
      guard(() => assertKey(key))
      await writer.write(['snapshot', key.tenant, key.user, key.session, seq, version, data])
    },
    watch(key, wake) {
      return guard(() => {
        const { tenant, user, session } = key
        return writer.watch([tenant, user, session], find(key)?.end.seq ?? 0, wake)
      })
    },
  }
}

function parse(body: string, seq: number, session: string, path: string): Event {
  let event: Event | undefined
  try {
    event = JSON.parse(body)
  } catch (cause) {
    throw corrupt(path, `event ${seq} of ${session} is not JSON`, cause)
  }
  if (event?.seq !== seq) throw corrupt(path, `event ${seq} of ${session} has the number ${event?.seq}`)
  return event
}

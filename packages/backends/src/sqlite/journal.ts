// Reads sessions on the main thread and hands appends to the writer.
import type { Event, Journal } from '@oxbow/core'
import { assertDense, assertKey } from '../keys.ts'
import { auditReader } from './audit.ts'
import type { Context } from './context.ts'
import { corrupt } from './errors.ts'
import { sessionList } from './list.ts'
import { stored } from './writer/protocol.ts'

export function sqliteJournal({ db, writer, path, guard }: Context): Journal {
  const findSession = db.prepare(
    `SELECT id, head, (SELECT max(seq) FROM events WHERE session = id)
     FROM sessions WHERE tenant = ? AND user = ? AND session = ?`,
  )
  findSession.setReturnArrays(true)
  const readEvents = db.prepare(
    'SELECT seq, body FROM events WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?',
  )
  readEvents.setReturnArrays(true)
  const readSnapshot = db.prepare(
    `SELECT seq, version, data FROM snapshots
     WHERE session = (SELECT id FROM sessions WHERE tenant = ? AND user = ? AND session = ?)`,
  )
  const list = sessionList(db)
  const auditLog = auditReader(db)

  /** A session that has rows but contradicts itself is an error, never a shorter session. */
  function find(tenant: string, user: string, session: string): { id: number; head: number } | undefined {
    const row = findSession.get(tenant, user, session) as unknown as [number, number, number | null] | undefined
    if (row === undefined) return undefined
    const [id, head, last] = row
    if (head !== last) throw corrupt(path, `session ${session} of ${user} ends at ${last}, but its head is ${head}`)
    return { id, head }
  }

  return {
    async append(key, expectedSeq, events, { status, agent, title, wakeAt = null, audit = [] }) {
      guard(() => {
        assertKey(key)
        assertDense(expectedSeq, events)
      })
      const flat: (string | number)[] = []
      for (const event of events) flat.push(event.at, event.type, JSON.stringify(event))
      const records = audit.flatMap((it) => [it.at, it.principal.user, it.tool, it.status ?? null, JSON.stringify(it)])
      // A title is cut out of an input, perhaps through the middle of a character.
      const head = await writer.write([
        'append',
        key.tenant,
        key.user,
        key.session,
        expectedSeq,
        status,
        agent,
        title.toWellFormed(),
        wakeAt,
        records,
        flat,
      ])
      return head === stored ? { ok: true } : { ok: false, head }
    },
    async read(key, afterSeq, limit = 500) {
      return guard(() => {
        assertKey(key)
        const found = find(key.tenant, key.user, key.session)
        if (found === undefined || afterSeq >= found.head) return []
        // Up to the head that was seen: what others append between the two statements belongs to the next read.
        const rows = readEvents.all(found.id, afterSeq, found.head, limit) as unknown as [number, string][]
        if (rows.length !== Math.min(limit, found.head - afterSeq)) {
          throw corrupt(path, `session ${key.session} of ${key.user} has a gap after event ${afterSeq}`)
        }
        return rows.map(([seq, body], index) => parse(body, seq, afterSeq + 1 + index, path))
      })
    },
    async head(key) {
      return guard(() => {
        assertKey(key)
        return find(key.tenant, key.user, key.session)?.head ?? 0
      })
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
        return row && { seq: Number(row.seq), version: Number(row.version), data: String(row.data) }
      })
    },
    async putSnapshot(key, { seq, version, data }) {
      guard(() => assertKey(key))
      await writer.write(['snapshot', key.tenant, key.user, key.session, seq, version, data])
    },
    watch(key, wake) {
      return guard(() => {
        assertKey(key)
        const { tenant, user, session } = key
        return writer.watch([tenant, user, session], find(tenant, user, session)?.head ?? 0, wake)
      })
    },
  }
}

function parse(body: string, seq: number, expected: number, path: string): Event {
  let event: Event | undefined
  try {
    event = JSON.parse(body)
  } catch (cause) {
    throw corrupt(path, `event ${seq} is not JSON`, cause)
  }
  if (seq !== expected || event?.seq !== seq) throw corrupt(path, `event ${expected} has the number ${event?.seq}`)
  return event
}

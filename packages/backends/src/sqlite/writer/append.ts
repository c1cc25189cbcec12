// Appends events to a session, each with its checksum, and keeps the row of the session.
import type { DatabaseSync } from 'node:sqlite'
import type { Mark } from '../file/mark.ts'
import { type LastEvent, type StoredRow, sessionRows } from '../file/session-row.ts'
import { eventSum, type SessionRow, seedOf, sessionSum } from '../file/sums.ts'
import { type Append, type Key, stored } from './protocol.ts'

const maxCachedSessions = 10_000
/** How far `updated_at` and a deadline that moves away may lag behind, so that most appends leave the row as it is. */
const lagMs = 60_000
const hourOf = (at: number): number => Math.floor(at / 3_600_000)

interface CachedSession {
  /** As stored. */
  row: StoredRow
  /** Where this process's last append ended. */
  ownHead: number
  /** The last event before our appends that another connection wrote. */
  foreignHead: number
}

// As in ../keys.ts, which the thread does not load.
const mapKey = (tenant: string, user: string, session: string) =>
  `${tenant.length}:${user.length}:${tenant}${user}${session}`

export interface Appends {
  /** `stored`, or the head at which the session ends instead. Throws on damage. */
  append(write: Append): number
  /** See Store. */
  foreignHead(key: Key, head: number): number
  /** Writes a session with an event; for a probe that is rolled back. */
  probe(): void
  /** A row was added to the table of events otherwise. */
  added(row: Mark): void
  /** The last event since this was called before; undefined when there was none. */
  takeLast(): Mark | undefined
  /** The transaction was rolled back: ids of sessions that it created are void. */
  forget(): void
}

export function openAppends(db: DatabaseSync): Appends {
  const rows = sessionRows(db)
  const addSession = db.prepare(
    `INSERT INTO sessions (head, status, agent, title, updated_at, wake_at, head_sum, sum, updated_hour,
       tenant, user, session, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const updateSession = db.prepare(
    `UPDATE sessions SET head = ?, status = ?, agent = ?, title = ?, updated_at = ?, wake_at = ?, head_sum = ?, sum = ?
     WHERE id = ?`,
  )
  const moveSession = db.prepare('UPDATE sessions SET updated_hour = ? WHERE id = ?')
  const addEvent = db.prepare(
    `INSERT INTO events (session, seq, sum, at, user, tool, status, audit, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )

  // Rows of sessions are never deleted and their ids never change, so a committed id stays valid.
  const sessions = new Map<string, CachedSession>()
  let last: Mark | undefined

  /** The session and its last event; undefined for an unknown session. Throws Damage. */
  function find(name: string, key: Key): { known: CachedSession; end: LastEvent } | undefined {
    const cached = sessions.get(name)
    if (cached !== undefined) {
      const end = rows.end(cached.row.id)
      if (end?.seq === cached.ownHead) return { known: cached, end }
    }
    // Data of another connection, or of an earlier process, is verified once.
    const found = rows.find(...key)
    if (found === undefined) return undefined
    rows.checkEnd(found)
    const { row, end } = found
    // Another session may have the key: the one that is cached was erased.
    const known = cached?.row.id === row.id ? cached : { row, ownHead: 0, foreignHead: end.seq }
    known.row = row
    return { known, end }
  }

  function remember(name: string, known: CachedSession): void {
    if (sessions.size >= maxCachedSessions && !sessions.has(name)) sessions.clear()
    sessions.set(name, known)
  }

  function insertEvents(id: number, key: Key, before: number | null, write: Append): number {
    const [, , , , expectedSeq, , , , , audit, events] = write
    let sum = before ?? seedOf(...key)
    let seq = expectedSeq
    let nextAudit = 0
    for (let index = 0; index < events.length; index += 2) {
      seq += 1
      const body = events[index + 1] as string
      const audited = audit[nextAudit] === seq
      const [by = null, tool = null, status = null, record = null] = audited
        ? audit.slice(nextAudit + 1, nextAudit + 5)
        : []
      if (audited) nextAudit += 5
      sum = eventSum(sum, { audit: record as string | null, body })
      const added = addEvent.run(id, seq, sum, audited ? events[index]! : null, by, tool, status, record, body)
      last = { id: Number(added.lastInsertRowid), sum }
    }
    return sum
  }

  const isDue = (was: StoredRow, now: Omit<SessionRow, 'head_sum' | 'created_at'>): boolean =>
    was.sum === null ||
    was.status !== now.status ||
    was.title !== now.title ||
    was.agent !== now.agent ||
    Math.abs(now.updated_at - was.updated_at) >= lagMs ||
    (was.wake_at === null) !== (now.wake_at === null) ||
    // Waking a session too early costs a look; waking it too late misses its deadline.
    (now.wake_at !== null && was.wake_at !== null && (now.wake_at < was.wake_at || now.wake_at >= was.wake_at + lagMs))

  /** Stores the row; a new one when there is no `id`. */
  function writeRow(id: number | undefined, row: SessionRow): StoredRow {
    const { head, status, agent, title, updated_at, wake_at, head_sum } = row
    const sum = sessionSum(row)
    const values = [head, status, agent, title, updated_at, wake_at, head_sum, sum] as const
    if (id !== undefined) {
      updateSession.run(...values, id)
      return { ...row, id, sum }
    }
    const added = addSession.run(...values, hourOf(updated_at), row.tenant, row.user, row.session, row.created_at)
    return { ...row, id: Number(added.lastInsertRowid), sum }
  }

  return {
    append(write) {
      const [, tenant, user, session, expectedSeq, status, agent, title, wakeAt, , events] = write
      const key: Key = [tenant, user, session]
      const name = mapKey(tenant, user, session)
      const found = find(name, key)
      if ((found?.end.seq ?? 0) !== expectedSeq) return found?.end.seq ?? 0
      const head = expectedSeq + events.length / 2
      const updated_at = events[events.length - 2] as number
      const changed = { tenant, user, session, head, status, agent, title, updated_at, wake_at: wakeAt }
      if (found === undefined) {
        // The events refer to the row, and the row holds the checksum of the last of them.
        const created = { ...changed, created_at: events[0] as number }
        const { id } = writeRow(undefined, { ...created, head_sum: 0 })
        const row = writeRow(id, { ...created, head_sum: insertEvents(id, key, null, write) })
        remember(name, { row, ownHead: head, foreignHead: expectedSeq })
        return stored
      }
      const { known, end } = found
      const { id, created_at, updated_at: before } = known.row
      const sum = insertEvents(id, key, end.sum, write)
      if (isDue(known.row, changed)) {
        if (hourOf(updated_at) !== hourOf(before)) moveSession.run(hourOf(updated_at), id)
        known.row = writeRow(id, { ...changed, created_at, head_sum: sum })
      }
      if (known.ownHead !== expectedSeq) known.foreignHead = expectedSeq
      known.ownHead = head
      remember(name, known)
      return stored
    },
    foreignHead(key, head) {
      const known = sessions.get(mapKey(...key))
      return known?.ownHead === head ? known.foreignHead : head
    },
    probe() {
      const added = addSession.run(1, 'idle', '', '', Date.now(), null, 0, 0, 0, '', '', '', 0)
      addEvent.run(added.lastInsertRowid, 1, 0, null, null, null, null, null, '')
    },
    added(row) {
      last = row
    },
    takeLast() {
      const taken = last
      last = undefined
      return taken
    },
    forget() {
      sessions.clear()
      last = undefined
    },
  }
}

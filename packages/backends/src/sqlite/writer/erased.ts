// Erases sessions, and keeps the audit records that describe no event of a session any more. Their events lie below rows
// of `sessions` that are no sessions: with a negative hour no list and no key finds them. Loaded by the writer thread, so
// it only imports from Node.
import type { DatabaseSync } from 'node:sqlite'
import type { Mark } from '../file/mark.ts'
import { sumAlone } from '../file/sums.ts'
import { type Key, stored } from './protocol.ts'

/** The `updated_hour` of rows that are no sessions. */
const ERASING = -1
const ERASED = -2
export const KEEPER = -3

/** Events that one transaction erases. */
const STEP = 500

interface AuditColumns {
  readonly at: number | null
  readonly user: string | null
  readonly tool: string | null
  readonly status: string | null
  readonly audit: string | null
}

export interface Erasures {
  /** `stored`, or the head at which the session ends instead. */
  erase(key: Key, expectedSeq: number): number
  eraseSome(): number
  note(tenant: string, columns: AuditColumns): void
}

/** `onAdded` learns of each row that was added to the table of events. */
export function openErasures(db: DatabaseSync, onAdded: (row: Mark) => void): Erasures {
  const find = db.prepare('SELECT id FROM sessions WHERE tenant = ? AND user = ? AND session = ?')
  const lastSeq = db.prepare('SELECT max(seq) AS seq FROM events WHERE session = ?')
  // Its tenant stays until its audit records have moved to the keeper of the tenant.
  const hide = db.prepare(
    `UPDATE sessions SET user = '', session = 'erased ' || id, head = 0, status = 'idle', agent = '', title = '',
       wake_at = NULL, head_sum = NULL, sum = NULL, updated_hour = ${ERASING} WHERE id = ?`,
  )
  const done = db.prepare(`UPDATE sessions SET tenant = '', updated_hour = ${ERASED} WHERE id = ?`)
  const dropSnapshot = db.prepare('DELETE FROM snapshots WHERE session = ?')
  const erasing = db.prepare(
    `SELECT id, tenant FROM sessions INDEXED BY sessions_by_hour WHERE updated_hour = ${ERASING} LIMIT 1`,
  )
  const someEvents = db.prepare(
    `SELECT id, at, user, tool, status, audit FROM events WHERE session = ? ORDER BY seq LIMIT ${STEP}`,
  )
  const drop = db.prepare('DELETE FROM events WHERE id = ?')
  const move = db.prepare(`UPDATE events SET session = ?, seq = -id, sum = ?, body = '', audit = ? WHERE id = ?`)
  const addKeeper = db.prepare(
    `INSERT INTO sessions (tenant, user, session, head, status, agent, title, created_at, updated_at, updated_hour)
     VALUES (?, '', 'kept', 0, 'idle', '', '', 0, 0, ${KEEPER})`,
  )
  const findKeeper = db.prepare(
    `SELECT id FROM sessions WHERE tenant = ? AND user = '' AND session = 'kept' AND updated_hour = ${KEEPER}`,
  )
  const add = db.prepare(
    `INSERT INTO events (session, seq, sum, at, user, tool, status, audit, body)
     VALUES (?, -1 - coalesce((SELECT max(id) FROM events), 0), ?, ?, ?, ?, ?, ?, '')`,
  )

  /** The row that holds what remains for a tenant. */
  function keeperOf(tenant: string): number {
    const id = findKeeper.get(tenant)?.id ?? addKeeper.run(tenant).lastInsertRowid
    return Number(id)
  }

  function addKept(tenant: string, { at, user, tool, status, audit }: AuditColumns): void {
    const sum = sumAlone(audit)
    const { lastInsertRowid } = add.run(keeperOf(tenant), sum, at, user, tool, status, audit)
    onAdded({ id: Number(lastInsertRowid), sum })
  }

  return {
    erase(key, expectedSeq) {
      const id = find.get(...key)?.id
      const head = id === undefined ? 0 : Number(lastSeq.get(id)?.seq ?? 0)
      if (head !== expectedSeq) return head
      if (id === undefined) return stored
      dropSnapshot.run(id)
      hide.run(id)
      // The newest row of all must stay: the mark beside the file names it, and an id must not be given twice.
      addKept(key[0], { at: null, user: null, tool: null, status: null, audit: null })
      return stored
    },
    eraseSome() {
      const session = erasing.get()
      if (session === undefined) return 0
      const rows = someEvents.all(session.id!) as unknown as (AuditColumns & { id: number })[]
      if (rows.length === 0) {
        done.run(session.id!)
        return 1
      }
      const keeper = keeperOf(String(session.tenant))
      for (const { id, audit } of rows)
        if (audit === null) drop.run(id)
        else {
          const kept = stripped(audit)
          move.run(keeper, sumAlone(kept), kept, id)
        }
      return rows.length
    },
    note: addKept,
  }
}

/** As `withoutData` of @oxbow/core, which this thread does not load. */
function stripped(audit: string): string {
  const { rule: _rule, reason: _reason, remember: _remember, ...record } = JSON.parse(audit)
  return JSON.stringify({ ...record, arguments: {}, erased: true })
}

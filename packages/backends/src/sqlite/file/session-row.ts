// Reads the row of a session and verifies it against its checksum and the events. Loaded by the writer thread too, so
// it only imports from Node.
import type { DatabaseSync } from 'node:sqlite'
import { eventSum, type SessionRow, seedOf, sessionSum } from './sums.ts'

const SQLITE_CORRUPT = 11

/** Thrown where SQLite reports no error but the rows contradict each other. */
export class Damage extends Error {
  readonly errcode = SQLITE_CORRUPT
}

export interface StoredRow extends SessionRow {
  readonly id: number
  /** Null: stored before schema 3. */
  readonly sum: number | null
}

/** The last event of a session. */
export interface LastEvent {
  readonly seq: number
  readonly sum: number | null
}

export interface FoundSession {
  readonly row: StoredRow
  readonly end: LastEvent
}

export interface SessionRows {
  /** Undefined for an unknown session. Throws Damage. */
  find(tenant: string, user: string, session: string): FoundSession | undefined
  /** The same for a known row. */
  get(id: number): FoundSession
  end(id: number): LastEvent | undefined
  /** Throws Damage unless the last event is chained to the one before it. */
  checkEnd(found: FoundSession): void
}

export const nameOf = ({ session, user }: SessionRow): string => `session ${session} of ${user}`

/** Throws Damage unless the row has its own checksum. */
export function checkRow(row: StoredRow): void {
  if (row.sum !== null && row.sum !== sessionSum(row)) throw new Damage(`${nameOf(row)}: its row has a wrong checksum`)
}

export function sessionRows(db: DatabaseSync): SessionRows {
  const columns =
    'id, tenant, user, session, head, status, agent, title, created_at, updated_at, wake_at, head_sum, sum'
  const byKey = db.prepare(`SELECT ${columns} FROM sessions WHERE tenant = ? AND user = ? AND session = ?`)
  const byId = db.prepare(`SELECT ${columns} FROM sessions WHERE id = ?`)
  // A bare parameter is compared with the condition of the partial index, and then SQLite prepares the statement anew
  // for each value: three times the work of the statement itself.
  // A session that was erased has none, although its events are removed step by step.
  const lastOf = db.prepare(
    `SELECT seq, sum FROM events WHERE session = CAST(?1 AS INTEGER)
       AND EXISTS (SELECT 1 FROM sessions WHERE id = CAST(?1 AS INTEGER) AND updated_hour >= 0)
     ORDER BY seq DESC LIMIT 1`,
  )
  const sumAt = db.prepare('SELECT sum FROM events WHERE session = ? AND seq = ?')
  const eventAt = db.prepare('SELECT audit, body FROM events WHERE session = ? AND seq = ?')

  function checked(row: StoredRow): FoundSession {
    checkRow(row)
    const end = lastOf.get(row.id) as unknown as LastEvent | undefined
    // Without a checksum the row is one of schema 2, which was written with every event.
    if (end === undefined || end.seq < row.head || (row.sum === null && end.seq > row.head))
      throw new Damage(`${nameOf(row)} ends at ${end?.seq ?? 0}, but its head is ${row.head}`)
    if (row.sum !== null && sumAt.get(row.id, row.head)?.sum !== row.head_sum)
      throw new Damage(`${nameOf(row)}: event ${row.head} is not the one that its row names`)
    return { row, end }
  }

  return {
    find(...key) {
      const row = byKey.get(...key) as StoredRow | undefined
      return row && checked(row)
    },
    get: (id) => checked(byId.get(id) as unknown as StoredRow),
    end: (id) => lastOf.get(id) as unknown as LastEvent | undefined,
    checkEnd({ row, end: { seq, sum } }) {
      const before = sumAt.get(row.id, seq - 1)?.sum as number | null | undefined
      const { audit, body } = eventAt.get(row.id, seq) as { audit: string | null; body: string }
      const seed = seedOf(row.tenant, row.user, row.session)
      if (sum === null ? before != null : sum !== eventSum(before ?? seed, { audit, body }))
        throw new Damage(`${nameOf(row)}: event ${seq} has a wrong checksum`)
    },
  }
}

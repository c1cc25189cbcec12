// Reads events in pages and follows the chain of their checksums.
import type { DatabaseSync } from 'node:sqlite'
import { Damage, nameOf, type StoredRow } from '../file/session-row.ts'
import { eventSum, seedOf } from '../file/sums.ts'

export interface EventRow {
  readonly seq: number
  readonly body: string
  readonly audit: string | null
  /** Null: stored before schema 3, and unchecked. */
  readonly sum: number | null
}

/** Reads the events after `after` up to `end`, at most `limit`. Throws Damage on a gap or a wrong checksum. */
export function eventReader(
  db: DatabaseSync,
): (row: StoredRow, after: number, end: number, limit: number) => EventRow[] {
  const readEvents = db.prepare(
    'SELECT seq, body, audit, sum FROM events WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?',
  )
  const sumAt = db.prepare('SELECT sum FROM events WHERE session = ? AND seq = ?')
  return (row, after, end, limit) => {
    const page = readEvents.all(row.id, after, end, limit) as unknown as EventRow[]
    if (page.length !== Math.min(limit, end - after)) throw new Damage(`${nameOf(row)} has a gap after event ${after}`)
    let before = after === 0 ? null : (sumAt.get(row.id, after)?.sum as number | null)
    const seed = seedOf(row.tenant, row.user, row.session)
    for (const [index, it] of page.entries()) {
      if (it.seq !== after + 1 + index) throw new Damage(`${nameOf(row)} has a gap before event ${it.seq}`)
      if (it.sum === null ? before !== null : it.sum !== eventSum(before ?? seed, it))
        throw new Damage(`${nameOf(row)}: event ${it.seq} has a wrong checksum`)
      before = it.sum
    }
    return page
  }
}

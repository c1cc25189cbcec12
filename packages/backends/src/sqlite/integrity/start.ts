// Checks on opening a store: that it ends where its mark points, and that its newest events are intact.
import type { DatabaseSync } from 'node:sqlite'
import type { OxbowError } from '@oxbow/core'
import { corrupt, incomplete, storageError } from '../errors.ts'
import { type Mark, markPath } from '../file/mark.ts'
import { sessionRows } from '../file/session-row.ts'
import { eventReader } from '../reading/events.ts'

/** Enough to cover the last writes before a failure, and few enough to take milliseconds. */
const newest = 200

/**
 * The fault at the end of the store; undefined when there is none. `mark` was read before the database was opened.
 */
export function checkStart(db: DatabaseSync, path: string, mark: Mark | 'damaged' | undefined): OxbowError | undefined {
  try {
    return checkMark(db, path, mark) ?? checkNewest(db)
  } catch (error) {
    return storageError(path, error)
  }
}

export function checkMark(db: DatabaseSync, path: string, mark: Mark | 'damaged' | undefined): OxbowError | undefined {
  if (mark === undefined) return undefined
  if (mark === 'damaged') return corrupt(path, `its mark ${markPath(path)} has a wrong checksum`)
  const last = Number(db.prepare('SELECT max(id) AS id FROM events').get()?.id ?? 0)
  if (last < mark.id) return incomplete(path, mark.id - last)
  const sum = db.prepare('SELECT sum FROM events WHERE id = ?').get(mark.id)?.sum
  // After a power failure the mark may be older than an erasure that has removed its row.
  const erased = () =>
    db
      .prepare(
        `SELECT 1 FROM sessions JOIN events ON events.session = sessions.id
         WHERE sessions.updated_hour < 0 AND events.id > ? AND events.tool IS NULL LIMIT 1`,
      )
      .get(mark.id)
  return sum === mark.sum || erased() !== undefined
    ? undefined
    : corrupt(path, `event row ${mark.id} is not the one that was acknowledged`)
}

function checkNewest(db: DatabaseSync): undefined {
  const tails = db
    .prepare(
      `SELECT session, min(seq) AS first FROM (SELECT session, seq FROM events ORDER BY id DESC LIMIT ${newest})
       WHERE session IN (SELECT id FROM sessions WHERE updated_hour >= 0) GROUP BY session`,
    )
    .all() as { session: number; first: number }[]
  const rows = sessionRows(db)
  const read = eventReader(db)
  for (const { session, first } of tails) {
    const { row, end } = rows.get(session)
    read(row, first - 1, end.seq, newest)
  }
  return undefined
}

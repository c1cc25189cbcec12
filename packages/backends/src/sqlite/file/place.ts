// Whether the files that were opened are still those at the path. Loaded by the writer thread too, so it imports
// nothing of ours.
import { statSync } from 'node:fs'

const identity = (path: string): string => {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? 'none' : `${stat.dev}:${stat.ino}`
}

/**
 * Tells the database and its log from others that take their place. SQLite goes on with a deleted one as if nothing
 * were amiss, and what it stores then is gone with the process.
 */
export const placeOf = (path: string): string => ['', '-wal', '-shm'].map((end) => identity(path + end)).join(' ')

// Whether the opened files are still those at the path. Loaded by the writer thread too, so it only imports from Node.
import { statSync } from 'node:fs'

const identity = (path: string): string => {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? 'none' : `${stat.dev}:${stat.ino}`
}

/**
 * Distinguishes the database and its log from replacements. SQLite continues with a deleted file without an error, and
 * its further writes are lost with the process.
 */
export const placeOf = (path: string): string => ['', '-wal', '-shm'].map((end) => identity(path + end)).join(' ')

// Shrinks the log when writing pauses. While a reader holds an old state of the file, the log cannot restart and grows;
// it would keep that size. Loaded by the writer thread.
import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { busyMs, logLimitBytes } from '../file/schema.ts'

const idleMs = 1_000

/** Returns the function to call at each write. */
export function shrinkWhenIdle(db: DatabaseSync, path: string): () => void {
  const timer = setTimeout(() => {
    if (!isLarge()) return
    try {
      // Without waiting: a reader may take minutes, and a write may come.
      db.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // Busy, or a fault of the disk that the next write tells.
    } finally {
      db.exec(`PRAGMA busy_timeout = ${busyMs}`)
    }
    if (isLarge()) timer.refresh()
  }, idleMs)
  const isLarge = (): boolean => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > logLimitBytes
  return () => void timer.refresh()
}

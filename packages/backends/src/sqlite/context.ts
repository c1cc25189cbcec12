import type { DatabaseSync } from 'node:sqlite'
import type { Writer } from './writer/writer.ts'

/** What the parts of one open back end share. */
export interface Context {
  /** For reading only. */
  readonly db: DatabaseSync
  readonly writer: Writer
  readonly path: string
  /** Runs a function unless the back end is closed; SQLite errors become OxbowErrors. */
  guard<T>(run: () => T): T
}

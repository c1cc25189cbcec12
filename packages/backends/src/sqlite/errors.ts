// What went wrong with the file, in words for the person who has to mend it.
import { type ErrorCode, OxbowError } from '@oxbow/core'
import type { WriteFailure } from './writer/protocol.ts'

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_NOTADB = 26

/** The journal cannot be trusted: `what` says where. */
export const corrupt = (path: string, what: string, cause?: unknown): OxbowError =>
  new OxbowError(
    'journal_corrupt',
    `${path} is damaged: ${what}. Stop every Oxbow that uses it, keep a copy, and restore a backup.`,
    { details: { path, what }, cause },
  )

/** The files that are open are not those at the path any more. */
export const displacedError = (path: string): OxbowError =>
  new OxbowError(
    'storage_displaced',
    `${path} or its log beside it (-wal, -shm) was deleted or replaced while in use; nothing is stored any more. ` +
      'Stop every Oxbow that uses it, restore the files or a backup, and start again.',
    { details: { path } },
  )

/** Makes an OxbowError of what SQLite or the file system threw. */
export function storageError(path: string, error: unknown): OxbowError {
  if (error instanceof OxbowError) return error
  const { message, errcode, displaced } = error as Error & Partial<WriteFailure>
  if (displaced) return displacedError(path)
  // The low byte is the kind, the rest tells variants of it apart.
  const kind = errcode === undefined ? undefined : errcode & 0xff
  const failure = (code: ErrorCode, text: string, retryable: boolean) =>
    new OxbowError(code, text, { retryable, details: { path, errcode, reason: message }, cause: error })
  switch (kind) {
    case SQLITE_FULL:
      return failure('storage_full', `The disk of ${path} is full; nothing was stored. Free some space.`, true)
    case SQLITE_READONLY:
      return failure('storage_readonly', `${path} cannot be written. Check its permissions and its disk.`, false)
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return failure(
        'storage_busy',
        `${path} stayed locked by another process for 5 seconds; nothing was stored. Look for a program that holds it open.`,
        true,
      )
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return corrupt(path, message, error)
    case SQLITE_IOERR:
      return failure('storage_error', `Reading or writing ${path} failed: ${message}. Check the disk.`, true)
    default:
      return failure('storage_error', `${path} cannot be used: ${message}.`, false)
  }
}

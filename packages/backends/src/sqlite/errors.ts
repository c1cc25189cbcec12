// Errors of the file, in words for the person who has to repair it.
import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { type ErrorCode, OxbowError } from '@oxbow/core'
import { markPath } from './file/mark.ts'
import type { WriteFailure } from './writer/protocol.ts'

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26

/** The journal cannot be trusted: `what` names the place. */
export const corrupt = (path: string, what: string, cause?: unknown): OxbowError =>
  new OxbowError(
    'journal_corrupt',
    `${path} is damaged: ${what}. Stop every Oxbow that uses it, keep a copy, and restore a backup.`,
    { details: { path, what }, cause },
  )

/** Acknowledged events are missing: `count` of them, or all. */
export const incomplete = (path: string, count: number | undefined): OxbowError =>
  new OxbowError(
    'journal_incomplete',
    `${count === undefined ? `${path} is missing, with every event` : `${count} events at the end of ${path} are missing`} ` +
      'that had been acknowledged: the file was replaced by an older one, or its log (-wal) was lost or damaged. ' +
      `Stop every Oxbow that uses it and restore a newer copy, or delete ${markPath(path)} to accept the loss.`,
    { details: { path, missing: count } },
  )

/** The open files are no longer those at the path. */
export const displacedError = (path: string): OxbowError =>
  new OxbowError(
    'storage_displaced',
    `${path} or its log beside it (-wal, -shm) was deleted or replaced while in use; nothing more is stored. ` +
      'Stop every Oxbow that uses it, restore the files or a backup, and start again.',
    { details: { path } },
  )

/** Converts an error of SQLite or the file system to an OxbowError. */
export function storageError(path: string, error: unknown): OxbowError {
  if (error instanceof OxbowError) return error
  const { message, errcode, displaced } = error as Error & Partial<WriteFailure>
  if (displaced) return displacedError(path)
  // The low byte is the kind, the rest tells variants of it apart.
  const kind = errcode === undefined ? undefined : errcode & 0xff
  const failure = (code: ErrorCode, text: string, retryable: boolean) =>
    new OxbowError(code, text, { retryable, details: { path, errcode, reason: message }, cause: error })
  const readonly = () =>
    failure(
      'storage_readonly',
      `${path} cannot be written: the file, its directory or the file system is read-only for this user. ` +
        'Make both writable, or use a store in another directory.',
      false,
    )
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') return readonly()
  switch (kind) {
    case SQLITE_FULL:
      return failure('storage_full', `The disk of ${path} is full; nothing was stored. Free some space.`, true)
    case SQLITE_READONLY:
      return readonly()
    case SQLITE_CANTOPEN:
      // SQLite also reports only this when it could not create its log.
      if (!isWritable(path)) return readonly()
      return failure(
        'storage_error',
        `${path} cannot be opened: ${message}. Check the path and its permissions.`,
        false,
      )
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

/** A store writes the file, and its log in the same directory. */
function isWritable(path: string): boolean {
  try {
    for (const it of [path, dirname(path)]) accessSync(it, constants.W_OK)
    return true
  } catch (error) {
    // A missing file is not read-only.
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

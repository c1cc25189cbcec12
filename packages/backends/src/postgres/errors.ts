// What went wrong with the database, in words for the person who has to repair it.
import { type ErrorCode, OxbowError } from '@oxbow/core'

/** Conflicts between transactions: nothing was stored, and the same statement may pass a moment later. */
const CONFLICTS = new Set(['40001', '40P01', '55P03'])
/** Errors of the socket, as Node names them. */
const SOCKET = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH', 'EAI_AGAIN'])

const codeOf = (error: unknown): string => String((error as { code?: unknown } | undefined)?.code ?? '')

/** Nothing was stored: the transaction lost against another one. */
export const isConflict = (error: unknown): boolean => CONFLICTS.has(codeOf(error))

/** The connection or the server has gone: what was under way may have been committed or not. */
export function isConnectionLoss(error: unknown): boolean {
  const code = codeOf(error)
  if (code.startsWith('08') || code.startsWith('57P') || SOCKET.has(code)) return true
  return /connection (terminated|ended)|not queryable|timeout exceeded when trying to connect|Query read timeout/i.test(
    (error as Error | undefined)?.message ?? '',
  )
}

/** A session whose rows contradict each other. */
export const damaged = (name: string, what: string, cause?: unknown): OxbowError =>
  new OxbowError('journal_corrupt', `${name} is damaged: ${what}. Keep a copy of the database, and restore a backup.`, {
    details: { what },
    cause,
  })

/** Makes an OxbowError of what the driver threw. `name` has no password in it, and no other part of the URL. */
export function postgresError(name: string, error: unknown): OxbowError {
  if (error instanceof OxbowError) return error
  const code = codeOf(error)
  const reason = (error as Error | undefined)?.message ?? String(error)
  const failure = (oxbowCode: ErrorCode, text: string, retryable: boolean) =>
    new OxbowError(oxbowCode, text, { retryable, details: { sqlState: code, reason } })
  if (isConflict(error)) return failure('storage_busy', `${name}: too many writers compete. Try again.`, true)
  if (code === '53100')
    return failure('storage_full', `${name}: the disk of the server is full. Free some space.`, true)
  if (code === '53300')
    return failure(
      'storage_busy',
      `${name}: the server has no connection left. Raise max_connections, or use fewer.`,
      true,
    )
  if (code === '25006')
    return failure(
      'storage_readonly',
      `${name} is read-only, perhaps a standby. Give the address of the primary.`,
      true,
    )
  if (code.startsWith('28') || code === '3D000')
    return failure(
      'storage_error',
      `${name} refuses the connection: ${reason}. Check user, password and database.`,
      false,
    )
  if (code === '42501')
    return failure('storage_error', `${name}: ${reason}. Grant the user what it needs on the schema.`, false)
  if (code === '57014') return failure('storage_busy', `${name}: a statement took too long and was cancelled.`, true)
  if (isConnectionLoss(error))
    return failure('storage_busy', `${name} cannot be reached: ${reason || code}. Check that the server runs.`, true)
  return failure('storage_error', `${name} cannot be used: ${reason}.`, false)
}

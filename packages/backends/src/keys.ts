// Validation of names that every back end shares.
import { type AuditRecord, type Event, OxbowError, type SessionKey } from '@oxbow/core'

/**
 * One string per key, for maps in memory only. The lengths make it injective: no two keys share a string, whatever
 * characters they hold.
 */
export const mapKey = ({ tenant, user, session }: SessionKey): string =>
  `${tenant.length}:${user.length}:${tenant}${user}${session}`

/** The key of which `mapKey` made the text. */
export function keyOfMap(text: string): SessionKey {
  const [tenant = '', user = ''] = text.split(':', 2)
  const start = tenant.length + user.length + 2
  const userAt = start + Number(tenant)
  const sessionAt = userAt + Number(user)
  return { tenant: text.slice(start, userAt), user: text.slice(userAt, sessionAt), session: text.slice(sessionAt) }
}

/**
 * Refuses names that storage cannot keep apart: a lone surrogate becomes U+FFFD in UTF-8, so two different names would
 * be one row, and a NUL ends a string for some readers. Throws `invalid_key`.
 */
export function assertKey(key: SessionKey): void {
  assertName(key.tenant, 'tenant')
  assertName(key.user, 'user')
  assertName(key.session, 'session')
}

/** As `assertKey`, for one name. */
export function assertName(name: string, what: string): void {
  if (typeof name === 'string' && name.isWellFormed() && !name.includes('\0')) return
  throw new OxbowError('invalid_key', `The ${what} ${JSON.stringify(name)} is not well-formed text without NUL.`, {
    details: { what, name },
  })
}

/**
 * Throws `invalid_append` unless the batch continues `expectedSeq` without a gap. This is an error of the caller, not a
 * conflict.
 */
export function assertDense(expectedSeq: number, events: readonly Event[]): void {
  const start = Number.isSafeInteger(expectedSeq) && expectedSeq >= 0 && events.length > 0
  if (start && events.every((event, index) => event.seq === expectedSeq + 1 + index)) return
  const seqs = events.map((event) => event.seq)
  throw new OxbowError(
    'invalid_append',
    `An append after ${expectedSeq} needs at least one event, numbered from ${expectedSeq + 1} without a gap.`,
    { details: { expectedSeq, seqs: seqs.slice(0, 20) } },
  )
}

/** Throws `invalid_append` unless each audit record describes an event of the batch, in order. */
export function assertAudit(events: readonly Event[], audit: readonly AuditRecord[]): void {
  const ascends = audit.every(({ seq }, index) => seq > (audit[index - 1]?.seq ?? 0))
  if (ascends && audit.every(({ seq }) => events.some((it) => it.seq === seq))) return
  throw new OxbowError(
    'invalid_append',
    'Audit records must describe events of the same append, at most one each, in their order.',
    { details: { audit: audit.map(({ seq }) => seq).slice(0, 20) } },
  )
}

/** The error of every call on a back end after `close`. */
export const closedError = (name: string): OxbowError =>
  new OxbowError('backend_closed', `The back end ${name} is closed. Open a new one to continue.`)

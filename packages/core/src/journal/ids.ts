import { hash, randomUUID } from 'node:crypto'
import { DEFAULT_TENANT } from '../authority.ts'
import { OxbowError } from '../errors.ts'
import type { SessionKey } from '../ports.ts'

const ID = /^(?!\.+$)[A-Za-z0-9_.-]{1,64}$/

/** The rule for every id that comes from outside. */
export const isId = (value: unknown): value is string => typeof value === 'string' && ID.test(value)

/** @throws OxbowError `invalid_id` */
export function assertId(value: unknown, name: string): string {
  if (isId(value)) return value
  throw new OxbowError(
    'invalid_id',
    `${name} must be 1 to 64 of the characters A-Z a-z 0-9 _ . - and not only dots; got ${JSON.stringify(value) ?? 'nothing'}`.slice(
      0,
      240,
    ),
  )
}

/**
 * An id for a name that is not one, such as an e-mail address: readable, always the same for the same text, and unlike
 * the id of any other text. Upper and lower case are kept apart.
 *
 * @example userId('ann@example.com') // 'ann-example.com-61c26e6edb6acdd1'
 */
export function userId(text: string): string {
  const normal = text.normalize('NFC')
  const readable = normal.replace(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 47)
  // As JSON, because lone surrogates would all become the same bytes.
  return `${readable}-${hash('sha256', JSON.stringify(normal)).slice(0, 16)}`
}

export const newId = (): string => randomUUID()

/** Checks the three parts and fills the default tenant. */
export function sessionKey(key: { tenant?: string | undefined; user: string; session: string }): SessionKey {
  return {
    tenant: assertId(key.tenant ?? DEFAULT_TENANT, 'tenant'),
    user: assertId(key.user, 'user'),
    session: assertId(key.session, 'session'),
  }
}

/** One text for a key, unlike that of any other key: for maps, and for providers' caches. */
export const nameOfKey = ({ tenant, user, session }: SessionKey): string => JSON.stringify([tenant, user, session])

/**
 * The ids of one call. Both come from where the call stands, so that an answer that is made again after a crash meets
 * the records of the first one; a model's own call ids change with every answer.
 */
export function callIds(
  key: SessionKey,
  turnId: string,
  step: number,
  position: number,
): { callId: string; operationId: string } {
  const digest = hash('sha256', JSON.stringify([key.tenant, key.user, key.session, turnId, step, position]))
  return { callId: `call_${digest.slice(0, 20)}`, operationId: `op_${digest.slice(0, 40)}` }
}

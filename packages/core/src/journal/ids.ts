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

const HASHED = /^id-[0-9a-f]{40}$/

/**
 * An id for any text that is not blank, such as an e-mail address or the `id` of a chat. A text that is an id already
 * stays as it is, any other becomes `id-` and a hash; so does one that looks like such a hash, so that nobody can choose
 * the id of another text. Upper and lower case are kept apart. The service names its users in the same way.
 *
 * @throws OxbowError `invalid_id` for a value that is not a text, or is blank
 * @example userId('ann@example.com') // 'id-71d4f55f72fa128dfb468a1a3901507c804b7431'
 */
export function userId(text: string): string {
  if (typeof text !== 'string' || text.trim() === '')
    throw new OxbowError(
      'invalid_id',
      `userId(): needs a text that is not blank; got ${JSON.stringify(text) ?? 'nothing'}`.slice(0, 240),
    )
  if (isId(text) && !HASHED.test(text)) return text
  // JSON keeps the code of a lone surrogate; in UTF-8 all lone surrogates become the same character.
  return `id-${hash('sha256', text.isWellFormed() ? text : JSON.stringify(text)).slice(0, 40)}`
}

export const newId = (): string => randomUUID()

function assertUser(user: unknown): string {
  if (isId(user) || typeof user !== 'string' || user.trim() === '') return assertId(user, 'user')
  throw new OxbowError(
    'invalid_id',
    `user is not an id: got ${JSON.stringify(user).slice(0, 100)}. userId(text) makes an id of an e-mail address or any other text.`,
  )
}

/** Checks the three parts and fills the default tenant. */
export function sessionKey(key: { tenant?: string | undefined; user: string; session: string }): SessionKey {
  return {
    tenant: assertId(key.tenant ?? DEFAULT_TENANT, 'tenant'),
    user: assertUser(key.user),
    session: assertId(key.session, 'session'),
  }
}

/** One text for a key, unlike that of any other key: for maps, and for providers' caches. */
export const nameOfKey = ({ tenant, user, session }: SessionKey): string => JSON.stringify([tenant, user, session])

/**
 * The ids of one call. Both derive from its position, so that an answer that is repeated after a crash finds
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

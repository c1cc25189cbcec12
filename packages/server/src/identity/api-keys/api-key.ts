// An API key: `oxb_<id>_<secret>`. The id is public and identifies the record, which stores a hash of the whole key.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { OxbowError, type Principal } from '@oxbow/core'
import { assertId, DEFAULT_TENANT, defined } from '@oxbow/core/internal'
import { z } from 'zod'
import type { KnownPrincipal } from '../contract.ts'
import { dataScopes } from '../data-scope.ts'

export interface ApiKey {
  readonly id: string
  readonly digest: Buffer
  readonly principal: KnownPrincipal
  /** Milliseconds since 1970. */
  readonly expiresAt: number | undefined
}

const FORM = /^oxb_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/
const idOfKey = (key: string): string | undefined => FORM.exec(key)?.[1]
// The secret has 256 random bits: it cannot be guessed, so a slow hash would protect nothing.
const digestOf = (key: string): Buffer => hash('sha256', key, 'buffer')

export interface NewApiKey {
  /** Shown once and never stored. */
  readonly key: string
  readonly id: string
  /** The record for the file of keys. */
  readonly toml: string
}

/**
 * @throws OxbowError `invalid_id`, `invalid_expiry`, `invalid_data_scope`
 * @example const { key, toml } = createApiKey({ user: 'ann', permissions: ['oxbow:admin'] })
 */
export function createApiKey(
  whose: Omit<Principal, 'user'> & { readonly user: string; readonly expires?: string },
  table: 'keys' | 'identity.keys' = 'keys',
): NewApiKey {
  const { user, tenant, department, roles = [], permissions = [], dataScope, expires } = whose
  assertId(user, 'user')
  if (tenant !== undefined) assertId(tenant, 'tenant')
  if (expires !== undefined && timeOf(expires) === undefined)
    throw new OxbowError('invalid_expiry', `expires must be ${DATE_FORM}; got ${JSON.stringify(expires.slice(0, 60))}`)
  if (expires !== undefined && timeOf(expires)! <= Date.now())
    throw new OxbowError('invalid_expiry', `expires is in the past: ${expires}. The key would never be valid.`)
  const id = randomBytes(6).toString('hex')
  const key = `oxb_${id}_${randomBytes(32).toString('base64url')}`
  const lines = [
    `[[${table}]]`,
    `id = "${id}"`,
    `hash = "sha256:${digestOf(key).toString('hex')}"`,
    `user = "${user}"`,
    ...(tenant === undefined ? [] : [`tenant = "${tenant}"`]),
    ...(department === undefined ? [] : [`department = ${JSON.stringify(department)}`]),
    ...(roles.length === 0 ? [] : [`roles = ${JSON.stringify(roles)}`]),
    ...(permissions.length === 0 ? [] : [`permissions = ${JSON.stringify(permissions)}`]),
    ...(dataScope === undefined ? [] : [`dataScope = [${dataScope.map(inlineTable).join(', ')}]`]),
    ...(expires === undefined ? [] : [`expires = "${expires}"`]),
  ]
  return { key, id, toml: `${lines.join('\n')}\n` }
}

/** JSON strings, numbers and lists are valid TOML. Tables are written with `=`, and TOML has no null. */
function inlineTable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inlineTable).join(', ')}]`
  if (value === null)
    throw new OxbowError(
      'invalid_data_scope',
      'dataScope must not contain null: TOML has no null. Leave the field out.',
    )
  if (typeof value !== 'object') return JSON.stringify(value)
  const entries = Object.entries(value).map(([name, it]) => `${JSON.stringify(name)} = ${inlineTable(it)}`)
  return `{ ${entries.join(', ')} }`
}

const NOBODY = Buffer.alloc(32)

/** The record of exactly this key, expired or not. */
export function findApiKey(keys: ReadonlyMap<string, ApiKey>, presented: string): ApiKey | undefined {
  const id = idOfKey(presented)
  if (id === undefined) return undefined
  const found = keys.get(id)
  // Compares even when the id is unknown, so that both cases take the same time.
  const same = timingSafeEqual(digestOf(presented), found?.digest ?? NOBODY)
  return same ? found : undefined
}

const DATE_FORM = 'a date such as 2030-01-31, or a time with its offset such as 2030-01-31T12:00:00Z'

function timeOf(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/i.test(text)) return undefined
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

const id = z.string().regex(/^(?!\.+$)[A-Za-z0-9_.-]{1,64}$/, 'must have 1 to 64 of the characters A-Z a-z 0-9 _ . -')
const record = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{12}$/, 'must be the id of a key: 12 hexadecimal digits'),
  hash: z.string().regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256: followed by 64 hexadecimal digits'),
  user: id,
  tenant: id.optional(),
  department: z.string().optional(),
  roles: z.array(z.string()).default([]),
  permissions: z.array(z.string()).default([]),
  dataScope: dataScopes.optional(),
  // TOML dates serialize as they were written.
  expires: z
    .union([z.string(), z.date().transform((it) => it.toISOString())])
    .refine((it) => timeOf(it) !== undefined, `must be ${DATE_FORM}`)
    .optional(),
})

/** Reads records of keys. Each mistake is reported with its place and without the hash. */
export function parseApiKeys(records: readonly unknown[], where: string, problems: string[]): ApiKey[] {
  return records.flatMap((it, n) => {
    const parsed = record.safeParse(it)
    if (!parsed.success) {
      for (const { path, message } of parsed.error.issues)
        problems.push(`${where}[${n}]${path.length === 0 ? '' : `.${path.join('.')}`}: ${message}`)
      return []
    }
    const { id, hash, user, tenant = DEFAULT_TENANT, department, roles, permissions, dataScope, expires } = parsed.data
    const principal = {
      tenant,
      user,
      ...defined({ department }),
      roles,
      permissions,
      ...defined({ dataScope }),
    }
    const digest = Buffer.from(hash.slice('sha256:'.length), 'hex')
    return [{ id, digest, principal, expiresAt: expires === undefined ? undefined : timeOf(expires) }]
  })
}

// The identity configuration that the rest of the service uses: one shape for each mode, complete and free of
// contradictions.

import { type FieldPaths, presets, type ScopeOfRole } from './introspection-presets.ts'
import { ALGORITHMS } from './settings/identity-settings.ts'
import type { Settings } from './settings/schema.ts'

export interface RefreshConfig {
  readonly url: string | undefined
  readonly authorization: string | undefined
  readonly timeoutMs: number
}

export interface ApiKeysConfig {
  readonly mode: 'api-keys'
  /** As given in the configuration; checked when identity is created. */
  readonly keys: readonly unknown[]
  readonly keysFile: string | undefined
}

export interface JwtConfig {
  readonly mode: 'jwt'
  readonly key:
    | { readonly type: 'jwks'; readonly url: string; readonly maxAgeMs: number; readonly cooldownMs: number }
    | { readonly type: 'public'; readonly pem: string }
    | { readonly type: 'secret'; readonly secret: string }
  readonly algorithms: readonly string[]
  readonly issuer: string | undefined
  readonly audience: string | undefined
  readonly clockSkewMs: number
  readonly requiredClaims: readonly string[]
  readonly claims: FieldPaths
  readonly refresh: RefreshConfig
}

export interface IntrospectionConfig {
  readonly mode: 'introspection'
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: readonly string[]
  readonly cookies: readonly string[]
  readonly success: string | undefined
  readonly refused: readonly string[]
  readonly timeoutMs: number
  readonly cacheMs: number
  readonly cacheSize: number
  readonly fields: FieldPaths
  /** A permission id of the host that grants every permission. */
  readonly everything: string | undefined
  /** Converts the host's roles at `fields.dataScope`. Undefined: the field has data scopes in Oxbow's own form. */
  readonly scopeOfRole: ScopeOfRole | undefined
  readonly refresh: RefreshConfig
}

export type IdentityConfig = { readonly mode: 'none' } | ApiKeysConfig | JwtConfig | IntrospectionConfig

type Given = Settings['identity']

/** Undefined when something is missing or contradictory; the reasons are added to `problems`. */
export function identityConfig(given: Given, problems: string[]): IdentityConfig | undefined {
  switch (given.mode) {
    case 'none':
      return { mode: 'none' }
    case 'api-keys':
      return apiKeys(given, problems)
    case 'jwt':
      return jwt(given, problems)
    case 'introspection':
      return introspection(given, problems)
  }
}

function apiKeys({ keys = [], keysFile }: Given, problems: string[]): ApiKeysConfig | undefined {
  if (keys.length > 0 || keysFile !== undefined) return { mode: 'api-keys', keys, keysFile }
  problems.push(
    'identity.keys: mode "api-keys" has no keys; set identity.keysFile, or add [[identity.keys]] to the file',
  )
  return undefined
}

function jwt({ jwt: it, refresh }: Given, problems: string[]): JwtConfig | undefined {
  const before = problems.length
  const given = [it.jwksUrl, it.publicKey, it.secret].filter((key) => key !== undefined)
  if (given.length !== 1)
    problems.push(
      'identity.jwt: give exactly one of jwksUrl, publicKey and secret; ' +
        `${given.length === 0 ? 'none' : given.length} given`,
    )
  if (it.secret !== undefined && Buffer.byteLength(it.secret) < 32)
    problems.push('identity.jwt.secret: shorter than 32 bytes, so it could be guessed; use a longer one')
  // An issuer signs for many services: without an audience their tokens would be accepted here.
  if (it.jwksUrl !== undefined)
    for (const name of ['issuer', 'audience'] as const)
      if (it[name] === undefined) problems.push(`identity.jwt.${name}: is required with identity.jwt.jwksUrl`)
  // A public key must never be used as the secret of an HS algorithm.
  const fitting: readonly string[] = it.secret === undefined ? ALGORITHMS.asymmetric : ALGORITHMS.symmetric
  const unfit = it.algorithms?.filter((name) => !fitting.includes(name)) ?? []
  if (unfit.length > 0)
    problems.push(
      `identity.jwt.algorithms: ${unfit.join(', ')} cannot be used with ${it.secret === undefined ? 'public keys' : 'a secret'}; ` +
        `allowed: ${fitting.join(', ')}`,
    )
  if (problems.length > before) return undefined
  return {
    mode: 'jwt',
    key:
      it.jwksUrl !== undefined
        ? { type: 'jwks', url: it.jwksUrl, maxAgeMs: it.jwksMaxAge, cooldownMs: it.jwksCooldown }
        : it.publicKey !== undefined
          ? { type: 'public', pem: it.publicKey }
          : { type: 'secret', secret: it.secret! },
    algorithms: it.algorithms === undefined || it.algorithms.length === 0 ? fitting : it.algorithms,
    issuer: it.issuer,
    audience: it.audience,
    clockSkewMs: it.clockSkew,
    requiredClaims: it.requiredClaims,
    claims: it.claims,
    refresh: refreshOf(refresh),
  }
}

function introspection({ introspection: it, refresh }: Given, problems: string[]): IntrospectionConfig | undefined {
  const preset = it.preset === 'none' ? undefined : presets[it.preset]
  const user = it.fields.user ?? preset?.fields.user
  const headers = it.headers ?? preset?.headers ?? ['authorization']
  const cookies = it.cookies ?? []
  if (it.url === undefined)
    problems.push(
      'identity.introspection.url: is required in mode "introspection"; allowed: an http:// or https:// address',
    )
  if (user === undefined)
    problems.push(
      'identity.introspection.fields.user: is required without a preset; allowed: a path such as "user.name"',
    )
  if (headers.length === 0 && cookies.length === 0)
    problems.push('identity.introspection.headers: without a header or a cookie to forward, nobody can sign in')
  if (it.url === undefined || user === undefined || (headers.length === 0 && cookies.length === 0)) return undefined
  return {
    mode: 'introspection',
    url: it.url,
    method: it.method,
    headers: headers.map((name) => name.toLowerCase()),
    cookies,
    success: it.success ?? preset?.success,
    refused: it.refused ?? preset?.refused ?? [],
    timeoutMs: it.timeout,
    cacheMs: it.cacheTime,
    cacheSize: it.cacheSize,
    fields: {
      user,
      tenant: it.fields.tenant ?? preset?.fields.tenant,
      department: it.fields.department ?? preset?.fields.department,
      roles: it.fields.roles ?? preset?.fields.roles ?? 'roles',
      permissions: it.fields.permissions ?? preset?.fields.permissions ?? 'permissions',
      dataScope: it.fields.dataScope ?? preset?.fields.dataScope,
    },
    everything: preset?.everything,
    // A field other than the preset's has data scopes in Oxbow's own form.
    scopeOfRole: it.fields.dataScope === undefined ? preset?.scopeOfRole : undefined,
    refresh: refreshOf(refresh),
  }
}

const refreshOf = ({ url, authorization, timeout }: Given['refresh']): RefreshConfig => ({
  url,
  authorization,
  timeoutMs: timeout,
})

// The settings of identity: how callers authenticate, and where the fields of a principal are found.
import { z } from 'zod'
import { type About, choice, duration, integer, list, path, secret, textSetting, url } from './kinds.ts'

export const ALGORITHMS = {
  symmetric: ['HS256', 'HS384', 'HS512'],
  asymmetric: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
} as const

const CONDITION = /^[^=\s]+=.*$/
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Without the headers that belong to the caller's connection. */
const HEADER_NAME =
  /^(?!(?:host|connection|content-length|content-type|transfer-encoding|upgrade|te|expect)$)[!#$%&'*+.^_`|~0-9A-Za-z-]+$/i

const condition = (description: string) =>
  z
    .string()
    .regex(CONDITION)
    .meta({ kind: 'text', description, allowed: 'path=value, for example "code=200"' } satisfies About)

const keys = z.array(z.unknown()).meta({
  kind: 'tables',
  description: 'API keys by their hashes, as "oxbow keys create" prints them. In the variable: a JSON array.',
  allowed: 'tables with id, hash, user, and optionally tenant, department, roles, permissions, dataScope, expires',
} satisfies About)

/** The paths of a principal's fields in a document. */
const fields = (where: string) => ({
  user: path(`The user in ${where}.`),
  tenant: path(`The tenant in ${where}. Default: all users belong to the tenant "default".`).optional(),
  department: path(`The department in ${where}.`).optional(),
  roles: path(`The roles in ${where}: a list, or a string separated by spaces or commas.`).optional(),
  permissions: path(`The permission ids in ${where}, in the same form.`).optional(),
  dataScope: path(
    `The data scopes in ${where}: names (all, own, department, department_and_below) in the same form, or a list of ` +
      'tables with type and details. Default: the user’s own rows.',
  ).optional(),
})

export const identitySettings = z.strictObject({
  mode: choice(
    ['none', 'api-keys', 'jwt', 'introspection'],
    'How callers authenticate. "none": callers are not authenticated, on loopback only.',
  ),
  keys: keys.optional(),
  keysFile: textSetting('A TOML file with further [[keys]]; reloaded when it changes.', 'a path').optional(),
  jwt: z.strictObject({
    jwksUrl: url('The address of the issuer’s public keys (JWKS).').optional(),
    publicKey: textSetting(
      'A public key or certificate, instead of jwksUrl.',
      'a PEM string, or the path of a PEM file',
    ).optional(),
    secret: secret('A shared secret, instead of jwksUrl.', 'at least 32 bytes').optional(),
    algorithms: list(
      new RegExp(`^(?:${[...ALGORITHMS.symmetric, ...ALGORITHMS.asymmetric].join('|')})$`),
      'Accepted algorithms. Default: all that suit the key.',
      `${ALGORITHMS.symmetric.join(', ')} for a secret; otherwise ${ALGORITHMS.asymmetric.join(', ')}`,
    ).optional(),
    issuer: textSetting('The issuer (iss) that tokens must name. Required with jwksUrl.').optional(),
    audience: textSetting('The audience (aud) that tokens must name. Required with jwksUrl.').optional(),
    clockSkew: duration('0ms', '10m', 'The allowed difference between clocks.'),
    requiredClaims: list(/^[^=\s]+(?:=.*)?$/, 'Claims that tokens must have.', 'paths, or path=value'),
    jwksMaxAge: duration('1s', '24h', 'How long fetched keys are cached.'),
    jwksCooldown: duration('0ms', '1h', 'The minimum time between two fetches that unknown key ids cause.'),
    claims: z.strictObject(fields('a token')),
  }),
  introspection: z.strictObject({
    preset: choice(
      ['none', 'ruoyi', 'ruoyi-vue-plus'],
      'Fills in the fields below for a known host system, where they are not set.',
    ),
    url: url('The endpoint of the host system that returns the user of a session as JSON.').optional(),
    method: choice(['GET', 'POST'], 'The HTTP method of the request.'),
    headers: list(
      HEADER_NAME,
      'Headers of the caller that are forwarded. Default: authorization.',
      'header names',
    ).optional(),
    cookies: list(NAME, 'Cookies of the caller that are forwarded. Default: none.', 'cookie names').optional(),
    success: condition('Conditions that mark the caller as signed in. Default: any 2xx status.').optional(),
    refused: list(
      CONDITION,
      'Conditions of a 2xx answer that mark the caller as not signed in. When set, an answer that meets neither condition counts as a failure of the host.',
      'path=value',
    ).optional(),
    timeout: duration('10ms', '1m', 'The time limit of a request to the host.'),
    cacheTime: duration('0ms', '1h', 'How long an answer is cached.'),
    cacheSize: integer(0, 1_000_000, 'The maximum number of cached answers.'),
    fields: z.strictObject({ ...fields('the answer'), user: path('The user in the answer.').optional() }),
  }),
  refresh: z.strictObject({
    url: url(
      'The endpoint that returns a user’s current rights when an approval is used. {user} and {tenant} are replaced. The answer has the form ' +
        'of the mode’s fields; 401, 403, 404 and 410 mean that the user may no longer act.',
    ).optional(),
    authorization: secret('The Authorization header of that request.', 'a header value such as "Bearer …"').optional(),
    timeout: duration('10ms', '1m', 'The time limit of that request.'),
  }),
})

export const identityDefaults: Readonly<Record<string, unknown>> = {
  'identity.mode': 'none',
  'identity.jwt.clockSkew': '30s',
  'identity.jwt.requiredClaims': [],
  'identity.jwt.jwksMaxAge': '10m',
  'identity.jwt.jwksCooldown': '30s',
  'identity.jwt.claims.user': 'sub',
  'identity.jwt.claims.roles': 'roles',
  'identity.jwt.claims.permissions': 'permissions',
  'identity.introspection.preset': 'none',
  'identity.introspection.method': 'GET',
  'identity.introspection.timeout': '3s',
  'identity.introspection.cacheTime': '30s',
  'identity.introspection.cacheSize': 10_000,
  'identity.refresh.timeout': '3s',
}

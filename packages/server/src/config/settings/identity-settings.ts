// The settings of identity: how callers prove who they are, and where a principal's parts are found.
import { z } from 'zod'
import { type About, choice, duration, integer, list, path, secret, textSetting, url } from './kinds.ts'

export const ALGORITHMS = {
  symmetric: ['HS256', 'HS384', 'HS512'],
  asymmetric: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
} as const

const CONDITION = /^[^=\s]+=.*$/
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Not those that belong to the connection of the caller. */
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

/** Where a principal's parts stand. */
const fields = (where: string) => ({
  user: path(`Where ${where} has the user.`),
  tenant: path(`Where ${where} has the tenant. Default: everybody is of the tenant "default".`).optional(),
  department: path(`Where ${where} has the department.`).optional(),
  roles: path(`Where ${where} has the roles: a list, or a text with spaces or commas.`).optional(),
  permissions: path(`Where ${where} has the permission ids, in the same form.`).optional(),
  dataScope: path(
    `Where ${where} has the data scopes: names (all, own, department, department_and_below) in the same form, or a list of ` +
      'tables with type and details. Default: own rows.',
  ).optional(),
})

export const identitySettings = z.strictObject({
  mode: choice(
    ['none', 'api-keys', 'jwt', 'introspection'],
    'How callers prove who they are. "none": everybody is who they say, on loopback only.',
  ),
  keys: keys.optional(),
  keysFile: textSetting('A TOML file with further [[keys]]; read again when it changes.', 'a path').optional(),
  jwt: z.strictObject({
    jwksUrl: url('Where the issuer publishes its keys (JWKS).').optional(),
    publicKey: textSetting(
      'Instead of jwksUrl: a public key or certificate.',
      'a PEM text, or the path of a file with one',
    ).optional(),
    secret: secret('Instead of jwksUrl: a shared secret.', 'at least 32 bytes').optional(),
    algorithms: list(
      new RegExp(`^(?:${[...ALGORITHMS.symmetric, ...ALGORITHMS.asymmetric].join('|')})$`),
      'Algorithms that are accepted. Default: all that fit the key.',
      `${ALGORITHMS.symmetric.join(', ')} for a secret, else ${ALGORITHMS.asymmetric.join(', ')}`,
    ).optional(),
    issuer: textSetting('The issuer (iss) that tokens must name. Required with jwksUrl.').optional(),
    audience: textSetting('The audience (aud) that tokens must name. Required with jwksUrl.').optional(),
    clockSkew: duration('0ms', '10m', 'How far clocks may differ.'),
    requiredClaims: list(/^[^=\s]+(?:=.*)?$/, 'Claims that tokens must have.', 'paths, or path=value'),
    jwksMaxAge: duration('1s', '24h', 'How long fetched keys are used without asking again.'),
    jwksCooldown: duration('0ms', '1h', 'The shortest time between two fetches because of an unknown key id.'),
    claims: z.strictObject(fields('a token')),
  }),
  introspection: z.strictObject({
    preset: choice(['none', 'ruoyi', 'ruoyi-vue-plus'], 'Fills what is not given below for a known host system.'),
    url: url('What to ask about a session: the host answers with JSON about the user.').optional(),
    method: choice(['GET', 'POST'], 'How to ask.'),
    headers: list(
      HEADER_NAME,
      'Headers of the caller that are passed on. Default: authorization.',
      'header names',
    ).optional(),
    cookies: list(
      NAME,
      'Cookies of the caller that are passed on; no others are. Default: none.',
      'cookie names',
    ).optional(),
    success: condition(
      'What the answer must say for the caller to be signed in. Default: a status of 2xx is enough.',
    ).optional(),
    refused: list(
      CONDITION,
      'What an answer of status 2xx says when the caller is not signed in. With it, an answer that says neither is a fault of the host.',
      'path=value',
    ).optional(),
    timeout: duration('10ms', '1m', 'How long the host may take.'),
    cacheTime: duration('0ms', '1h', 'How long an answer is used without asking again.'),
    cacheSize: integer(0, 1_000_000, 'The most answers that are kept.'),
    fields: z.strictObject({ ...fields('the answer'), user: path('Where the answer has the user.').optional() }),
  }),
  refresh: z.strictObject({
    url: url(
      'Asked when an approval is used: what may this person do now? {user} and {tenant} are replaced. It answers in the form ' +
        'of the mode’s fields; 401, 403, 404 and 410 mean that they may not act any more.',
    ).optional(),
    authorization: secret(
      'The Authorization header that goes with it.',
      'a header value such as "Bearer …"',
    ).optional(),
    timeout: duration('10ms', '1m', 'How long it may take.'),
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

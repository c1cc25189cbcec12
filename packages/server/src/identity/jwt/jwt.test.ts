import { createHmac, generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportSPKI, importJWK, SignJWT } from 'jose'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { JwtConfig } from '../../config/identity-config.ts'
import { loadConfig } from '../../index.ts'
import { json, rigs } from '../../test.fixture.ts'
import { createIdentity } from '../identity.ts'
import { hostSystem } from '../introspection/host-system.fixture.ts'
import { AUDIENCE, type Issuer, issuer, seconds } from './issuer.fixture.ts'

const start = rigs()

async function anIssuer(alg?: string): Promise<Issuer> {
  const made = await issuer(alg)
  onTestFinished(() => made.close())
  return made
}

async function identityOf(jwt: Record<string, unknown>, refresh: Record<string, unknown> = {}) {
  const { identity } = await loadConfig({
    environment: { OXBOW_PROFILE: 'test' },
    overrides: { identity: { mode: 'jwt', jwt, refresh } },
  })
  const problems: string[] = []
  const made = await createIdentity(identity, { onProblem: ({ message }) => problems.push(message) })
  const ask = (token: string) => made.authenticate({ rawHeaders: ['Authorization', `Bearer ${token}`] })
  const codeOf = async (token: string): Promise<string> => {
    const result = await ask(token)
    return result.accepted ? `accepted ${result.principal.user}` : result.code
  }
  return { ...made, ask, codeOf, problems, config: identity as JwtConfig }
}

const withJwks = (made: Issuer, more: Record<string, unknown> = {}) =>
  identityOf({ jwksUrl: made.jwksUrl, issuer: made.url, audience: AUDIENCE, ...more })

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('tokens', () => {
  test('the claims give the principal, through dotted paths and names with dots', async () => {
    const made = await anIssuer()
    const { ask } = await withJwks(made, {
      claims: {
        user: 'preferred.name',
        tenant: 'org',
        department: 'org_unit.id',
        roles: 'https://example.com/roles',
        permissions: 'scope',
      },
    })
    const token = await made.sign({
      sub: '1',
      preferred: { name: 'ann' },
      org: 'acme',
      org_unit: { id: 103 },
      'https://example.com/roles': ['clerk'],
      scope: 'biz:order:query biz:order:list',
    })
    expect(await ask(token)).toEqual({
      accepted: true,
      principal: {
        tenant: 'acme',
        user: 'ann',
        department: '103',
        roles: ['clerk'],
        permissions: ['biz:order:query', 'biz:order:list'],
      },
    })
    expect(await ask(await made.sign({ preferred: { name: 'ann' } }))).toMatchObject({ code: 'credentials_invalid' })
  })

  test('a user whose name is not a valid id gets an id that nobody can choose', async () => {
    const made = await anIssuer()
    const { ask } = await withJwks(made)
    const of = async (sub: string) => {
      const result = await ask(await made.sign({ sub }))
      return result.accepted ? result.principal.user : result.code
    }
    const mail = await of('ann@example.com')
    expect(mail).toMatch(/^id-[0-9a-f]{40}$/)
    expect(await of('ann@example.com')).toBe(mail)
    expect(await of(mail)).not.toBe(mail)
    expect(await of('..')).toMatch(/^id-/)
  })

  test.each([
    ['wrong audience', { aud: 'another-service' }, 'credentials_invalid'],
    ['wrong issuer', { iss: 'https://evil.example' }, 'credentials_invalid'],
    ['no user', { sub: undefined }, 'credentials_invalid'],
    ['a user that is not a string', { sub: { name: 'ann' } as never }, 'credentials_invalid'],
    ['no expiry', { exp: undefined }, 'credentials_invalid'],
    ['expired beyond the skew', { exp: seconds(-60) }, 'credentials_expired'],
    ['expired within the skew', { exp: seconds(-10) }, 'accepted ann'],
    ['not valid yet', { nbf: seconds(60) }, 'credentials_invalid'],
    ['not valid yet, within the skew', { nbf: seconds(10) }, 'accepted ann'],
    ['one of several audiences', { aud: ['x', AUDIENCE] }, 'accepted ann'],
  ])('%s: %j is %s', async (_name, claims, code) => {
    const made = await anIssuer()
    const { codeOf } = await withJwks(made, { clockSkew: '30s' })
    expect(await codeOf(await made.sign({ sub: 'ann', ...claims } as never))).toBe(code)
  })

  test('required claims must be present with the configured value', async () => {
    const made = await anIssuer()
    const { codeOf } = await withJwks(made, { requiredClaims: ['email_verified=true', 'realm.name'] })
    expect(await codeOf(await made.sign({ sub: 'ann' }))).toBe('credentials_invalid')
    expect(await codeOf(await made.sign({ sub: 'ann', email_verified: false, realm: { name: 'x' } }))).toBe(
      'credentials_invalid',
    )
    expect(await codeOf(await made.sign({ sub: 'ann', email_verified: true, realm: { name: 'x' } }))).toBe(
      'accepted ann',
    )
  })

  test('a token without a signature, or with a malformed one, is refused', async () => {
    const made = await anIssuer()
    const { codeOf } = await withJwks(made)
    const claims = part({ sub: 'ann', iss: made.url, aud: AUDIENCE, exp: seconds(60) })
    const good = await made.sign({ sub: 'ann' })
    const [head, , signature] = good.split('.')
    for (const token of [
      `${part({ alg: 'none' })}.${claims}.`,
      `${part({ alg: 'None' })}.${claims}.${signature}`,
      `${part({ alg: 'ES256', kid: 'key-1', crit: ['b64'], b64: false })}.${claims}.${signature}`,
      `${head}.${claims}.${signature}`,
      `${head}.${claims}.`,
      'x',
      '..',
      good.slice(0, -4),
      `${good}.x`,
      `${head}.${'A'.repeat(20_000)}.${signature}`,
    ])
      expect(await codeOf(token)).toBe('credentials_invalid')
    expect(await codeOf(good)).toBe('accepted ann')
  })

  test('a key that is embedded in the token, or named by it, is not used', async () => {
    const made = await anIssuer()
    const evil = await anIssuer()
    const { codeOf } = await withJwks(made)
    const signed = await evil.sign({ sub: 'ann', iss: made.url })
    const [, claims, signature] = signed.split('.')
    const header = part({ alg: 'ES256', jwk: evil.publicJwk(), jku: evil.jwksUrl, kid: 'key-1' })
    expect(await codeOf(`${header}.${claims}.${signature}`)).toBe('credentials_invalid')
    expect(evil.fetched).toBe(0)
  })
})

describe('algorithms', () => {
  test('a public key is never used as the secret of an HS algorithm', async () => {
    const made = await anIssuer('RS256')
    const pem = await exportSPKI((await importJWK(made.publicJwk(), 'RS256')) as never)
    const forge = (secret: string) => {
      const signed = `${part({ alg: 'HS256', kid: 'key-1' })}.${part({ sub: 'ann', iss: made.url, aud: AUDIENCE, exp: seconds(60) })}`
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    }
    const stat = await identityOf({ publicKey: pem, issuer: made.url, audience: AUDIENCE })
    const remote = await withJwks(made)
    for (const { codeOf } of [stat, remote])
      for (const secret of [pem, pem.trim(), JSON.stringify(made.publicJwk())])
        expect(await codeOf(forge(secret))).toBe('credentials_invalid')
    expect(await stat.codeOf(await made.sign({ sub: 'ann' }))).toBe('accepted ann')
  })

  test('algorithms that do not suit the key are a configuration error', async () => {
    const secret = 'x'.repeat(32)
    await expect(identityOf({ secret, algorithms: ['RS256'] })).rejects.toThrow(/RS256 cannot be used with a secret/)
    await expect(
      identityOf({ jwksUrl: 'https://x.example', issuer: 'i', audience: 'a', algorithms: ['HS256'] }),
    ).rejects.toThrow(/HS256 cannot be used with public keys/)
    await expect(identityOf({ secret, algorithms: ['none'] })).rejects.toThrow(/identity\.jwt\.algorithms/)
  })

  test('a shared secret works, with HS only', async () => {
    const secret = 'a-secret-of-at-least-thirty-two-bytes'
    const { codeOf, config } = await identityOf({ secret })
    const key = new TextEncoder().encode(secret)
    const sign = (alg: string) => new SignJWT({ sub: 'ann', exp: seconds(60) }).setProtectedHeader({ alg }).sign(key)
    expect(await codeOf(await sign('HS256'))).toBe('accepted ann')
    expect(config.algorithms).toEqual(['HS256', 'HS384', 'HS512'])
    const narrow = await identityOf({ secret, algorithms: ['HS512'] })
    expect(await narrow.codeOf(await sign('HS256'))).toBe('credentials_invalid')
    const other = await new SignJWT({ sub: 'ann', exp: seconds(60) })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(new TextEncoder().encode('another-secret-of-thirty-two-bytes-xx'))
    expect(await codeOf(other)).toBe('credentials_invalid')
  })

  test('a public key may be a file; a private key is refused', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'oxbow-keys-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const path = join(folder, 'public.pem')
    await writeFile(path, publicKey.export({ type: 'spki', format: 'pem' }))
    const { codeOf } = await identityOf({ publicKey: path })
    const token = await new SignJWT({ sub: 'ann', exp: seconds(60) })
      .setProtectedHeader({ alg: 'EdDSA' })
      .sign(privateKey)
    expect(await codeOf(token)).toBe('accepted ann')
    const secret = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    await expect(identityOf({ publicKey: secret })).rejects.toThrow(/private key/)
    await expect(identityOf({ publicKey: join(folder, 'none.pem') })).rejects.toThrow(/ENOENT/)
  })
})

describe('published keys', () => {
  test('rotation needs no restart', async () => {
    const made = await anIssuer()
    const rig = await start({
      overrides: {
        'identity.mode': 'jwt',
        'identity.jwt': { jwksUrl: made.jwksUrl, issuer: made.url, audience: AUDIENCE, jwksCooldown: '0ms' },
      },
    })
    const status = async (token: string) =>
      (await rig.get('/api/sessions', { headers: { authorization: `Bearer ${token}` } })).status
    const before = await made.sign({ sub: 'ann' })
    expect(await status(before)).toBe(200)
    await made.rotate()
    expect(await status(before)).toBe(200)
    expect(await status(await made.sign({ sub: 'ann' }))).toBe(200)
    expect(await status(before)).toBe(401)
  })

  test('unknown key ids fetch at most once per cool-down', async () => {
    const made = await anIssuer()
    const { codeOf } = await withJwks(made, { jwksCooldown: '1h' })
    expect(await codeOf(await made.sign({ sub: 'ann' }))).toBe('accepted ann')
    for (let i = 0; i < 20; i++)
      expect(await codeOf(await made.sign({ sub: 'ann' }, { kid: `unknown-${i}` }))).toBe('credentials_invalid')
    expect(made.fetched).toBe(1)
  })

  test('while the issuer is down, known keys still work, and new ones are a 503, fetched less and less often', async () => {
    const made = await anIssuer()
    const { codeOf, problems } = await withJwks(made, { jwksCooldown: '0ms' })
    const known = await made.sign({ sub: 'ann' })
    expect(await codeOf(known)).toBe('accepted ann')
    made.answer({ status: 503, body: 'down' })
    await made.rotate()
    const fresh = await made.sign({ sub: 'ann' })
    for (let i = 0; i < 10; i++) expect(await codeOf(fresh)).toBe('identity_unavailable')
    expect(await codeOf(known)).toBe('accepted ann')
    expect(made.fetched).toBeLessThan(6)
    expect(problems[0]).toMatch(/identity\.jwt\.jwksUrl/)
  })

  test.each(['not json', '{"keys": 5}', '[]', ''])('unusable keys such as %j are a 503', async (body) => {
    const made = await anIssuer()
    made.answer({ status: 200, body })
    const { codeOf } = await withJwks(made)
    expect(await codeOf(await made.sign({ sub: 'ann' }))).toBe('identity_unavailable')
  })

  test('an unreachable issuer is a typed 503 with Retry-After, on a stream before it starts', async () => {
    const made = await issuer()
    const token = await made.sign({ sub: 'ann' })
    await made.close()
    const rig = await start({
      overrides: {
        'identity.mode': 'jwt',
        'identity.jwt': { jwksUrl: made.jwksUrl, issuer: made.url, audience: AUDIENCE },
      },
    })
    const answer = await rig.post('/api/chat/stream', {}, { headers: { authorization: `Bearer ${token}` } })
    expect(answer.status).toBe(503)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await json(answer)).error.code).toBe('identity_unavailable')
  })
})

describe('refresh', () => {
  test('uses the latest token of the user until it expires; without one the rights are unknown', async () => {
    const made = await anIssuer()
    const { ask, refresh } = await withJwks(made, { clockSkew: '0ms' })
    const ann = { tenant: 'default', user: 'ann', permissions: ['a:b', 'a:c'] }
    expect(await refresh(ann)).toBeUndefined()
    await ask(await made.sign({ sub: 'ann', permissions: ['a:b'] }))
    expect(await refresh(ann)).toMatchObject({ user: 'ann', permissions: ['a:b'] })
    await ask(await made.sign({ sub: 'ann', permissions: ['*'], roles: ['admin'] }))
    expect(await refresh(ann)).toMatchObject({ permissions: ['a:b', 'a:c'], roles: [], dataScope: [{ type: 'own' }] })
    await ask(await made.sign({ sub: 'bob', exp: seconds(-1) }))
    expect(await refresh({ tenant: 'default', user: 'bob' })).toBeUndefined()
    expect(await refresh({ tenant: 'other', user: 'ann' })).toBeUndefined()
  })

  test('asks the configured endpoint, with the service’s own credentials', async () => {
    const made = await anIssuer()
    const host = await hostSystem()
    onTestFinished(() => host.close())
    host.behave((request, response) => {
      const known = request.url === '/users/acme/ann'
      response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify(known ? { sub: 'ann', org: 'acme', permissions: ['now'] } : {}))
    })
    const { refresh } = await identityOf(
      { jwksUrl: made.jwksUrl, issuer: made.url, audience: AUDIENCE, claims: { tenant: 'org' } },
      { url: host.url.replace('/getInfo', '/users/{tenant}/{user}'), authorization: 'Bearer service-token' },
    )
    expect(await refresh({ tenant: 'acme', user: 'ann', permissions: ['now', 'then'] })).toMatchObject({
      permissions: ['now'],
    })
    expect(host.asked[0]?.headers.authorization).toBe('Bearer service-token')
    expect(await refresh({ tenant: 'acme', user: 'bob' })).toBeUndefined()
    host.behave((_request, response) => response.writeHead(500).end())
    await expect(refresh({ tenant: 'acme', user: 'ann' })).rejects.toMatchObject({ code: 'identity_unavailable' })
  })
})

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Principal } from '@oxbow/core'
import { until } from '@oxbow/testing'
import { parse } from 'smol-toml'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../index.ts'
import { createIdentity } from '../identity.ts'
import { createApiKey } from './api-key.ts'

async function identityOf(toml: string, environment: Record<string, string> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'oxbow-keys-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'keys.toml')
  await writeFile(file, toml)
  const { identity } = await loadConfig({
    environment: { OXBOW_PROFILE: 'test', ...environment },
    overrides: { identity: { mode: 'api-keys', keysFile: file } },
  })
  const problems: string[] = []
  const made = await createIdentity(identity, { onProblem: ({ message }) => problems.push(message) })
  const ask = (...rawHeaders: string[]) => made.authenticate({ rawHeaders })
  const codeOf = async (...rawHeaders: string[]): Promise<string> => {
    const result = await ask(...rawHeaders)
    return result.accepted ? `accepted ${result.principal.user}` : result.code
  }
  return { ...made, ask, codeOf, problems, write: (text: string) => writeFile(file, text) }
}

describe('API keys', () => {
  test('a new key comes with its record, which does not contain the key', async () => {
    const { key, id, toml } = createApiKey({
      user: 'ann',
      tenant: 'acme',
      department: '103',
      roles: ['clerk'],
      permissions: ['biz:order:*'],
      expires: '2999-01-01',
    })
    expect(key).toMatch(/^oxb_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/)
    expect(toml).not.toContain(key.slice(-43))
    const { ask } = await identityOf(toml)
    expect(await ask('Authorization', `Bearer ${key}`)).toEqual({
      accepted: true,
      keyId: id,
      principal: {
        tenant: 'acme',
        user: 'ann',
        department: '103',
        roles: ['clerk'],
        permissions: ['biz:order:*'],
        credential: id,
      },
    })
    expect(createApiKey({ user: 'ann' }).key).not.toBe(createApiKey({ user: 'ann' }).key)
    expect(() => createApiKey({ user: 'a/b' })).toThrow(/user must be/)
    expect(() => createApiKey({ user: 'ann', expires: 'tomorrow' })).toThrow(/expires must be a date/)
    expect(() => createApiKey({ user: 'ann', expires: '2020-01-01' })).toThrow(/expires is in the past: 2020-01-01/)
  })

  test('a request sends a key once, as a bearer token or as X-API-Key', async () => {
    const { key, toml } = createApiKey({ user: 'ann' })
    const { codeOf } = await identityOf(toml)
    expect(await codeOf('authorization', `bearer ${key}`)).toBe('accepted ann')
    expect(await codeOf('X-API-Key', key)).toBe('accepted ann')
    expect(await codeOf('X-API-Key', key, 'Authorization', 'Basic eDp5')).toBe('accepted ann')
    expect(await codeOf('X-API-Key', key, 'Authorization', `Bearer ${key}`)).toBe('credentials_ambiguous')
    expect(await codeOf('X-API-Key', key, 'x-api-key', key)).toBe('credentials_ambiguous')
    expect(await codeOf('Authorization', `Bearer ${key}`, 'Authorization', 'Bearer x')).toBe('credentials_ambiguous')
    expect(await codeOf()).toBe('credentials_missing')
  })

  test('any other text is rejected', async () => {
    const { key, toml } = createApiKey({ user: 'ann' })
    const { codeOf } = await identityOf(toml)
    const last = key.at(-1) === 'A' ? 'B' : 'A'
    for (const wrong of [
      `${key.slice(0, -1)}${last}`,
      key.replace(/^oxb_.{12}/, 'oxb_000000000000'),
      `${key}A`,
      key.slice(0, -1),
      key.toUpperCase(),
      'x'.repeat(100_000),
      '',
      `${key} ${key}`,
    ])
      expect(await codeOf('Authorization', `Bearer ${wrong}`)).toBe('credentials_invalid')
  })

  test('a file without a valid key is reported at startup and on change: all requests are refused', async () => {
    const problem = expect.stringMatching(/No API key is valid.*oxbow keys create --user NAME.*keys\.toml/)
    expect((await identityOf('')).problems).toEqual([problem])
    const { toml } = createApiKey({ user: 'ann' })
    expect((await identityOf(`${toml}expires = 2020-01-01`)).problems).toEqual([problem])
    const { problems, write, codeOf } = await identityOf(toml)
    expect(problems).toEqual([])
    await write('')
    await until(
      async () => {
        await codeOf('X-API-Key', 'oxb_')
        return problems.length > 0
      },
      { deadlineMs: 10_000 },
    )
    expect(problems).toEqual([problem])
  })

  test('an expired key is reported as expired, to its holder only', async () => {
    const { key, toml } = createApiKey({ user: 'ann' })
    const { codeOf, refresh } = await identityOf(`${toml}expires = "2020-01-01T00:00:00Z"`)
    expect(await codeOf('X-API-Key', key)).toBe('credentials_expired')
    expect(await codeOf('X-API-Key', `${key.slice(0, -4)}AAAA`)).toBe('credentials_invalid')
    expect(await refresh({ user: 'ann', tenant: 'default' })).toBeUndefined()
  })

  test('the expiry may be a TOML date', async () => {
    const { key, toml } = createApiKey({ user: 'ann' })
    const { codeOf } = await identityOf(`${toml}expires = 2020-01-01`)
    expect(await codeOf('X-API-Key', key)).toBe('credentials_expired')
  })

  test('keys may be in the configuration, also in an environment variable', async () => {
    const { key, toml } = createApiKey({ user: 'ann' })
    const { codeOf } = await identityOf('', { OXBOW_IDENTITY_KEYS: JSON.stringify(parse(toml).keys) })
    expect(await codeOf('X-API-Key', key)).toBe('accepted ann')
  })

  test('a changed file is reloaded; an invalid file changes nothing', async () => {
    const one = createApiKey({ user: 'ann' })
    const two = createApiKey({ user: 'bob' })
    const { codeOf, write, problems, refresh } = await identityOf(one.toml)
    expect(await refresh({ user: 'ann', tenant: 'default' })).toMatchObject({ user: 'ann' })
    await write('[[keys')
    await until(async () => {
      expect(await codeOf('X-API-Key', one.key)).toBe('accepted ann')
      return problems.length > 0
    })
    expect(problems[0]).toMatch(/not valid TOML.*keys are unchanged/)
    await write(two.toml)
    await until(async () => (await codeOf('X-API-Key', two.key)) === 'accepted bob')
    expect(await codeOf('X-API-Key', one.key)).toBe('credentials_invalid')
    expect(await refresh({ user: 'ann', tenant: 'default' })).toBeUndefined()
  })

  test('a turn has the rights of the key that started it, and none once that key is revoked, whatever other keys the user has', async () => {
    const narrow = createApiKey({ user: 'ann', permissions: ['a:one', 'a:two'], department: '103' })
    const broad = createApiKey({
      user: 'ann',
      permissions: ['*'],
      roles: ['admin'],
      department: '103',
      dataScope: [{ type: 'all' }],
    })
    const { ask, codeOf, refresh, write } = await identityOf(narrow.toml + broad.toml)
    const principalOf = async (key: string): Promise<Principal> => {
      const found = await ask('X-API-Key', key)
      if (!found.accepted) throw new Error(found.code)
      return found.principal
    }
    const began = await principalOf(narrow.key)
    expect(await refresh(began)).toEqual({ ...began, dataScope: [{ type: 'own' }] })
    await write(narrow.toml.replace('["a:one","a:two"]', '["a:two","b:one"]').replace('"103"', '"104"') + broad.toml)
    await until(async () => (await principalOf(narrow.key)).department === '104')
    expect(await refresh(began)).toMatchObject({ permissions: ['a:two'], roles: [], dataScope: [{ type: 'own' }] })
    expect(await refresh(began)).not.toHaveProperty('department')
    await write(broad.toml)
    await until(async () => (await codeOf('X-API-Key', narrow.key)) === 'credentials_invalid')
    expect(await refresh(began)).toBeUndefined()
    expect(await refresh(await principalOf(broad.key))).toMatchObject({ permissions: ['*'] })
  })

  test('when no key is recorded, the turn keeps only rights that one of the user’s keys has', async () => {
    const keys = [
      createApiKey({ user: 'ann', permissions: ['a:*'] }),
      createApiKey({ user: 'ann', permissions: ['b:one'] }),
    ]
    const { refresh } = await identityOf(keys.map((it) => it.toml).join('\n'))
    const now = await refresh({ user: 'ann', tenant: 'default', permissions: ['a:one', 'c:one'] })
    expect(now?.permissions).toEqual(['a:one'])
  })

  test.each([
    ['[[keys]]\nuser = "ann"', /keys\[0\]\.id.*keys\[0\]\.hash/],
    [createApiKey({ user: 'ann' }).toml.replace('sha256:', 'md5:'), /keys\[0\]\.hash: must be sha256:/],
    [createApiKey({ user: 'ann' }).toml.replace('"ann"', '"a/b"'), /keys\[0\]\.user: must have 1 to 64/],
    [`${createApiKey({ user: 'ann' }).toml}expires = "soon"`, /keys\[0\]\.expires: must be a date/],
    [`${createApiKey({ user: 'ann' }).toml}rolls = []`, /keys\[0\]: .*rolls/],
    [createApiKey({ user: 'ann' }).toml.repeat(2), /two API keys have the id/],
    ['other = 1', /\[\[keys\]\] tables only/],
  ])('%j is a configuration error', async (toml, message) => {
    await expect(identityOf(toml)).rejects.toThrow(message)
  })

  test('a missing file fails the start', async () => {
    await expect(createIdentity({ mode: 'api-keys', keys: [], keysFile: '/nowhere/keys.toml' })).rejects.toThrow(
      /identity\.keysFile: "\/nowhere\/keys\.toml" cannot be read \(ENOENT\)/,
    )
  })
})

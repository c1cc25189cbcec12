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
  test('a key is made with the record that belongs to it, and the record does not have the key', async () => {
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

  test('it comes as a bearer token or as X-API-Key, once', async () => {
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

  test('any other text is no key', async () => {
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

  test('a file without a key that is valid is told at the start and when it changes: everybody is refused', async () => {
    const told = expect.stringMatching(/no API key that is valid: .*oxbow keys create --user NAME.*keys\.toml/)
    expect((await identityOf('')).problems).toEqual([told])
    const { toml } = createApiKey({ user: 'ann' })
    expect((await identityOf(`${toml}expires = 2020-01-01`)).problems).toEqual([told])
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
    expect(problems).toEqual([told])
  })

  test('one whose time is over is told so, and its holder only', async () => {
    const { key, toml } = createApiKey({ user: 'ann' })
    const { codeOf, refresh } = await identityOf(`${toml}expires = "2020-01-01T00:00:00Z"`)
    expect(await codeOf('X-API-Key', key)).toBe('credentials_expired')
    expect(await codeOf('X-API-Key', `${key.slice(0, -4)}AAAA`)).toBe('credentials_invalid')
    expect(await refresh({ user: 'ann', tenant: 'default' })).toBeUndefined()
  })

  test('expiry may be a date of TOML', async () => {
    const { key, toml } = createApiKey({ user: 'ann' })
    const { codeOf } = await identityOf(`${toml}expires = 2020-01-01`)
    expect(await codeOf('X-API-Key', key)).toBe('credentials_expired')
  })

  test('keys may stand in the configuration, also in a variable', async () => {
    const { key, toml } = createApiKey({ user: 'ann' })
    const { codeOf } = await identityOf('', { OXBOW_IDENTITY_KEYS: JSON.stringify(parse(toml).keys) })
    expect(await codeOf('X-API-Key', key)).toBe('accepted ann')
  })

  test('a file that changes is read again; one that is broken changes nothing', async () => {
    const one = createApiKey({ user: 'ann' })
    const two = createApiKey({ user: 'bob' })
    const { codeOf, write, problems, refresh } = await identityOf(one.toml)
    expect(await refresh({ user: 'ann', tenant: 'default' })).toMatchObject({ user: 'ann' })
    await write('[[keys')
    await until(async () => {
      expect(await codeOf('X-API-Key', one.key)).toBe('accepted ann')
      return problems.length > 0
    })
    expect(problems[0]).toMatch(/not valid TOML.*stay as they were/)
    await write(two.toml)
    await until(async () => (await codeOf('X-API-Key', two.key)) === 'accepted bob')
    expect(await codeOf('X-API-Key', one.key)).toBe('credentials_invalid')
    expect(await refresh({ user: 'ann', tenant: 'default' })).toBeUndefined()
  })

  test('what began with a key has the rights of that key, and none when it is gone, whatever others the person has', async () => {
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

  test('where no key is recorded, it may have been any of theirs, and nothing is added', async () => {
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
    [createApiKey({ user: 'ann' }).toml.replace('sha256:', 'md5:'), /keys\[0\]\.hash: write it as sha256:/],
    [createApiKey({ user: 'ann' }).toml.replace('"ann"', '"a/b"'), /keys\[0\]\.user: use 1 to 64/],
    [`${createApiKey({ user: 'ann' }).toml}expires = "soon"`, /keys\[0\]\.expires: write it as a date/],
    [`${createApiKey({ user: 'ann' }).toml}rolls = []`, /keys\[0\]: .*rolls/],
    [createApiKey({ user: 'ann' }).toml.repeat(2), /two API keys have the id/],
    ['other = 1', /\[\[keys\]\] tables and nothing else/],
  ])('%j is a mistake of the configuration', async (toml, message) => {
    await expect(identityOf(toml)).rejects.toThrow(message)
  })

  test('a file that is not there fails the start', async () => {
    await expect(createIdentity({ mode: 'api-keys', keys: [], keysFile: '/nowhere/keys.toml' })).rejects.toThrow(
      /identity\.keysFile: "\/nowhere\/keys\.toml" cannot be read \(ENOENT\)/,
    )
  })
})

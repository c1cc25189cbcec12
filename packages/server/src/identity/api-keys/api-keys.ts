// API keys from the configuration, and from a file that may change while the service runs.
import { readFile, stat } from 'node:fs/promises'
import { OxbowError, type Principal } from '@oxbow/core'
import { isSamePerson } from '@oxbow/core/internal'
import type { ApiKeysConfig } from '../../config/identity-config.ts'
import { type Authentication, type Identity, type OnProblem, refused } from '../contract.ts'
import { invalid, tokenOf } from '../credentials.ts'
import { narrowed } from '../narrowing.ts'
import { type ApiKey, findApiKey, parseApiKeys } from './api-key.ts'

/** A key that is removed from the file is refused after this time at the latest. */
const RECHECK_MS = 1_000

/** @throws OxbowError `config_invalid` */
export async function apiKeyIdentity({ keys, keysFile }: ApiKeysConfig, onProblem: OnProblem): Promise<Identity> {
  let all = byId(keys, [])
  let seen: string | undefined
  let checkedAt = 0
  let reloading: Promise<void> | undefined

  if (keysFile !== undefined) {
    all = byId(keys, await recordsOf(keysFile))
    seen = await stampOf(keysFile)
    checkedAt = performance.now()
  }
  reportNoValidKey()

  /** Without a valid key every request is refused, and only the log can say why. */
  function reportNoValidKey(): void {
    if ([...all.values()].every(isExpired))
      onProblem({
        message:
          'No API key is valid, so all requests are refused. Create one with "oxbow keys create --user NAME" and add ' +
          `its record to ${keysFile ?? 'the file that identity.keysFile names'}.`,
      })
  }

  /** An invalid file leaves the keys unchanged: a typing error must not lock out everyone. */
  async function reload(file: string): Promise<void> {
    checkedAt = performance.now()
    const stamp = await stampOf(file)
    if (stamp === seen) return
    seen = stamp
    try {
      all = byId(keys, await recordsOf(file))
      reportNoValidKey()
    } catch (cause) {
      onProblem({ message: `${(cause as Error).message} The keys are unchanged.`, cause })
    }
  }

  async function current(): Promise<ReadonlyMap<string, ApiKey>> {
    if (keysFile !== undefined && performance.now() - checkedAt > RECHECK_MS) {
      reloading ??= reload(keysFile).finally(() => {
        reloading = undefined
      })
      await reloading
    }
    return all
  }

  return {
    mode: 'api-keys',
    ambient: false,
    schemes: {
      bearer: { type: 'http', scheme: 'bearer' },
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
    },
    async authenticate(credentials): Promise<Authentication> {
      const token = tokenOf(credentials, 'x-api-key')
      if (typeof token !== 'string') return token
      const found = findApiKey(await current(), token)
      if (found === undefined) return invalid()
      if (isExpired(found)) return refused('credentials_expired', 'The API key has expired. Ask for a new one.')
      return { accepted: true, principal: { ...found.principal, credential: found.id }, keyId: found.id }
    },
    async refresh(principal) {
      const { credential } = principal
      const theirs = [...(await current()).values()].filter(
        (it) =>
          !isExpired(it) && isSamePerson(it.principal, principal) && (credential === undefined || it.id === credential),
      )
      return theirs.length === 0 ? undefined : narrowed(principal, unionOfRights(theirs, principal))
    },
  }
}

const isExpired = ({ expiresAt }: ApiKey): boolean => expiresAt !== undefined && expiresAt <= Date.now()

/** All rights of the user's keys: when no key is recorded for a turn, any of them may have started it. */
function unionOfRights(keys: readonly ApiKey[], { user, department }: Principal): Principal {
  const all = keys.map((it) => it.principal)
  const there = all.some((it) => it.department === department)
  return {
    user,
    ...(department !== undefined && there && { department }),
    roles: all.flatMap((it) => it.roles ?? []),
    permissions: all.flatMap((it) => it.permissions ?? []),
    dataScope: all.flatMap((it) => it.dataScope ?? [{ type: 'own' as const }]),
  }
}

/** @throws OxbowError `config_invalid` */
function byId(configured: readonly unknown[], fromFile: readonly unknown[]): ReadonlyMap<string, ApiKey> {
  const problems: string[] = []
  const keys = [
    ...parseApiKeys(configured, 'identity.keys', problems),
    ...parseApiKeys(fromFile, 'identity.keysFile: keys', problems),
  ]
  const found = new Map<string, ApiKey>()
  for (const it of keys) {
    if (found.has(it.id)) problems.push(`two API keys have the id ${it.id}`)
    found.set(it.id, it)
  }
  if (problems.length > 0)
    throw new OxbowError('config_invalid', `API keys are not valid: ${problems.join('; ')}.`, { details: { problems } })
  return found
}

async function recordsOf(file: string): Promise<unknown[]> {
  const invalid = (why: string) =>
    new OxbowError('config_invalid', `identity.keysFile: ${JSON.stringify(file)} ${why}.`)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw invalid(`cannot be read (${error.code})`)
  })
  const { parse } = await import('smol-toml')
  let document: Record<string, unknown>
  try {
    document = parse(text)
  } catch (error) {
    throw invalid(`is not valid TOML: ${(error as Error).message.split('\n')[0]}`)
  }
  const { keys = [], ...rest } = document
  if (!Array.isArray(keys) || Object.keys(rest).length > 0) throw invalid('must contain [[keys]] tables only')
  return keys
}

const stampOf = (file: string): Promise<string> =>
  stat(file).then(
    ({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`,
    () => 'gone',
  )

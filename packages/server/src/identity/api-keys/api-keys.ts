// API keys from the configuration and from a file that may change while the service runs.
import { readFile, stat } from 'node:fs/promises'
import { OxbowError, type Principal } from '@oxbow/core'
import { isSamePerson } from '@oxbow/core/internal'
import type { ApiKeysConfig } from '../../config/identity-config.ts'
import { type Authentication, type Identity, type OnProblem, refused } from '../contract.ts'
import { invalid, tokenOf } from '../credentials.ts'
import { narrowed } from '../narrowing.ts'
import { type ApiKey, findApiKey, parseApiKeys } from './api-key.ts'

/** A key that is taken out of the file is refused after this time at the latest. */
const LOOK_AGAIN_MS = 1_000

/** @throws OxbowError `config_invalid` */
export async function apiKeyIdentity({ keys, keysFile }: ApiKeysConfig, onProblem: OnProblem): Promise<Identity> {
  let all = byId(keys, [])
  let seen: string | undefined
  let lookedAt = 0
  let looking: Promise<void> | undefined

  if (keysFile !== undefined) {
    all = byId(keys, await recordsOf(keysFile))
    seen = await stampOf(keysFile)
    lookedAt = performance.now()
  }
  tellIfNobody()

  /** Everybody would be refused, and only the log can say why. */
  function tellIfNobody(): void {
    if ([...all.values()].every(isExpired))
      onProblem({
        message:
          'There is no API key that is valid: everybody is refused. Make one with "oxbow keys create --user NAME", and put ' +
          `its record into ${keysFile ?? 'the file that identity.keysFile names'}.`,
      })
  }

  /** A file that is broken leaves the keys as they are: a slip of the pen must not lock everybody out. */
  async function look(file: string): Promise<void> {
    lookedAt = performance.now()
    const stamp = await stampOf(file)
    if (stamp === seen) return
    seen = stamp
    try {
      all = byId(keys, await recordsOf(file))
      tellIfNobody()
    } catch (cause) {
      onProblem({ message: `${(cause as Error).message} The keys stay as they were.`, cause })
    }
  }

  async function current(): Promise<ReadonlyMap<string, ApiKey>> {
    if (keysFile !== undefined && performance.now() - lookedAt > LOOK_AGAIN_MS) {
      looking ??= look(keysFile).finally(() => {
        looking = undefined
      })
      await looking
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
      return theirs.length === 0 ? undefined : narrowed(principal, together(theirs, principal))
    },
  }
}

const isExpired = ({ expiresAt }: ApiKey): boolean => expiresAt !== undefined && expiresAt <= Date.now()

/** Where it is not recorded which key somebody came with, it may have been any of theirs. */
function together(keys: readonly ApiKey[], { user, department }: Principal): Principal {
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
  if (!Array.isArray(keys) || Object.keys(rest).length > 0) throw invalid('must have [[keys]] tables and nothing else')
  return keys
}

const stampOf = (file: string): Promise<string> =>
  stat(file).then(
    ({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`,
    () => 'gone',
  )

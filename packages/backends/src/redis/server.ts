// The connection of one open back end.
import { OxbowError } from '@oxbow/core'
import { optionalPackage } from '@oxbow/core/internal'
import type { Redis } from 'ioredis'
import { closedError } from '../keys.ts'
import type { CheckedRedisOptions } from './options.ts'
import { SCRIPTS, type Scripts } from './scripts.ts'

/** A caller is told within this time that the server cannot be reached. */
const COMMAND_MS = 5_000
const RECONNECT_MS = 500

export type ScriptedRedis = Redis & Scripts

export interface Server {
  readonly name: string
  readonly ended: boolean
  key(...parts: readonly string[]): string
  /** Runs commands; what the driver throws becomes an OxbowError. */
  run<T>(work: (redis: ScriptedRedis) => Promise<T>): Promise<T>
  /** Another connection with the same settings, for subscriptions. */
  connect(): Promise<Redis>
  assertOpen(): void
  end(): void
  close(): Promise<void>
}

export const loadRedis = async () => (await optionalPackage(() => import('ioredis'), 'redis()', 'ioredis@6')).Redis

/** Makes an OxbowError of what the driver threw. */
export function redisError(name: string, error: unknown): OxbowError {
  if (error instanceof OxbowError) return error
  const { message = String(error) } = error as Error
  const failure = (
    code: 'storage_busy' | 'storage_error' | 'storage_full' | 'storage_readonly',
    text: string,
    again: boolean,
  ) => new OxbowError(code, text, { retryable: again, details: { reason: message } })
  if (message.startsWith('OOM')) return failure('storage_full', `${name} has no memory left. Raise maxmemory.`, true)
  if (message.startsWith('READONLY'))
    return failure('storage_readonly', `${name} is a replica. Give the address of the primary.`, true)
  if (message.startsWith('MISCONF'))
    return failure('storage_full', `${name} cannot write to its disk: ${message}.`, true)
  if (/^(NOAUTH|WRONGPASS|NOPERM)/.test(message))
    return failure('storage_error', `${name} refuses the connection: ${message}. Check user and password.`, false)
  if (/^(WRONGTYPE|ERR)/.test(message)) return failure('storage_error', `${name} cannot be used: ${message}.`, false)
  return failure('storage_busy', `${name} cannot be reached: ${message}. Check that the server runs.`, true)
}

export function openServer({ url, prefix, name }: CheckedRedisOptions): Server {
  let ended = false
  let redis: ScriptedRedis | undefined
  let opening: Promise<ScriptedRedis> | undefined
  const others = new Set<Redis>()

  const settings = {
    commandTimeout: COMMAND_MS,
    connectTimeout: COMMAND_MS,
    maxRetriesPerRequest: 3,
    retryStrategy: () => RECONNECT_MS,
    connectionName: 'oxbow',
  }

  async function open(): Promise<ScriptedRedis> {
    const Redis = await loadRedis()
    const opened = new Redis(url, { ...settings, scripts: SCRIPTS }) as ScriptedRedis
    // Commands report what is wrong with the connection.
    opened.on('error', () => {})
    redis = opened
    return opened
  }

  return {
    name,
    get ended() {
      return ended
    },
    // Lengths, so that no two lists of parts make one key.
    key: (...parts) => prefix + parts.map((it) => `${it.length}:${it}`).join(''),
    async run(work) {
      try {
        opening ??= open()
        return await work(await opening)
      } catch (error) {
        throw redisError(name, error)
      }
    },
    async connect() {
      const Redis = await loadRedis()
      const other = new Redis(url, { ...settings, maxRetriesPerRequest: null, autoResubscribe: false })
      other.on('error', () => {})
      others.add(other)
      return other
    },
    assertOpen() {
      if (ended) throw closedError(name)
    },
    end() {
      ended = true
    },
    async close() {
      await opening?.catch(() => {})
      for (const it of others) it.disconnect()
      await redis?.quit().catch(() => redis?.disconnect())
    },
  }
}

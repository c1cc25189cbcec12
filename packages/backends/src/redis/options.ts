// What a program may say about the server.
import { OxbowError } from '@oxbow/core'

export interface RedisOptions {
  /** `redis://user:password@host:port/db`, or `rediss://` for TLS. */
  readonly url: string
  /** Goes before every key. Default `oxbow:`. */
  readonly prefix?: string
  /**
   * How long a worker that gives no sign of life keeps its turns, in milliseconds. Default 5,000, at least 1,000. Longer
   * than anything that blocks the event loop.
   */
  readonly leaseMs?: number
}

export interface CheckedRedisOptions {
  readonly url: string
  readonly prefix: string
  readonly leaseMs: number
  /** For readiness checks, logs and errors: host and database, and nothing else of the URL. */
  readonly name: string
}

const SHORTEST_LEASE_MS = 1_000
const FIELDS = ['url', 'prefix', 'leaseMs']

/** @throws OxbowError `invalid_option` */
export function checkRedisOptions(options: RedisOptions): CheckedRedisOptions {
  const invalid = (what: string) => new OxbowError('invalid_option', `redis(): ${what}`)
  const example = "for example redis({ url: 'redis://localhost:6379' })"
  if (typeof options !== 'object' || options === null) throw invalid(`The options must be an object, ${example}.`)
  const unknown = Object.keys(options).find((it) => !FIELDS.includes(it))
  if (unknown !== undefined) throw invalid(`Unknown option ${JSON.stringify(unknown)}. Allowed: ${FIELDS.join(', ')}.`)
  const { url, prefix = 'oxbow:', leaseMs = 5_000 } = options
  // The URL may hold a password, so no message shows it.
  if (typeof url !== 'string' || !/^rediss?:\/\//.test(url) || !URL.canParse(url))
    throw invalid(`url must be the address of a server that begins with redis:// or rediss://, ${example}.`)
  if (typeof prefix !== 'string' || prefix === '' || /[{}\s]/.test(prefix))
    throw invalid(`prefix must be text without spaces and braces: ${JSON.stringify(prefix)} was given.`)
  if (!Number.isFinite(leaseMs) || leaseMs < SHORTEST_LEASE_MS)
    throw invalid(`leaseMs must be a number of at least ${SHORTEST_LEASE_MS}: ${String(leaseMs)} was given.`)
  const { host, pathname } = new URL(url)
  return { url, prefix, leaseMs, name: `redis ${host}${pathname}` }
}

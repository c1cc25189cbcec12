// What a program may say about the database.
import { OxbowError } from '@oxbow/core'

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`; TLS with `?sslmode=verify-full`. */
  readonly url: string
  /** The schema that holds the tables; created when it is missing. Default `oxbow`. */
  readonly schema?: string
  /**
   * How long a worker that gives no sign of life keeps its turns, in milliseconds; another replica takes them over after
   * it. Default 5,000, at least 1,000. Longer than anything that blocks the event loop.
   */
  readonly leaseMs?: number
  /** Connections of this process, besides one that listens. Default 10. */
  readonly poolSize?: number
}

export interface CheckedOptions {
  readonly url: string
  readonly schema: string
  readonly leaseMs: number
  readonly poolSize: number
  /** For readiness checks, logs and errors: host and database, and nothing else of the URL. */
  readonly name: string
}

const SHORTEST_LEASE_MS = 1_000
const FIELDS = ['url', 'schema', 'leaseMs', 'poolSize']

/** @throws OxbowError `invalid_option` */
export function checkOptions(options: PostgresOptions): CheckedOptions {
  const invalid = (what: string) => new OxbowError('invalid_option', `postgres(): ${what}`)
  const example = "for example postgres({ url: 'postgres://user@localhost/oxbow' })"
  if (typeof options !== 'object' || options === null) throw invalid(`The options must be an object, ${example}.`)
  const unknown = Object.keys(options).find((it) => !FIELDS.includes(it))
  if (unknown !== undefined) throw invalid(`Unknown option ${JSON.stringify(unknown)}. Allowed: ${FIELDS.join(', ')}.`)
  const { url, schema = 'oxbow', leaseMs = 5_000, poolSize = 10 } = options
  // The URL may hold a password, so no message shows it.
  if (typeof url !== 'string' || !/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url))
    throw invalid(`url must be the address of a database that begins with postgres://, ${example}.`)
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,40}$/.test(schema))
    throw invalid(`schema must be lower-case letters, digits and _: ${JSON.stringify(schema)} was given.`)
  if (!Number.isFinite(leaseMs) || leaseMs < SHORTEST_LEASE_MS)
    throw invalid(`leaseMs must be a number of at least ${SHORTEST_LEASE_MS}: ${String(leaseMs)} was given.`)
  if (!Number.isInteger(poolSize) || poolSize < 1)
    throw invalid(`poolSize must be a whole number of at least 1: ${String(poolSize)} was given.`)
  const { host, pathname } = new URL(url)
  return { url, schema, leaseMs, poolSize, name: `postgres ${host}${pathname}` }
}

// Identity of a host system: its sessions authenticate callers here. Answers are cached per session for a short time.
import { createHmac, randomBytes } from 'node:crypto'
import type { Principal } from '@oxbow/core'
import { isSamePerson } from '@oxbow/core/internal'
import { bulkhead, isBulkheadRejectedError } from 'cockatiel'
import type { IntrospectionConfig } from '../../config/identity-config.ts'
import {
  type Authentication,
  type Credentials,
  type Identity,
  type KnownPrincipal,
  type OnProblem,
  refused,
  unavailable,
} from '../contract.ts'
import { cookiesOf, invalid, valuesIn, valuesOf } from '../credentials.ts'
import { HostUnavailable, host } from '../host.ts'
import { boundedMap } from '../limits/bounded-map.ts'
import { narrowed } from '../narrowing.ts'
import { nameOfPerson, orUnavailable, refreshEndpoint } from '../refresh.ts'
import { principalOfAnswer } from './verdict.ts'

type PassedOn = Readonly<Record<string, string>>

/** Sessions whose headers are kept, so that rights can be checked again when an approval is used. */
const MAX_KNOWN = 10_000

/**
 * Limits on concurrent questions about unknown credentials from addresses that sent many invalid ones. Further requests
 * wait, or are refused.
 */
const THROTTLED = { atOnce: 2, waiting: 50 }

export function introspectionIdentity(config: IntrospectionConfig, onProblem: OnProblem): Identity {
  const { url, method, cookies, cacheMs, cacheSize } = config
  const asked = host(config.timeoutMs)
  const cache = boundedMap<{ principal: KnownPrincipal; until: number }>(cacheSize)
  const few = bulkhead(THROTTLED.atOnce, THROTTLED.waiting)
  const flights = new Map<string, Promise<KnownPrincipal | undefined>>()
  const sessions = boundedMap<PassedOn>(MAX_KNOWN)
  /** The latest session of each user. */
  const latest = boundedMap<string>(MAX_KNOWN)
  // Turns store the names of sessions: nobody may derive a session from its name.
  const secret = randomBytes(32)
  const naming = (headers: PassedOn): string =>
    createHmac('sha256', secret).update(JSON.stringify(headers)).digest('base64url')
  const endpoint = refreshEndpoint(config.refresh, config, onProblem)

  async function askHost(headers: PassedOn, name: string): Promise<KnownPrincipal | undefined> {
    const answer = await asked.ask(url, { method, headers: { accept: 'application/json', ...headers } })
    const known = principalOfAnswer(answer, config)
    if (known === undefined) {
      cache.delete(name)
      sessions.delete(name)
      return undefined
    }
    const principal = { ...known, credential: name }
    cache.set(name, { principal, until: performance.now() + cacheMs })
    sessions.set(name, headers)
    return principal
  }

  /** The principal's current rights in this session. */
  async function asIn(name: string | undefined, principal: Principal): Promise<Principal | undefined> {
    const headers = name === undefined ? undefined : sessions.get(name)
    if (headers === undefined) return undefined
    const now = await askHost(headers, name!)
    return now !== undefined && isSamePerson(now, principal) ? narrowed(principal, now) : undefined
  }

  /** Concurrent requests with the same credentials share one question. */
  function ask(headers: PassedOn, name: string): Promise<KnownPrincipal | undefined> {
    const flying = flights.get(name)
    if (flying !== undefined) return flying
    const flight = askHost(headers, name).finally(() => flights.delete(name))
    flights.set(name, flight)
    return flight
  }

  return {
    mode: 'introspection',
    ambient: cookies.length > 0 || config.headers.includes('cookie'),
    schemes: {
      ...(config.headers.includes('authorization') && { bearer: { type: 'http', scheme: 'bearer' } }),
      ...Object.fromEntries(cookies.map((name) => [`cookie_${name}`, { type: 'apiKey', in: 'cookie', name }])),
    },
    async authenticate(credentials, { throttled = false } = {}): Promise<Authentication> {
      const headers = passedOn(credentials, config)
      if (headers === 'ambiguous')
        return refused(
          'credentials_ambiguous',
          'The request has more than one session: two headers, two cookies of one name, or both kinds. Send one.',
        )
      if (headers === undefined)
        return refused(
          'credentials_missing',
          'Credentials are required. Sign in at the host system and send the credentials of that session.',
        )
      const name = naming(headers)
      const hit = cache.get(name)
      const remembered = hit !== undefined && hit.until > performance.now() ? hit.principal : undefined
      // A session that was valid before is not throttled: its name cannot be guessed.
      const held = throttled && sessions.get(name) === undefined
      try {
        const question = () => ask(headers, name)
        const principal = remembered ?? (await (held ? few.execute(question) : question()))
        if (principal === undefined) return invalid()
        latest.set(nameOfPerson(principal), name)
        return { accepted: true, principal }
      } catch (cause) {
        if (isBulkheadRejectedError(cause)) return invalid()
        if (!(cause instanceof HostUnavailable)) throw cause
        onProblem({ message: `identity.introspection.url: ${cause.message}`, cause })
        return unavailable(cause.retryAfterMs)
      }
    },
    refresh(principal, { reading = false } = {}) {
      if (endpoint !== undefined && !reading) return endpoint(principal)
      const { credential } = principal
      return orUnavailable('identity.introspection.url', onProblem, async () => {
        const now = await asIn(credential, principal)
        if (now !== undefined || reading) return now
        // Sessions expire, often before an approval is decided.
        const last = latest.get(nameOfPerson(principal))
        return last === credential ? undefined : asIn(last, principal)
      })
    },
  }
}

/** The headers of the caller's session; undefined when there are none. */
function passedOn(credentials: Credentials, config: IntrospectionConfig): PassedOn | 'ambiguous' | undefined {
  const headers: Record<string, string> = {}
  for (const name of config.headers) {
    const values = valuesOf(credentials, name)
    if (values.length > 1 && name !== 'cookie') return 'ambiguous'
    if (values.length > 0 && values[0] !== '') headers[name] = values.join('; ')
  }
  const cookies = cookiesOf(credentials, config.cookies)
  if (cookies === 'ambiguous') return 'ambiguous'
  // Different sessions may belong to different users. A front end that sends one token both ways is one user.
  const bearer = headers.authorization?.replace(/^Bearer +/i, '')
  if (bearer !== undefined && cookies !== '' && !valuesIn(cookies).includes(bearer)) return 'ambiguous'
  if (cookies !== '') headers.cookie = cookies
  // A header that only accompanies the session, such as a client id, is not a credential.
  const proves = cookies !== '' || headers[config.headers[0] ?? ''] !== undefined
  return proves ? headers : undefined
}

// The checks before every route: authentication, authorization and rate limits.
import { isIPv6 } from 'node:net'
import { ADMIN, DEFAULT_TENANT, grants } from '@oxbow/core/internal'
import type { ServerConfig } from '../config/config.ts'
import { HttpError } from '../http/errors.ts'
import type { AppContext, Guard, Route } from '../http/route.ts'
import { callerOf, DEFAULT_USER } from '../principal.ts'
import type { Accepted, Authentication, Identity, Refusal } from './contract.ts'
import { buckets } from './limits/buckets.ts'
import { nameOfPerson } from './refresh.ts'

/** @throws (by the guard) HttpError 401, 403, 429 or 503 */
export function requestGuard(identity: Identity, limits: ServerConfig['rateLimits']): Guard {
  const failures = buckets(limits.failedAuthenticationsPerMinute)
  const requests = limits.requestsPerMinute === 0 ? undefined : buckets(limits.requestsPerMinute)

  function limit(name: string): void {
    const wait = requests?.take(name) ?? 0
    if (wait > 0) throw tooMany(wait, 'You sent too many requests.')
  }

  async function authenticate(c: AppContext, access: Route['access']): Promise<Accepted> {
    const { rawHeaders, socket } = c.env.incoming
    const address = networkOf(socket?.remoteAddress ?? '')
    // An authenticated caller still gets in from an address that sent many invalid credentials.
    const throttled = failures.wait(address) > 0
    const result = await identity.authenticate({ rawHeaders }, { throttled })
    if (result.accepted) return result
    // Where credentials are optional, a request without them is not refused.
    if (access !== 'optional' || result.code !== 'credentials_missing') c.set('refusal', result.code)
    if (result.status === 401 && result.code !== 'credentials_missing') {
      const wait = failures.take(address)
      if (wait > 0) throw tooMany(wait, 'Too many invalid credentials came from your address.')
    }
    throw refusal(result)
  }

  async function enter(c: AppContext, { access = 'user' }: Pick<Route, 'access'>): Promise<void> {
    if (identity.mode === 'none') {
      c.set('caller', 'anybody')
      if (access !== 'open' && access !== 'optional')
        limit(nameOfPerson({ tenant: DEFAULT_TENANT, user: DEFAULT_USER }))
      return
    }
    if (access === 'open') return
    let result: Authentication
    try {
      result = await authenticate(c, access)
    } catch (error) {
      if (access === 'optional' && error instanceof HttpError) return
      throw error
    }
    const { principal, keyId } = result
    // Missing permissions would count as those of a program without identity.
    c.set('caller', { permissions: [], ...principal })
    if (keyId !== undefined) c.set('keyId', keyId)
    if (access === 'optional') return
    limit(nameOfPerson(principal))
    if (access === 'admin' && !grants(principal.permissions ?? [], ADMIN))
      throw new HttpError(403, 'forbidden', `This requires the permission ${ADMIN}.`)
  }

  return {
    enter,
    checkNames(c, given) {
      const caller = c.get('caller')
      if (caller === undefined || caller === 'anybody' || typeof given !== 'object' || given === null) return
      const { userId, tenant } = given as { userId?: unknown; tenant?: unknown }
      callerOf(c, { userId: nameIn(userId), tenant: nameIn(tenant) })
    },
  }
}

const nameIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const tooMany = (waitMs: number, what: string): HttpError =>
  new HttpError(429, 'too_many_requests', `${what} Try again later.`, {
    'retry-after': String(Math.ceil(waitMs / 1_000)),
  })

function refusal({ status, code, message, retryAfterMs = 1_000 }: Refusal): HttpError {
  if (status === 503)
    return new HttpError(503, code, message, { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) })
  // RFC 6750: no error code when the request had no credentials.
  const error = code === 'credentials_missing' ? '' : `, error="invalid_token", error_description="${message}"`
  return new HttpError(401, code, message, { 'www-authenticate': `Bearer realm="oxbow"${error}` })
}

/** One IPv6 subscriber has a whole /64 network. */
export const networkOf = (address: string): string => {
  if (!isIPv6(address) || address.startsWith('::ffff:')) return address
  const [head = '', tail] = address.split('::')
  const groups = head.split(':').filter((it) => it !== '')
  const rest = tail === undefined ? [] : tail.split(':').filter((it) => it !== '')
  const all = tail === undefined ? groups : [...groups, ...Array(8 - groups.length - rest.length).fill('0'), ...rest]
  return `${all.slice(0, 4).join(':')}::/64`
}

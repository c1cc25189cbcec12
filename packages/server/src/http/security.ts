// Security headers of every answer, and checks of the Host and Origin headers.
import type { MiddlewareHandler } from 'hono'
import { hostAllowed, hostListed } from '../loopback.ts'
import { HttpError } from './errors.ts'
import type { AppContext, AppEnv } from './route.ts'

const headers = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const

/** For answers without a request. */
export const plainHeaders = { ...headers, 'cache-control': 'no-store' } as const

/** For answers that bypass hono. */
export const streamHeaders = (c: AppContext): Record<string, string> => ({
  ...headers,
  ...c.get('corsHeaders'),
  'x-request-id': c.get('requestId'),
})

export const securityHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next()
  if (c.env.outgoing.headersSent) return
  for (const [name, value] of Object.entries(headers)) c.res.headers.set(name, value)
  c.res.headers.set('cache-control', 'no-store')
  c.res.headers.set('x-request-id', c.get('requestId'))
}

/** Without identity: only host names of this machine, and only pages of this service or of configured origins. */
export const checkLocalHost =
  (host: string, origins: readonly string[]): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    const name = c.req.header('host')
    if (!hostAllowed(name, host))
      throw new HttpError(
        403,
        'host_not_allowed',
        `Unknown host ${JSON.stringify((name ?? '').slice(0, 100))}. Use localhost, 127.0.0.1 or [::1].`,
      )
    // A page of another origin can send a POST without a body, although it cannot read the answer.
    const origin = c.req.header('origin')
    // A page on another port of this machine may belong to another program.
    if (origin !== undefined && !origins.includes(origin) && hostOf(origin) !== name?.toLowerCase()) throw foreignPage()
    await next()
  }

export interface HostRules {
  /** Empty: any. */
  readonly allowedHosts: readonly string[]
  readonly origins: readonly string[]
  /** Browsers send the credentials automatically, even for pages of other origins. */
  readonly ambient: boolean
}

/**
 * With identity: only configured host names. Pages of other origins are rejected when browsers send credentials
 * automatically.
 */
export const checkConfiguredHost =
  ({ allowedHosts, origins, ambient }: HostRules): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    const name = c.req.header('host')
    // Probes use the address.
    const probe = c.req.path === '/healthz' || c.req.path === '/readyz'
    if (allowedHosts.length > 0 && !probe && !hostListed(name, allowedHosts))
      throw new HttpError(
        403,
        'host_not_allowed',
        `Unknown host ${JSON.stringify((name ?? '').slice(0, 100))}. Add it to server.allowedHosts.`,
      )
    const origin = c.req.header('origin')
    if (ambient && origin !== undefined && !origins.includes(origin)) {
      const page = hostOf(origin)
      if (
        page === undefined ||
        (page !== name?.toLowerCase() && !(allowedHosts.length > 0 && hostListed(page, allowedHosts)))
      )
        throw foreignPage()
    }
    await next()
  }

export const foreignPage = (): HttpError =>
  new HttpError(
    403,
    'origin_not_allowed',
    'Pages of this origin may not call this service. Add the origin to server.cors.origins.',
  )

const hostOf = (origin: string): string | undefined => (URL.canParse(origin) ? new URL(origin).host : undefined)

// Headers of every answer, and the name under which this service may be asked.
import type { MiddlewareHandler } from 'hono'
import { hostAllowed } from '../loopback.ts'
import { HttpError } from './errors.ts'
import type { AppContext, AppEnv } from './route.ts'

const headers = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const

/** For answers that are written past hono. */
export const streamHeaders = (c: AppContext): Record<string, string> => ({
  ...headers,
  'x-request-id': c.get('requestId'),
})

export const securityHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next()
  if (c.env.outgoing.headersSent) return
  for (const [name, value] of Object.entries(headers)) c.res.headers.set(name, value)
  c.res.headers.set('cache-control', 'no-store')
  c.res.headers.set('x-request-id', c.get('requestId'))
}

export const checkHost =
  (host: string): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    const name = c.req.header('host')
    if (!hostAllowed(name, host))
      throw new HttpError(
        403,
        'host_not_allowed',
        `This service is not called ${JSON.stringify((name ?? '').slice(0, 100))}. Use localhost, 127.0.0.1 or [::1].`,
      )
    // A page elsewhere can send a POST without a body, though it cannot read the answer.
    const origin = c.req.header('origin')
    if (origin !== undefined && !hostAllowed(hostOf(origin), host))
      throw new HttpError(403, 'origin_not_allowed', 'Pages of other sites may not use this service.')
    await next()
  }

const hostOf = (origin: string): string | undefined => (URL.canParse(origin) ? new URL(origin).host : undefined)

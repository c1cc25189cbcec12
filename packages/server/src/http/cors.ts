// Pages of other origins are rejected unless their origin is configured.
import type { MiddlewareHandler } from 'hono'
import type { ServerConfig } from '../config/config.ts'
import type { AppEnv } from './route.ts'
import { foreignPage } from './security.ts'

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const EXPOSED = 'x-request-id, retry-after, www-authenticate'
const HEADER_NAMES = /^[A-Za-z0-9-]+(?: *, *[A-Za-z0-9-]+)*$/

export function cors({ origins, credentials }: ServerConfig['cors']): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const origin = c.req.header('origin')
    const allowed = origin !== undefined && origins.includes(origin)
    const headers: Record<string, string> = {
      vary: 'origin',
      ...(allowed && {
        'access-control-allow-origin': origin,
        'access-control-expose-headers': EXPOSED,
        ...(credentials && { 'access-control-allow-credentials': 'true' }),
      }),
    }
    c.set('corsHeaders', headers)
    const asks = c.req.method === 'OPTIONS' && c.req.header('access-control-request-method') !== undefined
    if (asks && origin !== undefined && !allowed) throw foreignPage()
    if (asks && allowed) {
      const wanted = c.req.header('access-control-request-headers') ?? ''
      return c.body(null, 204, {
        ...headers,
        'access-control-allow-methods': METHODS,
        ...(wanted.length <= 1_000 && HEADER_NAMES.test(wanted) && { 'access-control-allow-headers': wanted }),
        'access-control-max-age': '600',
      })
    }
    await next()
    if (c.env.outgoing.headersSent) return
    for (const [name, value] of Object.entries(headers)) c.res.headers.set(name, value)
  }
}

// One log line and one observation per request. Each request has an id that is also in the answer.
import { randomUUID } from 'node:crypto'
import { defined, isId } from '@oxbow/core/internal'
import type { MiddlewareHandler } from 'hono'
import type { Logger } from 'pino'
import type { AppContext, AppEnv } from './route.ts'
import type { ObservedRequest } from './route-info.ts'

export const requestLog =
  (log: Logger, observe: (request: ObservedRequest) => void): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    const startedAt = performance.now()
    const given = c.req.header('x-request-id')
    const requestId = isId(given) ? given : randomUUID()
    c.set('requestId', requestId)
    await next()
    const ms = performance.now() - startedAt
    const { method, path } = c.req
    const status = c.env.outgoing.headersSent ? c.env.outgoing.statusCode : c.res.status
    observe({ method, route: c.get('route') ?? 'unmatched', status, seconds: ms / 1_000 })
    const code = c.get('errorCode')
    const about = { requestId, method, path: path.slice(0, 300), status, ms: Math.round(ms), ...callerFields(c) }
    log[levelOf(path, status, code)]({ ...about, ...defined({ code }) }, 'request')
  }

function levelOf(path: string, status: number, code: string | undefined): 'debug' | 'info' | 'warn' | 'error' {
  // A refusal because the service is stopping is not an error.
  if (code === 'shutting_down') return 'info'
  const asked = path === '/healthz' || path === '/readyz' || path === '/metrics'
  if (asked) return status >= 500 ? 'warn' : 'debug'
  return status >= 500 ? 'error' : 'info'
}

/** The authenticated caller. Never the credentials. */
function callerFields(c: AppContext): Record<string, string> {
  const caller = c.get('caller')
  const keyId = c.get('keyId')
  const refusal = c.get('refusal')
  return {
    ...(caller !== undefined && caller !== 'anybody' && { tenant: caller.tenant, user: caller.user }),
    ...defined({ keyId, refusal }),
  }
}

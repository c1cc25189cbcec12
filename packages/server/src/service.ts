// The HTTP service: the routes around an engine, from listen to close.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { type Engine, OxbowError } from '@oxbow/core'
import type { Models } from '@oxbow/models'
import { Hono } from 'hono'
import type { Logger } from 'pino'
import { chatStreamRoute } from './ag-ui/route.ts'
import type { AgentProtocolHost } from './agent-protocol/factory.ts'
import { agentProtocolRoutes } from './agent-protocol/routes.ts'
import { approvalRoutes } from './approvals/routes.ts'
import { auditRoute } from './audit/route.ts'
import { chatRoute } from './chat/chat.ts'
import type { Config } from './config/config.ts'
import type { Dependency } from './dependency.ts'
import { failureOf, failureOfError } from './failures.ts'
import { healthRoutes, type Phase } from './health.ts'
import { cors } from './http/cors.ts'
import { errorResponse, failureResponse, HttpError } from './http/errors.ts'
import { requestLog } from './http/request-log.ts'
import { type AppEnv, type Route, register } from './http/route.ts'
import type { HttpApp, RouteInfo } from './http/route-info.ts'
import { checkConfiguredHost, checkLocalHost, plainHeaders, securityHeaders } from './http/security.ts'
import { refuseOnTheWire } from './http/wire.ts'
import type { Identity } from './identity/contract.ts'
import { requestGuard } from './identity/guard.ts'
import { openIdentity } from './identity/identity.ts'
import { streamSlots } from './identity/limits/stream-slots.ts'
import { turnSlots } from './identity/limits/turn-slots.ts'
import { assertMayListen } from './loopback.ts'
import { mcpRoute } from './mcp/route.ts'
import { modelsRoute } from './models/route.ts'
import { openApiRoute } from './openapi.ts'
import { type Retention, startRetention } from './sessions/retention.ts'
import { sessionRoutes } from './sessions/routes.ts'
import { audience } from './stream/audience.ts'
import { broadcasts } from './stream/broadcast.ts'
import { pump } from './stream/pump.ts'
import { streamRights } from './stream/rights.ts'
import { sseStreams } from './stream/sse.ts'
import { taskRoutes } from './tasks/routes.ts'
import { taskSockets } from './tasks/stream/socket.ts'
import { reporter } from './telemetry/logging.ts'
import { createMetrics, type Metrics } from './telemetry/metrics.ts'
import type { Tracing } from './telemetry/tracing.ts'

export interface ServiceOptions {
  readonly engine: Engine
  readonly config: Pick<Config, 'server' | 'identity' | 'retention' | 'tasks' | 'agentProtocol'>
  readonly log: Logger
  /** The metrics that the agents' middleware reports to. Default: HTTP metrics only. */
  readonly metrics?: Metrics
  /** The source of the agents' models; their health is shown. */
  readonly models?: Pick<Models, 'list'>
  /** The current state of external dependencies: named by /readyz, counted by /metrics. */
  readonly dependencies?: () => readonly Dependency[]
  /** From `createIdentity`. Required, with the configured mode, unless that is `none`. */
  readonly identity?: Identity
  /** Chooses the agent and the attributes of Agent Protocol tasks. */
  readonly agentProtocol?: AgentProtocolHost
  /** From `createTracing`: turns join the trace that a request names in `traceparent`. */
  readonly tracing?: Pick<Tracing, 'continued'>
}

export interface Service {
  readonly app: HttpApp
  readonly routes: readonly RouteInfo[]
  /** Binds, starts the engine and resolves when the service is ready. @throws OxbowError `identity_missing` */
  listen(): Promise<{ url: string }>
  /**
   * Stops accepting requests. Running turns may finish, or reach their next stored event, within the configured grace.
   * Open streams learn that their turns continue later. The back end stays open: its owner closes it.
   */
  close(): Promise<void>
}

/** The time limit for the last bytes to reach their readers on close. */
const FLUSH_MS = 1_000

/** No turn has begun, so nothing is promised. */
const STOPPING = 'The service is stopping. Send the request again in a moment.'

/** For bytes that never become a request: an invalid request line, or no Host header. */
const badRequest = new HttpError(
  400,
  'invalid_request',
  'The request line or the Host header is invalid.',
  plainHeaders,
)

function cannotListen({ host, port }: Config['server'], error: NodeJS.ErrnoException): OxbowError {
  const advice: Readonly<Record<string, string>> = {
    EADDRINUSE:
      'the port is in use by another program. Stop that program, or choose another port (--port, server.port; 0 chooses a free one).',
    EACCES: 'permission denied. Choose a port above 1023 (--port, server.port).',
    EADDRNOTAVAIL: 'the address does not exist on this machine. Choose another host (--host, server.host).',
  }
  const why = advice[error.code ?? ''] ?? `${error.message}.`
  return new OxbowError('cannot_listen', `Cannot listen on ${host}:${port}: ${why}`, { cause: error })
}

/** @throws OxbowError `identity_missing` */
export function createService(options: ServiceOptions): Service {
  const { engine, config, log, metrics = createMetrics(), identity = openIdentity() } = options
  const { dependencies = () => [] } = options
  const { server: settings } = config
  if (identity.mode !== config.identity.mode)
    throw new OxbowError(
      'identity_missing',
      `identity.mode is "${config.identity.mode}", but the service got "${identity.mode}". Pass the result of createIdentity(config.identity).`,
    )
  const report = reporter(log)
  let phase: Phase = 'starting'
  let server: Server | undefined
  let closing: Promise<void> | undefined
  let retention: Retention | undefined

  const streams = sseStreams(settings.heartbeatMs)
  const shared = { broadcasts: broadcasts(pump()), streamSlots: streamSlots(settings.rateLimits.openStreams) }
  const watchers = audience({ ...settings, onError: (error) => report(error) })
  const schemaOf = (agent: string, tool: string) => engine.agents.get(agent)?.tools.get(tool)?.jsonSchema
  const rights = streamRights(identity, {
    intervalMs: settings.recheckMs,
    maxAgeMs: settings.rightsMaxAgeMs,
    onError: (error) => report(error),
  })
  const deps = {
    streams,
    ...shared,
    audience: watchers,
    rights,
    onRepair: metrics.streamRepaired,
    schemaOf,
    report,
  }
  metrics.attach({ engine, openStreams: () => streams.count, models: options.models, dependencies })

  const slots = turnSlots(settings.rateLimits.concurrentTurns, () => engine.runningTurns)
  const watching = {
    streams,
    ...shared,
    rights,
    limitMs: config.tasks.streamLimitMs,
    heartbeatMs: settings.heartbeatMs,
    report,
  }
  const sockets = taskSockets(engine, watching)
  const operations: Route[] = [
    ...healthRoutes(engine, () => phase, dependencies),
    { ...metrics.route, access: settings.metrics === 'admin' ? 'admin' : 'open' },
  ]
  const api = (): Route[] => [
    chatRoute(engine, watchers, rights, settings, slots),
    chatStreamRoute(engine, deps, settings, slots),
    ...sessionRoutes(engine, deps),
    ...approvalRoutes(engine),
    auditRoute(engine),
    modelsRoute(engine, options.models),
    ...taskRoutes(engine, watching, settings, slots),
    sockets.route,
    ...agentProtocolRoutes({
      engine,
      config: config.agentProtocol,
      host: options.agentProtocol ?? {},
      slots,
      maxMessageLength: settings.maxMessageLength,
      streams,
      ...shared,
      rights,
      report,
    }),
    ...(settings.mcp ? [mcpRoute({ ...settings, limits: settings, engine, audience: watchers, slots, report })] : []),
  ]
  const isWorker = settings.role === 'worker'
  const routes = [...(isWorker ? [] : api()), ...operations]
  routes.push(openApiRoute(routes, identity.schemes))

  const app = new Hono<AppEnv>()
  const { tracing } = options
  if (tracing !== undefined) app.use((c, next) => tracing.continued(c.req.header('traceparent'), next))
  app.use(requestLog(log, metrics.httpRequest))
  app.use(securityHeaders)
  const { origins } = settings.cors
  const { ambient } = identity
  if (identity.mode === 'none') app.use(checkLocalHost(settings.host, origins))
  else app.use(checkConfiguredHost({ allowedHosts: settings.allowedHosts, origins, ambient }))
  app.use(cors(settings.cors))
  for (const path of ['/api/*', '/agent/*', '/tasks/*', '/mcp'])
    app.use(path, async (c, next) => {
      if (phase !== 'stopping') return next()
      c.set('errorCode', 'shutting_down')
      return failureResponse({ ...failureOf('shutting_down'), message: STOPPING })
    })
  register(app, routes, settings, requestGuard(identity, settings.rateLimits))
  app.onError((error, c) => {
    const failure =
      error instanceof HttpError ? error : failureOfError(error, (it) => report(it, { requestId: c.get('requestId') }))
    c.set('errorCode', failure.code)
    return failure instanceof HttpError ? errorResponse(failure) : failureResponse(failure)
  })

  async function listen(): Promise<{ url: string }> {
    assertMayListen(settings.host, identity.mode)
    const listener = getRequestListener(app.fetch, {
      overrideGlobalObjects: false,
      errorHandler: () => errorResponse(badRequest),
    })
    const listening = createServer(
      {
        maxHeaderSize: settings.maxHeaderBytes,
        requestTimeout: settings.requestTimeoutMs,
        // By default Node checks only every 30 s, so a shorter limit would have no effect.
        connectionsCheckingInterval: Math.min(30_000, settings.requestTimeoutMs),
        // Otherwise Node answers on its own, without the usual error form.
        requireHostHeader: false,
        shouldUpgradeCallback: isWorker ? () => false : sockets.wanted,
      },
      listener,
    )
    refuseOnTheWire(listening)
    if (!isWorker) sockets.attach(listening, listener)
    server = listening
    await new Promise<void>((resolve, reject) => {
      listening.once('error', (error) => reject(cannotListen(settings, error)))
      listening.listen(settings.port, settings.host.replace(/^\[(.*)\]$/, '$1'), resolve)
    })
    try {
      await engine.start()
    } catch (error) {
      listening.close()
      throw error
    }
    phase = 'ready'
    metrics.start()
    if (settings.role !== 'api') retention = startRetention(engine, config.retention, (error) => report(error))
    const { address, port, family } = listening.address() as AddressInfo
    const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
    log.info({ url, store: engine.backend.name, role: settings.role }, 'listening')
    return { url }
  }

  async function close(): Promise<void> {
    phase = 'stopping'
    retention?.close()
    // New connections are still accepted: probes must learn that the service stops, and callers that they may retry.
    await watchers.close()
    await engine.stop(settings.shutdownGraceMs)
    const closed = new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())))
    // Node keeps a connection alive after its last answer, even when the server is closing.
    const sweep = setInterval(() => server?.closeIdleConnections(), FLUSH_MS / 50)
    sockets.close()
    const last = setTimeout(() => {
      server?.closeAllConnections()
      sockets.destroy()
    }, FLUSH_MS)
    await closed
    clearInterval(sweep)
    clearTimeout(last)
    streams.close()
    rights.close()
    metrics.close()
    log.info('stopped')
  }

  return {
    app,
    routes,
    listen,
    close() {
      closing ??= close()
      return closing
    },
  }
}

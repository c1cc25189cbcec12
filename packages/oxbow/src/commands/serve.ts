import {
  createIdentity,
  createLogger,
  createMetrics,
  createService,
  createTracing,
  engineErrors,
  identityProblems,
  loggingMiddleware,
  modelListeners,
} from '@oxbow/server'
import { configOf, modelInWords, openRuntime, type RuntimeOptions } from '../runtime.ts'

/** Serves until SIGINT or SIGTERM; a second signal exits immediately. */
export async function serve(options: RuntimeOptions): Promise<void> {
  const config = await configOf(options)
  const log = createLogger(config.log)
  const metrics = createMetrics()
  const endpoint = config.telemetry.endpoint ?? process.env.OTEL_EXPORTER_OTLP_ENDPOINT
  const tracing = endpoint ? await createTracing({ endpoint }) : undefined
  const identity = await createIdentity(config.identity, { onProblem: identityProblems(log) })
  const runtime = await openRuntime(config, {
    onNotice: (level, message) => log[level](message),
    models: modelListeners(log, metrics),
    middleware: [...(tracing ? [tracing.middleware] : []), metrics.middleware, loggingMiddleware(log)],
    engine: {
      onError: engineErrors(log),
      currentPrincipal: identity.refresh,
      principalMaxAgeMs: config.server.rightsMaxAgeMs,
      role: config.server.role,
      ...(config.server.maxTurns > 0 && { maxTurns: config.server.maxTurns }),
    },
  })
  const { engine, models, backend, servers } = runtime
  try {
    const service = createService({
      engine,
      config,
      log,
      metrics,
      identity,
      models,
      dependencies: servers.health,
      ...(tracing && { tracing }),
    })
    const stopped = untilSignal()
    const { url } = await service.listen()
    // In a thread, and only once requests are accepted.
    void runtime.knowledge.start()
    if (process.stdout.isTTY || config.log.format !== 'json')
      console.log(banner(url, modelInWords(models), backend.name, config.identity.mode))
    await stopped
    log.info('stopping: running turns finish their current event; a second signal exits immediately')
    process.once('SIGINT', () => process.exit(130))
    process.once('SIGTERM', () => process.exit(143))
    await service.close()
    // A tool that ignored its signal may still act: while the store stays open, no other worker claims its turn.
    if (engine.leftBehind > 0) process.exit(0)
  } finally {
    await runtime.close()
    await tracing?.close()
  }
  // Handles left open by a tool must not keep the process alive.
  process.exit(0)
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
}

/** The caller's credentials in the example command. */
const CREDENTIALS = { none: '', 'api-keys': 'KEY', jwt: 'TOKEN', introspection: 'TOKEN' } as const

function banner(url: string, model: string, store: string, mode: keyof typeof CREDENTIALS): string {
  const credentials = CREDENTIALS[mode]
  const header = credentials === '' ? '' : `-H 'authorization: Bearer ${credentials}' `
  const keys = mode === 'api-keys' ? '\n  Keys:   oxbow keys create --user NAME' : ''
  return `
  Oxbow listens on ${url}
  model   ${model}${model.startsWith('offline') ? ' (a stub, not a language model; set OPENAI_API_KEY or OXBOW_MODEL)' : ''}
  store   ${store}

  Try:    curl -sw '\\n' ${url}/api/chat ${header}-H 'content-type: application/json' -d '{"message":"What is 17 * 23?"}'${keys}
`
}

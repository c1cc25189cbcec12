// Prometheus metrics. The library takes longer to load than the rest of the service, so it is loaded after the first
// requests, or on the first scrape. Earlier observations are kept.
import { type Engine, type Middleware, OxbowError, type SessionKey, turnEvents, type Usage } from '@oxbow/core'
import { type DwellTimes, soundUsage, taskOf } from '@oxbow/core/internal'
import type { ObservedRequest, RouteInfo } from '../http/route-info.ts'
import { type Instruments, loadInstruments, type MetricsSource } from './instruments.ts'

export interface Metrics {
  /** Put it first on each agent: it counts turns, model calls and tool calls. */
  readonly middleware: Middleware
  httpRequest(request: ObservedRequest): void
  streamRepaired(): void
  /** Counts a failed request to a model that another request followed. */
  failedAttempt(model: string, code: string): void
  readonly route: RouteInfo & { handle(): Promise<Response> }
  /** Called by the service to add its own metrics. */
  attach(source: MetricsSource): void
  /** Called when the service is ready. */
  start(): void
  close(): void
}

const LOAD_AFTER_MS = 1_000
const MAX_KEPT = 10_000

export function createMetrics(): Metrics {
  let source: MetricsSource | undefined
  let loading: Promise<Instruments> | undefined
  let instruments: Instruments | undefined
  let timer: NodeJS.Timeout | undefined
  let kept: ((to: Instruments) => void)[] = []

  const record = (observation: (to: Instruments) => void): void => {
    if (instruments !== undefined) observe(instruments, observation)
    else if (kept.length < MAX_KEPT) kept.push(observation)
  }

  function load(): Promise<Instruments> {
    loading ??= loadInstruments(() => source).then((loaded) => {
      instruments = loaded
      for (const observation of kept) observe(loaded, observation)
      kept = []
      return loaded
    })
    return loading
  }

  return {
    middleware: {
      name: 'metrics',
      async onAgent({ session, turnId, agent, signal }, next) {
        const count = (end: string): void => record(({ turns }) => turns.inc({ agent, end }))
        try {
          await next()
        } catch (error) {
          // Otherwise the turn continues: here later, or with the worker that has claimed it.
          if (!signal.aborted && !/^(storage|journal)_/.test(codeOf(error))) count('failed')
          throw error
        }
        if (source === undefined) return
        const ended = await endOf(source.engine, session, turnId)
        if (ended === undefined) return
        count(ended.end)
        for (const [state, ms] of Object.entries(ended.dwellMs))
          record(({ dwell }) => dwell.observe({ state }, ms / 1_000))
      },
      async onModelCall(request, context, next) {
        const startedAt = performance.now()
        const model = context.summaryBy ?? source?.engine.agents.get(context.agent)?.model.id ?? 'unknown'
        const done = (finish: string): void => {
          const seconds = (performance.now() - startedAt) / 1_000
          record(({ modelCalls }) => modelCalls.observe({ model, finish }, seconds))
        }
        try {
          const reply = await next(request)
          done(reply.finishReason)
          const { usage, source: answeredBy } = reply
          if (answeredBy !== undefined) record(({ fallbacks }) => fallbacks.inc({ model, answered_by: answeredBy }))
          record((to) => countUsage(to, answeredBy ?? model, usage))
          return reply
        } catch (error) {
          done(codeOf(error))
          throw error
        }
      },
      async onActing(context, next) {
        const outcome = await next()
        // Names that the model invents would create unlimited labels.
        const tool = context.tool?.name ?? 'unknown'
        record(({ toolCalls }) => toolCalls.inc({ tool, status: outcome.status }))
        return outcome
      },
    },
    httpRequest: ({ method, route, status, seconds }) =>
      record(({ http }) => http.observe({ method, route, status }, seconds)),
    streamRepaired: () => record(({ repairs }) => repairs.inc()),
    failedAttempt: (model, code) => record(({ failedAttempts }) => failedAttempts.inc({ model, code })),
    route: {
      method: 'get',
      path: '/metrics',
      id: 'metrics',
      summary: 'Metrics in the text format of Prometheus.',
      answers: { 200: { description: 'The metrics.', contentType: 'text/plain' } },
      async handle() {
        const { registry } = await load()
        return new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } })
      },
    },
    attach(to) {
      source = to
    },
    start() {
      timer = setTimeout(load, LOAD_AFTER_MS)
      timer.unref()
    },
    close() {
      clearTimeout(timer)
      void loading?.then(({ registry }) => registry.clear())
    },
  }
}

/** The library throws for invalid values; a metric must never fail the work that it measures. */
function observe(to: Instruments, observation: (to: Instruments) => void): void {
  try {
    observation(to)
  } catch {
    to.lost.inc()
  }
}

function countUsage({ tokens, cost }: Instruments, model: string, reported: Usage): void {
  const usage = soundUsage(reported)
  tokens.inc({ model, kind: 'input' }, usage.inputTokens)
  tokens.inc({ model, kind: 'cache_read' }, usage.cacheReadTokens)
  tokens.inc({ model, kind: 'cache_write' }, usage.cacheWriteTokens)
  tokens.inc({ model, kind: 'output' }, usage.outputTokens)
  tokens.inc({ model, kind: 'reasoning' }, usage.reasoningTokens)
  if (usage.cost !== undefined) cost.inc({ model }, usage.cost)
}

const codeOf = (error: unknown): string => (error instanceof OxbowError ? error.code : 'error')

/**
 * How the work on a turn ended in this process; undefined when another worker has claimed it. `dwellMs` is empty until
 * the turn has ended.
 */
async function endOf(
  engine: Engine,
  { tenant, user, session: id }: SessionKey,
  turnId: string,
): Promise<{ readonly end: string; readonly dwellMs: DwellTimes } | undefined> {
  const session = engine.session({ tenant, user, session: id })
  try {
    const state = await session.state()
    const { turn, finished } = state
    if (turn?.turnId === turnId) return turn.paused === undefined ? undefined : { end: 'paused', dwellMs: {} }
    const record = finished.findLast((it) => it.turnId === turnId)
    if (record === undefined) return undefined
    const events = await Array.fromAsync(turnEvents((at) => session.events(at), state, turnId))
    const end = events.find((it) => it.seq === record.endedSeq)!
    return { end: end.type.replace('turn.', ''), dwellMs: taskOf(turnId, events)!.dwellMs }
  } catch {
    // The engine is stopping: the turn has not ended.
    return undefined
  }
}

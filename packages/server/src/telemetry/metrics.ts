// Prometheus metrics. The library takes longer to load than the rest of the service, so it is loaded after the first
// requests, or on the first scrape. Earlier observations are kept.
import {
  type Engine,
  type Middleware,
  OxbowError,
  type SessionKey,
  type SessionSummary,
  turnEvents,
  type Usage,
} from '@oxbow/core'
import { type DwellTimes, soundUsage, taskOf } from '@oxbow/core/internal'
import type { ListedModel, Models } from '@oxbow/models'
import type { Registry } from 'prom-client'
import type { Dependency } from '../dependency.ts'
import type { ObservedRequest, RouteInfo } from '../http/route-info.ts'

interface MetricsSource {
  readonly engine: Engine
  readonly openStreams: () => number
  readonly models?: Pick<Models, 'list'> | undefined
  readonly dependencies?: () => readonly Dependency[]
}

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

type Instruments = Awaited<ReturnType<typeof loadInstruments>>

/** The maximum number of sessions that one scrape reads. */
const MAX_COUNTED = 10_000
const BREAKER_STATES = ['closed', 'open', 'half_open'] as const
const OPEN = ['running', 'waiting', 'parked'] as const

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

async function loadInstruments(source: () => MetricsSource | undefined) {
  // A CommonJS module: everything is on the default export.
  const { default: prom } = await import('prom-client')
  const registry: Registry = new prom.Registry()
  const registers = [registry]
  prom.collectDefaultMetrics({ register: registry })
  new prom.Gauge({
    name: 'oxbow_turns_running',
    help: 'Turns that this process works on.',
    registers,
    collect() {
      this.set(source()?.engine.running ?? 0)
    },
  })
  new prom.Gauge({
    name: 'oxbow_turns_waiting_for_identity',
    help: 'Turns of this process that wait because the host system cannot check the rights of their user.',
    registers,
    collect() {
      this.set(source()?.engine.waitingForIdentity ?? 0)
    },
  })
  /** Undefined when the store cannot be read: the other metrics matter most then. */
  const openSessions = async (dueBy?: number): Promise<SessionSummary[] | undefined> => {
    const query = { status: 'open' as const, limit: MAX_COUNTED, ...(dueBy !== undefined && { dueBy }) }
    return source()
      ?.engine.sessions(query)
      .catch(() => undefined)
  }
  new prom.Gauge({
    name: 'oxbow_sessions_open',
    help: 'Sessions in the store with an open turn, by status: running, waiting (for people or callers), parked. Counts at most 10,000.',
    labelNames: ['status'],
    registers,
    async collect() {
      this.reset()
      const all = await openSessions()
      if (all === undefined) return
      for (const status of OPEN) this.set({ status }, all.filter((it) => it.status === status).length)
    },
  })
  new prom.Gauge({
    name: 'oxbow_session_longest_still_seconds',
    help: 'By status: seconds since the last event of the open turn that has been idle for longest.',
    labelNames: ['status'],
    registers,
    async collect() {
      this.reset()
      const all = await openSessions()
      if (all === undefined) return
      const now = Date.now()
      for (const status of OPEN) {
        const still = all.filter((it) => it.status === status).map((it) => now - it.updatedAt)
        this.set({ status }, Math.max(0, ...still) / 1_000)
      }
    },
  })
  new prom.Gauge({
    name: 'oxbow_turns_overdue',
    help: 'Open turns in the store that exceed the time limit of their state, or have an expired approval. Workers end them within seconds; turns that remain here are stuck.',
    registers,
    async collect() {
      this.set((await openSessions(Date.now()))?.length ?? Number.NaN)
    },
  })
  new prom.Gauge({
    name: 'oxbow_streams_open',
    help: 'Open event streams.',
    registers,
    collect() {
      this.set(source()?.openStreams() ?? 0)
    },
  })
  const models = (): readonly ListedModel[] => source()?.models?.list() ?? []
  new prom.Gauge({
    name: 'oxbow_model_breaker',
    help: '1 for the current state of a model’s circuit breaker: closed, open (after repeated failures), half_open.',
    labelNames: ['name', 'model', 'state'],
    registers,
    collect() {
      for (const { name, model, health } of models())
        for (const state of BREAKER_STATES)
          if (health !== undefined) this.set({ name, model, state }, health.breaker === state ? 1 : 0)
    },
  })
  new prom.Gauge({
    name: 'oxbow_dependency_up',
    help: '1 if an external dependency, such as an MCP server, is available; 0 if not.',
    labelNames: ['name', 'required'],
    registers,
    collect() {
      for (const { name, required, ok } of source()?.dependencies?.() ?? [])
        this.set({ name, required: String(required) }, ok ? 1 : 0)
    },
  })
  new prom.Gauge({
    name: 'oxbow_model_requests',
    help: 'Requests of this process at the address of a model: running or queued.',
    labelNames: ['address', 'state'],
    registers,
    collect() {
      // Models at one address share a queue.
      for (const { address, health } of models()) {
        if (address === undefined || health === undefined) continue
        this.set({ address, state: 'running' }, health.running)
        this.set({ address, state: 'waiting' }, health.waiting)
      }
    },
  })
  return {
    registry,
    failedAttempts: new prom.Counter({
      name: 'oxbow_model_failed_attempts_total',
      help: 'Failed requests to a model that another request followed, by error code.',
      labelNames: ['model', 'code'],
      registers,
    }),
    fallbacks: new prom.Counter({
      name: 'oxbow_model_fallbacks_total',
      help: 'Answers that a fallback gave instead of the requested model.',
      labelNames: ['model', 'answered_by'],
      registers,
    }),
    cost: new prom.Counter({
      name: 'oxbow_model_cost_dollars_total',
      help: 'Cost in US dollars of calls with a known price.',
      labelNames: ['model'],
      registers,
    }),
    http: new prom.Histogram({
      name: 'oxbow_http_request_duration_seconds',
      help: 'Seconds from a request to the end of its answer; for streams to their last frame.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.005, 0.02, 0.1, 0.5, 1, 5, 20, 60, 300],
      registers,
    }),
    turns: new prom.Counter({
      name: 'oxbow_turns_total',
      help: 'Turns by outcome: finished, failed, cancelled, paused.',
      labelNames: ['agent', 'end'],
      registers,
    }),
    dwell: new prom.Histogram({
      name: 'oxbow_turn_state_seconds',
      help: 'Seconds that ended turns spent in each state.',
      labelNames: ['state'],
      buckets: [0.1, 1, 10, 60, 600, 3_600, 86_400, 604_800],
      registers,
    }),
    modelCalls: new prom.Histogram({
      name: 'oxbow_model_call_duration_seconds',
      help: 'Model calls by finish reason or error code.',
      labelNames: ['model', 'finish'],
      buckets: [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
      registers,
    }),
    tokens: new prom.Counter({
      name: 'oxbow_model_tokens_total',
      help: 'Tokens by kind. Reasoning is part of output.',
      labelNames: ['model', 'kind'],
      registers,
    }),
    toolCalls: new prom.Counter({
      name: 'oxbow_tool_calls_total',
      help: 'Tool calls by status.',
      labelNames: ['tool', 'status'],
      registers,
    }),
    lost: new prom.Counter({
      name: 'oxbow_metrics_lost_total',
      help: 'Observations that could not be recorded.',
      registers,
    }),
    repairs: new prom.Counter({
      name: 'oxbow_stream_repairs_total',
      help: 'How often a slow reader missed fragments and got them in one piece.',
      registers,
    }),
  }
}

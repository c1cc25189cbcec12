// The instruments behind /metrics. Gauges read their values when they are scraped.
import type { Engine, SessionSummary } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import type { ListedModel, Models } from '@oxbow/models'
import type { Gauge } from 'prom-client'
import type { Dependency } from '../dependency.ts'

export interface MetricsSource {
  readonly engine: Engine
  readonly openStreams: () => number
  readonly models?: Pick<Models, 'list'> | undefined
  readonly dependencies?: () => readonly Dependency[]
}

export type Instruments = Awaited<ReturnType<typeof loadInstruments>>

/** The maximum number of sessions that one scrape reads. */
const MAX_COUNTED = 10_000
const BREAKER_STATES = ['closed', 'open', 'half_open'] as const
const OPEN = ['running', 'waiting', 'parked'] as const

export async function loadInstruments(source: () => MetricsSource | undefined) {
  // A CommonJS module: everything is on the default export.
  const { default: prom } = await import('prom-client')
  const registry = new prom.Registry()
  const registers = [registry]
  prom.collectDefaultMetrics({ register: registry })

  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new prom.Counter({ name: `oxbow_${name}`, help, labelNames, registers })
  const histogram = <L extends string>(name: string, help: string, buckets: number[], ...labelNames: L[]) =>
    new prom.Histogram({ name: `oxbow_${name}`, help, buckets, labelNames, registers })
  /** Labels that were not set during a scrape are not reported. */
  const gauge = <L extends string>(
    name: string,
    help: string,
    labelNames: L[],
    read: (to: Gauge<L>) => void | Promise<void>,
  ) =>
    new prom.Gauge({
      name: `oxbow_${name}`,
      help,
      labelNames,
      registers,
      collect() {
        if (labelNames.length > 0) this.reset()
        return read(this)
      },
    })

  /** Undefined when the store cannot be read: the other metrics matter most then. */
  const openSessions = async (dueBy?: number): Promise<SessionSummary[] | undefined> =>
    source()
      ?.engine.sessions({ status: 'open', limit: MAX_COUNTED, ...defined({ dueBy }) })
      .catch(() => undefined)
  const models = (): readonly ListedModel[] => source()?.models?.list() ?? []

  gauge('turns_running', 'Turns that this process works on.', [], (to) => to.set(source()?.engine.running ?? 0))
  gauge(
    'turns_waiting_for_identity',
    'Turns of this process that wait because the host system cannot check the rights of their user.',
    [],
    (to) => to.set(source()?.engine.waitingForIdentity ?? 0),
  )
  gauge(
    'sessions_open',
    'Sessions in the store with an open turn, by status: running, waiting (for people or callers), parked. Counts at most 10,000.',
    ['status'],
    async (to) => {
      const all = await openSessions()
      if (all === undefined) return
      for (const status of OPEN) to.set({ status }, all.filter((it) => it.status === status).length)
    },
  )
  gauge(
    'session_longest_still_seconds',
    'By status: seconds since the last event of the open turn that has been idle for longest.',
    ['status'],
    async (to) => {
      const all = await openSessions()
      if (all === undefined) return
      const now = Date.now()
      for (const status of OPEN) {
        const still = all.filter((it) => it.status === status).map((it) => now - it.updatedAt)
        to.set({ status }, Math.max(0, ...still) / 1_000)
      }
    },
  )
  gauge(
    'turns_overdue',
    'Open turns in the store that exceed the time limit of their state, or have an expired approval. Workers end them within seconds; turns that remain here are stuck.',
    [],
    async (to) => to.set((await openSessions(Date.now()))?.length ?? Number.NaN),
  )
  gauge('takeovers_total', 'Turns that this process has claimed because their worker was gone.', [], (to) =>
    to.set(source()?.engine.counts.takeovers ?? 0),
  )
  gauge(
    'append_conflicts_total',
    'Appends that another writer of the session was ahead of. They are repeated; many of them mean that two processes work on the same sessions.',
    [],
    (to) => to.set(source()?.engine.counts.conflicts ?? 0),
  )
  const queueDepth = async () =>
    source()
      ?.engine.backend.queue.depth()
      .catch(() => undefined)
  gauge('queue_due', 'Jobs in the queue that are due and wait for a process with room.', [], async (to) =>
    to.set((await queueDepth())?.due ?? Number.NaN),
  )
  gauge('queue_failed', 'Jobs in the queue that failed for good.', [], async (to) =>
    to.set((await queueDepth())?.failed ?? Number.NaN),
  )
  gauge('queue_oldest_seconds', 'How long the oldest job in the queue has been due.', [], async (to) =>
    to.set(((await queueDepth())?.oldestMs ?? Number.NaN) / 1_000),
  )
  gauge(
    'bus_lag_seconds',
    'How long the last message of this process to itself took on the bus; +Inf while the bus is away, NaN where messages stay in the process.',
    [],
    (to) => to.set((source()?.engine.backend.bus.lagMs() ?? Number.NaN) / 1_000),
  )
  gauge('streams_open', 'Open event streams.', [], (to) => to.set(source()?.openStreams() ?? 0))
  gauge(
    'model_breaker',
    '1 for the current state of a model’s circuit breaker: closed, open (after repeated failures), half_open.',
    ['name', 'model', 'state'],
    (to) => {
      for (const { name, model, health } of models())
        for (const state of BREAKER_STATES)
          if (health !== undefined) to.set({ name, model, state }, health.breaker === state ? 1 : 0)
    },
  )
  gauge(
    'dependency_up',
    '1 if an external dependency, such as an MCP server, is available; 0 if not.',
    ['name', 'required'],
    (to) => {
      for (const { name, required, ok } of source()?.dependencies?.() ?? [])
        to.set({ name, required: String(required) }, ok ? 1 : 0)
    },
  )
  gauge(
    'model_requests',
    'Requests of this process at the address of a model: running or queued.',
    ['address', 'state'],
    (to) => {
      // Models at one address share a queue.
      for (const { address, health } of models()) {
        if (address === undefined || health === undefined) continue
        to.set({ address, state: 'running' }, health.running)
        to.set({ address, state: 'waiting' }, health.waiting)
      }
    },
  )
  return {
    registry,
    failedAttempts: counter(
      'model_failed_attempts_total',
      'Failed requests to a model that another request followed, by error code.',
      'model',
      'code',
    ),
    fallbacks: counter(
      'model_fallbacks_total',
      'Answers that a fallback gave instead of the requested model.',
      'model',
      'answered_by',
    ),
    cost: counter('model_cost_dollars_total', 'Cost in US dollars of calls with a known price.', 'model'),
    http: histogram(
      'http_request_duration_seconds',
      'Seconds from a request to the end of its answer; for streams to their last frame.',
      [0.005, 0.02, 0.1, 0.5, 1, 5, 20, 60, 300],
      'method',
      'route',
      'status',
    ),
    turns: counter('turns_total', 'Turns by outcome: finished, failed, cancelled, paused.', 'agent', 'end'),
    dwell: histogram(
      'turn_state_seconds',
      'Seconds that ended turns spent in each state.',
      [0.1, 1, 10, 60, 600, 3_600, 86_400, 604_800],
      'state',
    ),
    modelCalls: histogram(
      'model_call_duration_seconds',
      'Model calls by finish reason or error code.',
      [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
      'model',
      'finish',
    ),
    tokens: counter('model_tokens_total', 'Tokens by kind. Reasoning is part of output.', 'model', 'kind'),
    toolCalls: counter('tool_calls_total', 'Tool calls by status.', 'tool', 'status'),
    lost: counter('metrics_lost_total', 'Observations that could not be recorded.'),
    repairs: counter('stream_repairs_total', 'How often a slow reader missed fragments and got them in one piece.'),
  }
}

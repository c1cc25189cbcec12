// The engine of one process: which sessions live here, who works on them, and what is resumed after a crash.
import { randomUUID } from 'node:crypto'
import type { Agent } from '../agents/agent-type.ts'
import { checkFields, type FieldCheck, type Fields, text } from '../checks/fields.ts'
import type { EngineInternals } from '../engine-internals.ts'
import { OxbowError } from '../errors.ts'
import type { Principal } from '../events/types.ts'
import { sessionKey } from '../journal/ids.ts'
import { hearFragments, sendFragments } from '../journal/remote-deltas.ts'
import { type FaultPoint, SessionLog } from '../journal/session-log.ts'
import type { Backend, SessionSummary } from '../ports.ts'
import { checkOption, ENGINE, ENGINE_HINTS, QUERY, SESSION, SESSION_HINTS } from '../session/option-fields.ts'
import { openSession, type Session } from '../session/session.ts'
import { holderCheck } from '../turn/holder.ts'
import { turnPlaces } from '../turn/places.ts'
import { endWaits, hasWaits } from '../turn/waits.ts'
import { knownAgents } from './known-agents.ts'
import { loadedSessions } from './loaded-sessions.ts'
import { guarded, type OnError, reportTo, toStandardError } from './report.ts'
import { sweepOf } from './sweep.ts'
import { turnQueue } from './turn-queue.ts'
import { type RunningTurn, turnWorkers } from './turn-workers.ts'

export interface EngineOptions {
  readonly backend: Backend
  /** Every agent that sessions in this store may name. The first is the default. */
  readonly agents: readonly Agent[]
  /**
   * Receives errors that have no caller, with the reference that end users are shown. Default: those that hold
   * no words for the caller, such as what a tool throws, go to standard error.
   */
  readonly onError?: OnError
  /**
   * Returns the current rights of a principal, or undefined when the principal may no longer act: the turn then fails
   * with `principal_revoked`. Called before a call when the last answer is older than `principalMaxAgeMs`, when a turn
   * continues that has waited (for its place, a person or a result), and when an approval is used, also for the approver.
   * Default: the principal is the same for the whole turn. When it rejects with a retryable OxbowError, the turn waits
   * and asks again.
   */
  readonly currentPrincipal?: (principal: Principal) => Promise<Principal | undefined>
  /** The maximum age, in milliseconds, of an answer of `currentPrincipal` when a call starts. Default 5,000. */
  readonly principalMaxAgeMs?: number
  /** Called at named places of the engine; used to kill the process there in tests. */
  readonly faultPoint?: FaultPoint
  /** Sessions without readers or work that stay in memory. Default 1,000. */
  readonly maxIdleSessions?: number
  /**
   * `api`: accepts inputs and works on no turn; other processes on the same back end take its turns from the queue.
   * `worker` takes turns, as `all` does; the service answers no requests in that role. Default `all`.
   */
  readonly role?: 'all' | 'api' | 'worker'
  /**
   * Turns that this process works on at once, those of sub-agents not counted. Beyond it inputs are accepted and wait
   * in the queue for whichever process has room. Default: no limit.
   */
  readonly maxTurns?: number
}

export interface Engine {
  readonly backend: Backend
  readonly agents: ReadonlyMap<string, Agent>
  /** A handle; nothing is read or written before it is used. @throws OxbowError `invalid_id`, `unknown_agent` */
  session(key: { tenant?: string; user: string; session?: string }, options?: { agent?: string }): Session
  sessions(query: Parameters<Backend['journal']['list']>[0]): Promise<SessionSummary[]>
  /**
   * Resumes open turns whose worker is gone, and ends approvals whose time is over. Runs at `start` and every few seconds
   * after it. Returns how many turns it has resumed.
   */
  recover(): Promise<number>
  /** Checks the tools' schemas, announces this worker, recovers, and keeps looking for turns whose worker has died. */
  start(): Promise<void>
  /**
   * Lets running turns reach their next append, for at most `graceMs` (default 10,000), then leaves them as they are:
   * the next start resumes them. Does not close the back end.
   */
  stop(graceMs?: number): Promise<void>
  /** Turns that are being worked on in this process. */
  readonly running: number
  /** Those of them that are not turns of sub-agents. */
  readonly runningTurns: readonly RunningTurn[]
  /** Turns that wait because the host currently cannot resolve their principal. */
  readonly waitingForIdentity: number
  /** Since this engine was created. */
  readonly counts: EngineCounts
  /**
   * Tools that ignored their signal and still run; while there are any, the process should end before its store is
   * closed.
   */
  readonly leftBehind: number
}

export interface EngineCounts {
  /** Turns that this process has claimed because their worker was gone. */
  readonly takeovers: number
  /** Appends that another writer of the session was ahead of; they are repeated. */
  readonly conflicts: number
}

/** It may be infinite. */
const duration: FieldCheck = (it, path) =>
  typeof it === 'number' && it >= 0 ? undefined : `${path} must be milliseconds, 0 or above`

/**
 * Makes an engine: it runs the turns of sessions that are stored in `backend`. Nothing runs before a session is used,
 * or before `start()`, which also resumes the turns of workers that have died. Call `stop()` before you close the back
 * end.
 *
 * @param options the back end, at least one agent, and what the engine asks the host
 * @returns the engine; `engine.session({ user })` is the way in
 * @throws OxbowError `engine_invalid`, naming the field; `agent_invalid` for two agents of one name
 * @example
 * const engine = createEngine({ backend: memory(), agents: [helper] })
 * const { text } = await engine.session({ user: 'ann' }).run('What is the capital of France?')
 */
export function createEngine(options: EngineOptions): Engine {
  checkFields(
    options,
    ENGINE satisfies Fields<EngineOptions>,
    (what) => new OxbowError('engine_invalid', `createEngine(): ${what}`),
    ENGINE_HINTS,
  )
  const { backend, faultPoint, maxIdleSessions = 1_000, role = 'all' } = options
  const onError = guarded(options.onError ?? toStandardError)
  if (backend?.journal === undefined)
    throw new OxbowError(
      'engine_invalid',
      "createEngine() needs a backend, for example memory() or sqlite({ path: '.oxbow/oxbow.db' })",
    )
  if (!(options.agents?.length > 0)) throw new OxbowError('engine_invalid', 'createEngine() needs at least one agent')
  const agents = knownAgents(options.agents)
  const mayWork = role !== 'api'
  const worker = `worker_${randomUUID()}`
  const reportOf = reportTo(onError)
  /** Reports what belongs to no session. */
  const report = (error: unknown): void => void onError(error, { reference: randomUUID() })
  const limitsOf = (agent: string) => agents.find(agent)?.limits
  const isHeld = holderCheck(backend.workers, worker, (log, turnId, error) => reportOf(log, turnId)(error))
  const places = turnPlaces(options.maxTurns ?? Number.POSITIVE_INFINITY)
  let announced: Promise<{ release(): Promise<void> }> | undefined
  let stopping = false

  const counts = { takeovers: 0, conflicts: 0 }

  const sessions = loadedSessions(
    (key) =>
      new SessionLog(key, backend.journal, {
        now: Date.now,
        faultPoint,
        secretsOf: (agent, tool) => agents.find(agent)?.tools.get(tool)?.secrets,
        limitsOf,
        hear: (log) => hearFragments(log, backend.bus, worker),
        onConflict: () => {
          counts.conflicts += 1
        },
      }),
    maxIdleSessions,
    (log) => workers.isBusy(log),
    reportOf,
  )

  const internals: EngineInternals = {
    worker,
    files: backend.files,
    journal: backend.journal,
    faultPoint,
    shown: new Set(),
    arriving: new Map(),
    using: sessions.using,
    withCurrentLog: sessions.withCurrentLog,
    agent: agents.get,
    announce() {
      announced ??= backend.workers.announce(worker).catch((error: unknown) => {
        // The next one tries again: the store may have been busy.
        announced = undefined
        throw error
      })
      sweep.watchAwaited()
      return announced
    },
    enter: (delegated) =>
      !mayWork || stopping ? undefined : delegated ? () => {} : places.free ? places.enter() : undefined,
    ensureWorker: (log, place) => workers.ensureWorker(log, place),
    give: ({ key, agent, delegation, task, ...given }) =>
      openSession(internals, key, agent, delegation).submit(task, { ...given, surface: 'agent' }),
    get stopping() {
      return stopping
    },
  }

  const queue = turnQueue(
    backend.queue,
    places,
    mayWork,
    (key) =>
      sessions.withCurrentLog(key, async (log) => {
        if (hasWaits(log.state.turn)) await log.append((draft) => endWaits(draft, Date.now()))
        if (workers.needsWorker(log) && !(await isHeld(log))) workers.ensureWorker(log, {})
      }),
    reportOf,
  )

  const workers = turnWorkers({
    engine: internals,
    agents,
    places,
    isHeld,
    handOn: queue.handOn,
    wakeAt: queue.wakeAt,
    onTakeover: () => {
      counts.takeovers += 1
    },
    sendFragments: (log) => sendFragments(log, backend.bus, worker),
    onSuspectDone: (log) => void recover().catch(reportOf(log)),
    reportOf,
    currentPrincipal: options.currentPrincipal ?? (async (principal) => principal),
    principalMaxAgeMs: options.principalMaxAgeMs ?? 5_000,
  })

  const sweep = sweepOf({
    engine: internals,
    sessions,
    workers,
    alive: (it) => backend.workers.alive(it),
    isHeld,
    limitsOf,
    reportOf,
    onError: report,
  })

  const recover = async (): Promise<number> => (mayWork ? sweep.recover() : 0)

  return {
    backend,
    agents: agents.named,
    session(key, choice = {}) {
      checkOption('session()', key, SESSION, SESSION_HINTS)
      checkOption('session(), the second argument', choice, { agent: text })
      const { agent } = choice
      const name = agent ?? options.agents[0]!.name
      agents.get(name)
      const { tenant, user, session = randomUUID() } = key
      return openSession(internals, sessionKey({ tenant, user, session }), name)
    },
    sessions(query) {
      checkOption('sessions()', query, QUERY)
      return backend.journal.list(query)
    },
    recover,
    async start() {
      await internals.announce()
      // A store with damage still serves the sessions that are whole.
      await Promise.all([agents.compileSchemas(), recover(), backend.check().catch(report)])
      if (!mayWork) return
      queue.start()
      sweep.start()
    },
    async stop(graceMs = 10_000) {
      checkOption('stop()', { graceMs }, { graceMs: duration })
      stopping = true
      sweep.stop()
      places.close()
      await Promise.all([queue.stop(), workers.stop(graceMs)])
      const { leftBehind } = workers
      if (leftBehind.size === 0) await Promise.all(sessions.logs().map(workers.yieldTurn))
      for (const log of sessions.logs()) {
        log.shutDown(
          new OxbowError('shutting_down', 'The service is stopping; the turn resumes after its restart.', {
            retryable: true,
          }),
        )
      }
      const announcement = await announced?.catch(() => undefined)
      // A tool that still runs may still act. Until it ends nobody may take this worker for dead and ask what became of
      // it.
      // A lease that cannot be released ends by itself.
      if (leftBehind.size === 0) await announcement?.release().catch(report)
      else void Promise.allSettled(leftBehind).then(() => announcement?.release())
    },
    counts,
    get leftBehind() {
      return workers.leftBehind.size
    },
    get waitingForIdentity() {
      return workers.runs().filter((it) => it.waitsForIdentity).length
    },
    get runningTurns() {
      return workers.runningTurns()
    },
    get running() {
      return workers.runs().length
    },
  }
}

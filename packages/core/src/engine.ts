// The engine of one process: which sessions live here, who works on them, and what is picked up after a crash.
import { randomUUID } from 'node:crypto'
import type { Agent } from './agents/agent-type.ts'
import { checkFields, type Fields } from './checks/fields.ts'
import { validatorFor } from './checks/json-schema.ts'
import { isWanted, settleAbove, settleDebts, userOf } from './children/debts.ts'
import type { EngineInternals } from './engine-internals.ts'
import { OxbowError } from './errors.ts'
import type { Principal } from './events/types.ts'
import { nameOfKey, sessionKey } from './journal/ids.ts'
import { hearFragments, sendFragments } from './journal/remote-deltas.ts'
import { type FaultPoint, SessionLog } from './journal/session-log.ts'
import { workOnTurn } from './perform/work.ts'
import type { Backend, Job, SessionKey, SessionQuery, SessionSummary } from './ports.ts'
import { checkOption, ENGINE, QUERY, SESSION } from './session/option-fields.ts'
import { openSession, type Session } from './session/session.ts'
import type { SecretsOf } from './state/audit.ts'
import { openApprovals, type SessionState } from './state/state.ts'
import { holderCheck } from './turn/holder.ts'
import { turnPlaces } from './turn/places.ts'
import { ClaimLost, type TurnRun, turnRun } from './turn/turn-run.ts'
import { endIfStuck, type Watch } from './turn/watchdog.ts'

export interface EngineOptions {
  readonly backend: Backend
  /** Every agent that sessions in this store may name. The first is the default. */
  readonly agents: readonly Agent[]
  /**
   * Receives errors that have no caller, with the reference that end users are shown. Default: those that hold
   * no words for the caller, such as what a tool throws, go to standard error.
   */
  readonly onError?: (error: unknown, context: { reference: string; session?: SessionKey; turnId?: string }) => void
  /**
   * Says who a principal is now. Called before a call when the last answer is older than `principalMaxAgeMs`, when a
   * turn continues that has waited (for its place, a person or a result), and when an approval is used, also for the
   * approver. Undefined: the principal may no longer act, and the turn fails with `principal_revoked`. Default: the
   * principal is the same for the whole turn. When it rejects with a retryable OxbowError, the turn waits and asks
   * again.
   */
  readonly currentPrincipal?: (principal: Principal) => Promise<Principal | undefined>
  /** How old, in milliseconds, what `currentPrincipal` said may be when a call starts. Default 5,000. */
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
   * Takes up open turns whose worker is gone, and ends approvals whose time is over. Runs at `start` and every few
   * seconds after it. Returns how many.
   */
  recover(): Promise<number>
  /** Checks the tools' schemas, announces this worker, recovers, and keeps looking for turns whose worker has died. */
  start(): Promise<void>
  /**
   * Lets running turns reach their next append, for at most `graceMs` (default 10,000), then leaves them as they are:
   * the next start takes them up. Does not close the back end.
   */
  stop(graceMs?: number): Promise<void>
  /** Turns that are being worked on in this process. */
  readonly running: number
  /** Cancelled turns only. */
  readonly runningTurns: readonly RunningTurn[]
  /** Turns that wait because the host currently cannot resolve their principal. */
  readonly waitingForIdentity: number
  /**
   * Tools that ignored their signal and still run; while there are any, the process should end before its store is
   * closed.
   */
  readonly leftBehind: number
}

export interface RunningTurn {
  readonly key: SessionKey
  readonly turnId: string
  readonly principal: Principal
}

interface Entry {
  readonly log: SessionLog
  readonly loaded: Promise<void>
  /** Operations that hold on to the log. */
  users: number
}

interface TurnWork {
  run: TurnRun | undefined
  done: Promise<void>
  /** Something came while this work was going on. */
  again: boolean
}

/** With a lease of five seconds, the turns of a stopped process are claimed by another within ten. */
const SWEEP_MS = 2_500
/** Jobs of the queue that are looked at together. */
const TAKING = 4
/** Turns that are worked on at once while a crash is being recovered from. */
const MAX_RECOVERING = 100

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
  )
  const { backend, faultPoint, onError = toStandardError, maxIdleSessions = 1_000, role = 'all' } = options
  const mayWork = role !== 'api'
  if (backend?.journal === undefined)
    throw new OxbowError(
      'engine_invalid',
      "createEngine() needs a backend, for example memory() or sqlite({ path: '.oxbow/oxbow.db' })",
    )
  if (!(options.agents?.length > 0)) throw new OxbowError('engine_invalid', 'createEngine() needs at least one agent')
  const agents = new Map(options.agents.map((it) => [it.name, it]))
  if (agents.size !== options.agents.length) throw new OxbowError('agent_invalid', 'two agents have the same name')
  const known = withChildren(options.agents)
  const worker = `worker_${randomUUID()}`
  const entries = new Map<string, Entry>()
  /** Agents that sessions in this store name and this engine does not have; each is reported once. */
  const strangers = new Set<string>()
  /**
   * Overdue sessions that only another engine can end, by when they last changed: not to be read again in each sweep.
   */
  const passedOver = new Map<string, number>()
  const working = new Map<SessionLog, TurnWork>()
  const places = turnPlaces(options.maxTurns ?? Number.POSITIVE_INFINITY)
  let taker: { stop(): Promise<void> } | undefined
  let announced: Promise<{ release(): Promise<void> }> | undefined
  let sweep: NodeJS.Timeout | undefined
  /** Finds turns awaited in this process whose worker in another process has died. */
  let lookAround: NodeJS.Timeout | undefined
  /** Tools that were cancelled but still run. */
  const leftBehind = new Set<Promise<unknown>>()
  let stopping = false

  const announce = () => {
    announced ??= backend.workers.announce(worker).catch((error: unknown) => {
      // The next one tries again: the store may have been busy.
      announced = undefined
      throw error
    })
    lookAround ??= setInterval(() => {
      for (const { log } of entries.values()) if (log.watched && mayTakeUp(log)) ensureWorker(log)
    }, SWEEP_MS).unref()
    return announced
  }

  /** Whether a worker may look after this session now. A turn that may have killed its process is retried alone. */
  const isOpen = (log: SessionLog): boolean =>
    !working.has(log) &&
    needsWork(log.state) &&
    !(isSuspect(log.state) && [...working.keys()].some((it) => isSuspect(it.state)))

  const mayTakeUp = (log: SessionLog): boolean => isOpen(log) && (places.free || isDelegated(log.state))

  const secretsOf: SecretsOf = (agent, tool) => known.get(agent)?.tools.get(tool)?.secrets

  const limitsOf = (agent: string) => known.get(agent)?.limits
  let knownDrift = clockDrift()
  const watch: Watch = {
    worker,
    startedAt: Date.now(),
    alive: (it) => backend.workers.alive(it),
    run: (log) => working.get(log)?.run,
    report: (log, turnId, error) => report(log, turnId)(error),
  }

  const isHeld = holderCheck(backend.workers, worker, watch.report)

  /** The session's log in memory, being loaded if need be; most recently used last. */
  function entryOf(key: SessionKey): Entry {
    const name = nameOfKey(key)
    let entry = entries.get(name)
    if (entry === undefined) {
      const log = new SessionLog(key, backend.journal, {
        now: Date.now,
        faultPoint,
        secretsOf,
        limitsOf,
        hear: (it) => hearFragments(it, backend.bus, worker),
      })
      entry = { log, loaded: log.load(), users: 0 }
      entry.loaded.catch(() => entries.delete(name))
      void entry.loaded.then(
        () => log.snapshotIfDue().catch(report(log)),
        () => {},
      )
    }
    entries.delete(name)
    entries.set(name, entry)
    return entry
  }

  /** While `work` runs, the log is the only one of its session in this process. */
  async function using<T>(key: SessionKey, work: (log: SessionLog) => T | Promise<T>): Promise<T> {
    const entry = entryOf(key)
    entry.users += 1
    try {
      await entry.loaded
      return await work(entry.log)
    } finally {
      entry.users -= 1
      if (entries.size > maxIdleSessions) evict()
    }
  }

  const withCurrentLog: EngineInternals['withCurrentLog'] = (key, work) =>
    using(key, async (log) => {
      await log.catchUp()
      return work(log)
    })

  function evict(): void {
    for (const [name, { log, users }] of entries) {
      if (entries.size <= maxIdleSessions) return
      if (users === 0 && log.idle && !working.has(log)) entries.delete(name)
    }
  }

  const report = (log: SessionLog, turnId?: string) => (error: unknown) => {
    const reference = randomUUID()
    onError(error, { reference, session: log.key, ...(turnId !== undefined && { turnId }) })
    return reference
  }

  function ensureWorker(log: SessionLog, place?: { epoch?: number }): void {
    const busy = working.get(log)
    // What has come may be too late for the work that is ending: look once more after it.
    if (busy !== undefined) busy.again = true
    if (busy !== undefined) return
    const leave = place === undefined ? internals.enter(isDelegated(log.state)) : places.enter()
    if (leave === undefined) return void handOn(log, mayWork ? 'no place was free' : 'accepted')
    log.retain()
    const stopSending = sendFragments(log, backend.bus, worker)
    const entry: TurnWork = { again: false, run: undefined, done: Promise.resolve() }
    working.set(log, entry)
    const suspect = isSuspect(log.state)
    entry.done = work(log, entry, place?.epoch)
      .catch((error: unknown) => {
        report(log, log.state.turn?.turnId)(error)
        log.fail(error)
      })
      .finally(() => {
        working.delete(log)
        stopSending()
        log.release()
        leave()
        if (entry.again) ensureWorker(log)
        if (suspect && !stopping) recover().catch((error: unknown) => report(log)(error))
      })
  }

  /** Leaves an unclaimed turn to whichever process takes it from the queue. The sweep finds it if that fails. */
  async function handOn(log: SessionLog, reason: string): Promise<void> {
    if (!needsWork(log.state) || log.state.turn?.claim?.worker !== undefined) return
    if (mayWork) takeTurns()
    await backend.queue.enqueue({ key: log.key, reason }).catch(report(log))
  }

  function takeTurns(): void {
    if (!stopping) taker ??= backend.queue.work(take, TAKING)
  }

  /** A job is done once its turn has begun: from then on its lease shows whether somebody works on it. */
  async function take(job: Job): Promise<void> {
    if (stopping || !places.free) {
      await backend.queue.enqueue(job)
      // Another process may have room; this one takes no job before it has.
      return places.whenFree()
    }
    const leave = places.enter()
    try {
      await withCurrentLog(job.key, async (log) => {
        if (isOpen(log) && !(await isHeld(log))) ensureWorker(log, {})
      })
    } finally {
      leave()
    }
  }

  /** Works through the open turns of a session. */
  async function work(log: SessionLog, entry: TurnWork, claimed: number | undefined): Promise<void> {
    let epoch = claimed
    for (;;) {
      entry.again = false
      const { turn } = log.state
      if (stopping || turn === undefined || !needsWork(log.state)) return
      const agent = known.get(log.state.agent)
      // Another engine on this store may have it: what cannot be run here is not claimed here.
      if (agent === undefined) {
        const error = unknownAgent(log.state.agent)
        if (!strangers.has(log.state.agent)) report(log, turn.turnId)(error)
        strangers.add(log.state.agent)
        return
      }
      epoch ??= await claim(log)
      if (epoch === undefined) return
      if (!(await isWanted(internals, log.key, turn))) await interruptUnwanted(log, turn.turnId)
      else await settleAbove(internals, log.key, turn)
      let run: TurnRun
      try {
        run = turnRun({
          log,
          agent,
          files: backend.files,
          engine: internals,
          turnId: turn.turnId,
          worker,
          epoch,
          faultPoint,
          report: report(log, turn.turnId),
          leaveBehind: (work) => {
            leftBehind.add(work)
            void work.finally(() => leftBehind.delete(work))
          },
          currentPrincipal: options.currentPrincipal ?? (async (principal) => principal),
          principalMaxAgeMs: options.principalMaxAgeMs ?? 5_000,
        })
      } catch (error) {
        if (error instanceof ClaimLost) return
        throw error
      }
      entry.run = run
      await workOnTurn(run, agent)
      epoch = undefined
      await settleDebts(internals, log).catch((error: unknown) => report(log)(error))
      await log.snapshotIfDue().catch((error: unknown) => report(log)(error))
    }
  }

  /** Its parent has stopped or never started it: its result is not awaited. */
  const interruptUnwanted = (log: SessionLog, turnId: string): Promise<void> =>
    log.append((draft) => {
      const { turn } = draft.state
      if (turn?.turnId !== turnId || turn.interrupt !== undefined) return
      draft.add({ type: 'interrupt.requested', turnId, principal: userOf(log.key), reason: 'its parent was stopped' })
    })

  /** The epoch of our claim, or undefined when a living worker holds the turn or was quicker. */
  async function claim(log: SessionLog): Promise<number | undefined> {
    await announce()
    const { turn } = log.state
    if (await isHeld(log)) return undefined
    const seen = turn?.claim?.epoch ?? 0
    return log.append((draft) => {
      const now = draft.state.turn
      if (now === undefined || now.turnId !== turn?.turnId || (now.claim?.epoch ?? 0) !== seen) return undefined
      draft.add({ type: 'turn.claimed', turnId: now.turnId, worker, epoch: seen + 1 })
      return seen + 1
    })
  }

  /**
   * Releases a turn of this worker for another one. A release that cannot be stored is found when the worker is
   * gone.
   */
  async function yieldTurn(log: SessionLog): Promise<void> {
    const mine = ({ turn }: SessionState) => turn?.claim?.worker === worker && turn.paused === undefined
    if (!mine(log.state)) return
    await log
      .append((draft) => {
        const { turn } = draft.state
        if (turn === undefined || !mine(draft.state)) return
        draft.add({ type: 'turn.yielded', turnId: turn.turnId, worker, epoch: turn.claim!.epoch })
      })
      .catch((error: unknown) => report(log)(error))
    await handOn(log, 'handed over')
  }

  const internals: EngineInternals = {
    worker,
    announce,
    files: backend.files,
    journal: backend.journal,
    faultPoint,
    shown: new Set(),
    arriving: new Map(),
    give: ({ key, agent, delegation, task, ...options }) =>
      openSession(internals, key, agent, delegation).submit(task, { ...options, surface: 'agent' }),
    using,
    withCurrentLog,
    ensureWorker,
    enter: (delegated) =>
      !mayWork || stopping ? undefined : delegated ? () => {} : places.free ? places.enter() : undefined,
    agent(name) {
      const found = known.get(name)
      if (found === undefined) throw unknownAgent(name)
      return found
    },
    get stopping() {
      return stopping
    },
  }
  const unknownAgent = (name: string) =>
    new OxbowError('unknown_agent', `unknown agent ${JSON.stringify(name)}. Agents: ${[...agents.keys()].join(', ')}`)

  async function* sessionsWhere(query: Pick<SessionQuery, 'status' | 'dueBy'>): AsyncGenerator<SessionSummary> {
    let before: number | undefined
    for (;;) {
      const page = await backend.journal.list({ ...query, ...(before !== undefined && { before }) })
      yield* page
      const last = page.at(-1)
      if (last === undefined) return
      before = last.updatedAt
    }
  }

  /** Expires undecided approvals, and ends turns that have been in one state for too long. */
  async function expire(): Promise<void> {
    const now = Date.now()
    // After a clock jump the time in a state is unknown: its limit starts again.
    const drift = clockDrift()
    if (Math.abs(drift - knownDrift) > CLOCK_JUMP_MS) watch.startedAt = now
    knownDrift = drift
    for await (const { key, updatedAt } of sessionsWhere({ dueBy: now })) {
      const name = nameOfKey(key)
      if (stopping) return
      if (passedOver.get(name) === updatedAt) continue
      await withCurrentLog(key, async (log) => {
        await log.append((draft) => {
          for (const { turnId, approvalId, expiresAt } of openApprovals(draft.state.turn))
            if (expiresAt <= now) draft.add({ type: 'approval.resolved', turnId, approvalId, verdict: 'expired' })
        })
        const limits = limitsOf(log.state.agent)
        if (limits !== undefined) await endIfStuck(watch, log, limits, now)
        else if (openApprovals(log.state.turn).length === 0) passedOver.set(name, updatedAt)
        await settleDebts(internals, log)
        ensureWorker(log)
      }).catch((error: unknown) => onError(error, { reference: randomUUID(), session: key }))
    }
  }

  async function recover(): Promise<number> {
    if (!mayWork) return 0
    await expire()
    let taken = 0
    for await (const { key } of sessionsWhere({ status: 'running' })) {
      if (stopping) break
      // The next sweep resumes the rest: a crash must not be followed by a load spike.
      if (working.size >= MAX_RECOVERING) break
      const here = entries.get(nameOfKey(key))
      if (here !== undefined && working.has(here.log)) continue
      try {
        taken += await withCurrentLog(key, async (log) => {
          if (!mayTakeUp(log) || (await isHeld(log))) return 0
          ensureWorker(log)
          return 1
        })
      } catch (error) {
        // One unreadable session must not keep the others from going on.
        onError(error, { reference: randomUUID(), session: key })
      }
    }
    return taken
  }

  return {
    backend,
    agents,
    session(key, { agent, ...others } = {}) {
      checkOption('session()', { ...key, ...others }, SESSION)
      const name = agent ?? options.agents[0]!.name
      internals.agent(name)
      const { tenant, user, session = randomUUID() } = key
      return openSession(internals, sessionKey({ tenant, user, session }), name)
    },
    sessions(query) {
      checkOption('sessions()', query, QUERY)
      return backend.journal.list(query)
    },
    recover,
    async start() {
      await announce()
      // A store with damage still serves the sessions that are whole.
      const checked = backend.check().catch((error: unknown) => onError(error, { reference: randomUUID() }))
      await Promise.all([compileSchemas(known.values()), recover(), checked])
      if (!mayWork) return
      takeTurns()
      sweep = setInterval(() => {
        recover().catch((error: unknown) => onError(error, { reference: randomUUID() }))
      }, SWEEP_MS)
      sweep.unref()
    },
    async stop(graceMs = 10_000) {
      stopping = true
      clearInterval(sweep)
      clearInterval(lookAround)
      places.close()
      const taken = taker?.stop()
      const all = [...working.values()]
      const timer = setTimeout(() => {
        for (const it of all) it.run?.stop('shutdown')
      }, graceMs)
      await Promise.all([taken, ...all.map((it) => it.done)])
      clearTimeout(timer)
      if (leftBehind.size === 0) await Promise.all([...entries.values()].map(({ log }) => yieldTurn(log)))
      for (const { log } of entries.values()) {
        log.shutDown(
          new OxbowError('shutting_down', 'The service is stopping; the turn resumes after its restart.', {
            retryable: true,
          }),
        )
      }
      const announcement = await announced?.catch(() => undefined)
      // A tool that still runs may still act. Until it ends nobody may take this worker for dead and ask what became of
      // it.
      if (leftBehind.size === 0) await announcement?.release()
      else void Promise.allSettled(leftBehind).then(() => announcement?.release())
    },
    get leftBehind() {
      return leftBehind.size
    },
    get waitingForIdentity() {
      return [...working.values()].filter((it) => it.run?.waitsForIdentity).length
    },
    get runningTurns() {
      return [...working].flatMap(([{ key, state }, { run }]) =>
        run === undefined || run.turnId !== state.turn?.turnId || state.turn.delegation !== undefined
          ? []
          : [{ key, turnId: run.turnId, principal: state.turn.principal }],
      )
    },
    get running() {
      return [...working.values()].filter((it) => it.run !== undefined).length
    },
  }
}

const toStandardError: NonNullable<EngineOptions['onError']> = (error, { reference }) => {
  if (!(error instanceof OxbowError)) console.error(`Oxbow, reference ${reference}:`, error)
}

/** The agents and all that work below them, by name. @throws OxbowError `agent_invalid` when two have one name */
function withChildren(agents: readonly Agent[]): ReadonlyMap<string, Agent> {
  const known = new Map<string, { readonly agent: Agent; readonly from: string }>()
  const add = (agent: Agent, from: string): void => {
    const other = known.get(agent.name)
    if (other?.agent === agent) return
    if (other !== undefined)
      throw new OxbowError('agent_invalid', `two agents are named ${agent.name}: one of ${other.from}, one of ${from}`)
    known.set(agent.name, { agent, from })
    for (const it of agent.agents) add(it, `agent ${agent.name}`)
  }
  for (const it of agents) add(it, 'the engine')
  return new Map([...known].map(([name, it]) => [name, it.agent]))
}

/** A schema that cannot be compiled fails the start, not the first call. */
async function compileSchemas(agents: Iterable<Agent>): Promise<void> {
  for (const { tools } of agents)
    for (const it of tools.values()) await validatorFor(it.jsonSchema, `tool ${it.name}, input`)
}

/** How far the clock of the machine is from one that only counts. */
const clockDrift = (): number => Date.now() - performance.now()

const CLOCK_JUMP_MS = 5_000

/** Claims of a turn without progress after which it may be what kills its process. */
const SUSPICIOUS_CLAIMS = 2

const isSuspect = ({ turn }: SessionState): boolean => turn !== undefined && turn.recoveries >= SUSPICIOUS_CLAIMS

const isDelegated = ({ turn }: SessionState): boolean => turn?.delegation !== undefined

const needsWork = ({ turn }: SessionState): boolean => turn !== undefined && turn.paused === undefined

// The periodic sweep of the store: finds turns whose worker has died, expired approvals, and overdue turns.
import { defined } from '../checks/defined.ts'
import { settleDebts } from '../children/debts.ts'
import type { EngineInternals } from '../engine-internals.ts'
import { nameOfKey } from '../journal/ids.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { Journal, SessionQuery, SessionSummary } from '../ports.ts'
import type { StateLimits } from '../state/deadlines.ts'
import { openApprovals } from '../state/state.ts'
import { endWaits, hasWaits } from '../turn/waits.ts'
import { endIfStuck, type Watch } from '../turn/watchdog.ts'
import type { LoadedSessions } from './loaded-sessions.ts'
import type { ReportOf } from './report.ts'
import type { TurnWorkers } from './turn-workers.ts'

export interface Sweep {
  /** Ends what is overdue and resumes open turns whose worker is gone. Returns how many. */
  recover(): Promise<number>
  /** Recovers every few seconds from now on. */
  start(): void
  /** Looks every few seconds after the turns that are awaited in this process. */
  watchAwaited(): void
  stop(): void
}

export interface SweepOptions {
  readonly engine: EngineInternals
  readonly sessions: LoadedSessions
  readonly workers: TurnWorkers
  readonly alive: (worker: string) => Promise<boolean>
  readonly isHeld: (log: SessionLog) => Promise<boolean>
  readonly limitsOf: (agent: string) => StateLimits | undefined
  readonly reportOf: ReportOf
  /** Receives the failure of a whole sweep. */
  readonly onError: (error: unknown) => void
}

/** With a lease of five seconds, the turns of a stopped process are claimed by another within ten. */
const SWEEP_MS = 2_500
/** Turns that are worked on at once while a crash is being recovered from. */
const MAX_RECOVERING = 100
const CLOCK_JUMP_MS = 5_000

export function sweepOf({ engine, sessions, workers, isHeld, limitsOf, reportOf, ...options }: SweepOptions): Sweep {
  /**
   * Overdue sessions that only another engine can end, by when they last changed: not to be read again in each sweep.
   */
  const passedOver = new Map<string, number>()
  let knownDrift = clockDrift()
  let timer: NodeJS.Timeout | undefined
  let awaitedTimer: NodeJS.Timeout | undefined
  const watch: Watch = {
    worker: engine.worker,
    startedAt: Date.now(),
    alive: options.alive,
    run: workers.runOf,
    report: (log, turnId, error) => reportOf(log, turnId)(error),
  }

  /** Expires undecided approvals, and ends turns that have been in one state for too long. */
  async function expire(): Promise<void> {
    const now = Date.now()
    // After a clock jump the time in a state is unknown: its limit starts again.
    const drift = clockDrift()
    if (Math.abs(drift - knownDrift) > CLOCK_JUMP_MS) watch.startedAt = now
    knownDrift = drift
    for await (const { key, updatedAt } of sessionsWhere(engine.journal, { dueBy: now })) {
      const name = nameOfKey(key)
      if (engine.stopping) return
      if (passedOver.get(name) === updatedAt) continue
      await engine
        .withCurrentLog(key, async (log) => {
          await log.append((draft) => {
            for (const { turnId, approvalId, expiresAt } of openApprovals(draft.state.turn))
              if (expiresAt <= now) draft.add({ type: 'approval.resolved', turnId, approvalId, verdict: 'expired' })
            endWaits(draft, now)
          })
          const limits = limitsOf(log.state.agent)
          if (limits !== undefined) await endIfStuck(watch, log, limits, now)
          else if (openApprovals(log.state.turn).length === 0 && !hasWaits(log.state.turn))
            passedOver.set(name, updatedAt)
          await settleDebts(engine, log)
          workers.ensureWorker(log)
        })
        .catch(reportOf({ key }))
    }
  }

  async function recover(): Promise<number> {
    await expire()
    let taken = 0
    for await (const { key } of sessionsWhere(engine.journal, { status: 'running' })) {
      if (engine.stopping) break
      // The next sweep resumes the rest: a crash must not be followed by a load spike.
      if (workers.size >= MAX_RECOVERING) break
      const here = sessions.find(key)
      if (here !== undefined && workers.isBusy(here)) continue
      try {
        taken += await engine.withCurrentLog(key, async (log) => {
          if (!workers.mayBegin(log) || (await isHeld(log))) return 0
          workers.ensureWorker(log)
          return 1
        })
      } catch (error) {
        // One unreadable session must not keep the others from going on.
        reportOf({ key })(error)
      }
    }
    return taken
  }

  return {
    recover,
    start() {
      timer = setInterval(() => void recover().catch(options.onError), SWEEP_MS).unref()
    },
    watchAwaited() {
      awaitedTimer ??= setInterval(() => {
        for (const log of sessions.logs()) if (log.watched && workers.mayBegin(log)) workers.ensureWorker(log)
      }, SWEEP_MS).unref()
    },
    stop() {
      clearInterval(timer)
      clearInterval(awaitedTimer)
    },
  }
}

async function* sessionsWhere(
  journal: Journal,
  query: Pick<SessionQuery, 'status' | 'dueBy'>,
): AsyncGenerator<SessionSummary> {
  let before: number | undefined
  for (;;) {
    const page = await journal.list({ ...query, ...defined({ before }) })
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    before = last.updatedAt
  }
}

/** How far the clock of the machine is from one that only counts. */
const clockDrift = (): number => Date.now() - performance.now()

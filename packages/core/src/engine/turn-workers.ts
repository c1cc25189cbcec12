// The turns that this process works on: each session has at most one worker here, which claims its turns one by one.

import { isWanted, settleAbove, settleDebts, userOf } from '../children/debts.ts'
import type { EngineInternals } from '../engine-internals.ts'
import type { Principal } from '../events/types.ts'
import type { SessionLog } from '../journal/session-log.ts'
import { workOnTurn } from '../perform/work.ts'
import type { SessionKey } from '../ports.ts'
import type { SessionState } from '../state/state.ts'
import { wakesAt } from '../state/work.ts'
import type { Places } from '../turn/places.ts'
import { ClaimLost, type TurnRun, turnRun } from '../turn/turn-run.ts'
import type { KnownAgents } from './known-agents.ts'
import type { ReportOf } from './report.ts'

/** A turn that is worked on in this process, other than those of sub-agents. */
export interface RunningTurn {
  readonly key: SessionKey
  readonly turnId: string
  readonly principal: Principal
}

export interface TurnWorkers extends Pick<EngineInternals, 'ensureWorker'> {
  /**
   * Whether the session has a turn to work on and no worker here. A turn that may have killed its process is retried
   * alone.
   */
  needsWorker(log: SessionLog): boolean
  /** The same, and there is a place for the turn. */
  mayBegin(log: SessionLog): boolean
  isBusy(log: SessionLog): boolean
  /** The work on this session in this process. */
  runOf(log: SessionLog): TurnRun | undefined
  runs(): TurnRun[]
  runningTurns(): RunningTurn[]
  /** How many sessions have a worker here. */
  readonly size: number
  /** Tools that were cancelled but still run. */
  readonly leftBehind: ReadonlySet<Promise<unknown>>
  /** Resolves when every worker has left. After `graceMs` their turns are stopped where they are. */
  stop(graceMs: number): Promise<void>
  /** Releases a turn of this worker for another one. One that cannot be stored is found when the worker is gone. */
  yieldTurn(log: SessionLog): Promise<void>
}

export interface WorkersOptions {
  readonly engine: EngineInternals
  readonly agents: KnownAgents
  readonly places: Places
  /** Whether a living worker in another process holds the session's turn. */
  readonly isHeld: (log: SessionLog) => Promise<boolean>
  /** Leaves a turn that cannot begin here to other processes. */
  readonly handOn: (log: SessionLog, reason?: string) => Promise<void>
  /** Passes what the log shows on to other processes, until the result is called. */
  readonly sendFragments: (log: SessionLog) => () => void
  /** Called when a turn has ended that may have killed its process before: others of its kind have waited for it. */
  readonly onSuspectDone: (log: SessionLog) => void
  /** Has the session looked at again at a time. */
  readonly wakeAt: (log: SessionLog, at: number) => Promise<void>
  /** Called when a turn of a worker that is gone was claimed. */
  readonly onTakeover: () => void
  readonly reportOf: ReportOf
  readonly currentPrincipal: (principal: Principal) => Promise<Principal | undefined>
  readonly principalMaxAgeMs: number
}

interface TurnWork {
  run: TurnRun | undefined
  done: Promise<void>
  /** Something came while this work was going on. */
  again: boolean
}

export function turnWorkers(options: WorkersOptions): TurnWorkers {
  const { engine, agents, places, isHeld, handOn, reportOf, currentPrincipal, principalMaxAgeMs } = options
  const working = new Map<SessionLog, TurnWork>()
  const leftBehind = new Set<Promise<unknown>>()
  /** Agents that sessions in this store name and this engine does not have; each is reported once. */
  const strangers = new Set<string>()

  function ensureWorker(log: SessionLog, place?: { epoch?: number }): void {
    const busy = working.get(log)
    // The running work may be past the point where it would notice the new event: look once more after it.
    if (busy !== undefined) {
      busy.again = true
      return
    }
    const leave = place === undefined ? engine.enter(isDelegated(log.state)) : places.enter()
    if (leave === undefined) return void handOn(log)
    log.retain()
    const stopSending = options.sendFragments(log)
    const entry: TurnWork = { again: false, run: undefined, done: Promise.resolve() }
    working.set(log, entry)
    const suspect = isSuspect(log.state)
    entry.done = work(log, entry, place?.epoch)
      .catch((error: unknown) => {
        reportOf(log, log.state.turn?.turnId)(error)
        log.fail(error)
      })
      .finally(() => {
        working.delete(log)
        stopSending()
        log.release()
        leave()
        if (entry.again) ensureWorker(log)
        if (suspect && !engine.stopping) options.onSuspectDone(log)
      })
  }

  /** Works through the open turns of a session. */
  async function work(log: SessionLog, entry: TurnWork, claimed: number | undefined): Promise<void> {
    let epoch = claimed
    for (;;) {
      entry.again = false
      const { turn } = log.state
      if (engine.stopping || turn === undefined || !needsWork(log.state)) return
      const agent = agents.find(log.state.agent)
      // Another engine on this store may have it: what cannot be run here is not claimed here.
      if (agent === undefined) {
        if (!strangers.has(log.state.agent)) reportOf(log, turn.turnId)(agents.unknown(log.state.agent))
        strangers.add(log.state.agent)
        return
      }
      epoch ??= await claim(log)
      if (epoch === undefined) return
      if (!(await isWanted(engine, log.key, turn))) await interruptUnwanted(log, turn.turnId)
      else await settleAbove(engine, log.key, turn)
      let run: TurnRun
      try {
        run = turnRun({
          log,
          agent,
          files: engine.files,
          engine,
          turnId: turn.turnId,
          worker: engine.worker,
          epoch,
          faultPoint: engine.faultPoint,
          report: reportOf(log, turn.turnId),
          leaveBehind: (work) => {
            leftBehind.add(work)
            void work.finally(() => leftBehind.delete(work))
          },
          currentPrincipal,
          principalMaxAgeMs,
        })
      } catch (error) {
        if (error instanceof ClaimLost) return
        throw error
      }
      entry.run = run
      await workOnTurn(run, agent)
      const wakes = log.state.turn?.paused && wakesAt(log.state.turn)
      if (wakes !== undefined) await options.wakeAt(log, wakes)
      epoch = undefined
      await settleDebts(engine, log).catch(reportOf(log))
      await log.snapshotIfDue().catch(reportOf(log))
    }
  }

  /** The epoch of our claim, or undefined when a living worker holds the turn or was quicker. */
  async function claim(log: SessionLog): Promise<number | undefined> {
    await engine.announce()
    const { turn } = log.state
    if (await isHeld(log)) return undefined
    const seen = turn?.claim?.epoch ?? 0
    const before = turn?.claim?.worker
    const epoch = await log.append((draft) => {
      const now = draft.state.turn
      if (now === undefined || now.turnId !== turn?.turnId || (now.claim?.epoch ?? 0) !== seen) return undefined
      draft.add({ type: 'turn.claimed', turnId: now.turnId, worker: engine.worker, epoch: seen + 1 })
      return seen + 1
    })
    if (epoch !== undefined && before !== undefined && before !== engine.worker) options.onTakeover()
    return epoch
  }

  const needsWorker = (log: SessionLog): boolean =>
    !working.has(log) &&
    needsWork(log.state) &&
    !(isSuspect(log.state) && [...working.keys()].some((it) => isSuspect(it.state)))

  const runs = (): TurnRun[] => [...working.values()].flatMap(({ run }) => run ?? [])

  return {
    ensureWorker,
    needsWorker,
    mayBegin: (log) => needsWorker(log) && (places.free || isDelegated(log.state)),
    isBusy: (log) => working.has(log),
    runOf: (log) => working.get(log)?.run,
    runs,
    runningTurns: () =>
      [...working].flatMap(([{ key, state }, { run }]) =>
        run === undefined || run.turnId !== state.turn?.turnId || isDelegated(state)
          ? []
          : [{ key, turnId: run.turnId, principal: state.turn.principal }],
      ),
    get size() {
      return working.size
    },
    leftBehind,
    async stop(graceMs) {
      const all = [...working.values()]
      const timer = setTimeout(() => {
        for (const it of all) it.run?.stop('shutdown')
      }, graceMs)
      await Promise.all(all.map((it) => it.done))
      clearTimeout(timer)
    },
    async yieldTurn(log) {
      const mine = ({ turn }: SessionState) => turn?.claim?.worker === engine.worker && turn.paused === undefined
      if (!mine(log.state)) return
      await log
        .append((draft) => {
          const { turn } = draft.state
          if (turn === undefined || !mine(draft.state)) return
          draft.add({ type: 'turn.yielded', turnId: turn.turnId, worker: engine.worker, epoch: turn.claim!.epoch })
        })
        .catch(reportOf(log))
      await handOn(log, 'handed over')
    },
  }
}

/** Its parent has stopped or never started it: its result is not awaited. */
const interruptUnwanted = (log: SessionLog, turnId: string): Promise<void> =>
  log.append((draft) => {
    const { turn } = draft.state
    if (turn?.turnId !== turnId || turn.interrupt !== undefined) return
    draft.add({ type: 'interrupt.requested', turnId, principal: userOf(log.key), reason: 'its parent was stopped' })
  })

/** Claims of a turn without progress after which it may be what kills its process. */
const SUSPICIOUS_CLAIMS = 2

const isSuspect = ({ turn }: SessionState): boolean => turn !== undefined && turn.recoveries >= SUSPICIOUS_CLAIMS

const isDelegated = ({ turn }: SessionState): boolean => turn?.delegation !== undefined

/** Whether a turn is open and waits for nobody. */
export const needsWork = ({ turn }: SessionState): boolean => turn !== undefined && turn.paused === undefined

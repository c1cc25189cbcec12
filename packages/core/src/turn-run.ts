// One worker's right to write one turn, and what its steps share.
import type { Agent } from './agent.ts'
import { type Action, consequence, decide } from './decide.ts'
import { OxbowError } from './errors.ts'
import type { EventBody, Failure, Principal } from './events/types.ts'
import type { TurnContext } from './middleware.ts'
import { rulesFor } from './permissions/remembered.ts'
import type { Rule } from './permissions/rules.ts'
import type { Files } from './ports.ts'
import type { Draft, FaultPoint, SessionLog } from './session-log.ts'
import type { TurnState } from './state.ts'

/** Thrown by a write when another worker has claimed the turn, or the turn has ended: this worker stops. */
export class ClaimLost extends Error {}

/** Why work stops early. `shutdown` leaves the turn open for the next start. */
export type StopReason = 'interrupt' | 'claim_lost' | 'shutdown' | 'failure'

export interface TurnRun {
  readonly log: SessionLog
  readonly agent: Agent
  readonly files: Files
  readonly turnId: string
  readonly context: TurnContext
  readonly signal: AbortSignal
  readonly faultPoint: FaultPoint | undefined
  readonly stopped: StopReason | undefined
  /** The turn as folded now. Throws ClaimLost when it is no longer this worker's. */
  turn(): TurnState
  /** What to do next: what the state says, or the failure with which this worker stops. */
  next(): Action
  /**
   * Appends what `build` returns for the newest state, followed by what comes of it without any effect in between.
   */
  write(build: (turn: TurnState) => readonly EventBody[]): Promise<void>
  /** Something came: an event or a fragment. Resets the idle clock. */
  touch(): void
  stop(reason: StopReason, failure?: Failure): void
  /** Calls that run in this process now; the turn does not end while their outcomes are awaited. */
  readonly inFlight: Set<string>
  /** Who the principal is now, according to the host; undefined when they may not act any more. */
  currentPrincipal(principal: Principal): Promise<Principal | undefined>
  /** Allow rules that people accepted for this session, this user or everybody. */
  rememberedRules(principal: Principal): Promise<Rule[]>
  /** Logs the full error and returns the reference under which a person finds it. */
  report(error: unknown): string
  close(): void
}

export function turnRun(options: {
  log: SessionLog
  agent: Agent
  files: Files
  turnId: string
  worker: string
  epoch: number
  faultPoint: FaultPoint | undefined
  report: (error: unknown) => string
  currentPrincipal: (principal: Principal) => Promise<Principal | undefined>
}): TurnRun {
  const { log, agent, files, turnId, worker, epoch, faultPoint, report, currentPrincipal } = options
  const controller = new AbortController()
  let stopped: StopReason | undefined
  let failure: Failure | undefined
  const inFlight = new Set<string>()

  const mine = (turn: TurnState | undefined): TurnState => {
    if (turn?.turnId === turnId && turn.claim?.epoch === epoch && turn.claim.worker === worker) return turn
    throw new ClaimLost(`turn ${turnId} is no longer this worker's`)
  }
  const first = mine(log.state.turn)
  const totalMs = first.options.totalTimeoutMs ?? agent.limits.totalTimeoutMs
  const idleMs = first.options.idleTimeoutMs ?? agent.limits.idleTimeoutMs

  const next = (turn: TurnState): Action =>
    failure === undefined || turn.interrupt !== undefined
      ? decide(turn, agent.limits)
      : { type: 'finish', ending: { type: 'turn.failed', error: failure } }

  const stop = (reason: StopReason, why?: Failure): void => {
    if (stopped !== undefined) return
    stopped = reason
    failure = why
    controller.abort(new OxbowError(reason, `The turn was stopped: ${reason}.`))
  }
  const clock = clocks(totalMs, idleMs, (code, ms) => {
    const message = `The turn was stopped after ${ms} ms${code === 'idle_timeout' ? ' without progress' : ''}.`
    stop('failure', { code, message, reference: report(new OxbowError(code, message)) })
  })

  return {
    log,
    agent,
    files,
    turnId,
    faultPoint,
    signal: controller.signal,
    context: {
      session: log.key,
      turnId,
      agent: agent.name,
      principal: first.principal,
      attributes: first.options.attributes ?? {},
      signal: controller.signal,
    },
    get stopped() {
      return stopped
    },
    inFlight,
    report,
    currentPrincipal,
    rememberedRules: (principal) => rulesFor(files, principal, log.key.tenant, log.state.rules),
    turn: () => mine(log.state.turn),
    next: () => next(mine(log.state.turn)),
    async write(build) {
      await log.append((draft: Draft) => {
        draft.add(...build(mine(draft.state.turn)))
        const after = draft.state.turn
        if (after?.turnId !== turnId) return
        if (after.calls.some((it) => it.finished === undefined && inFlight.has(it.callId))) return
        draft.add(...consequence(after, next(after)))
      })
      clock.touch()
    },
    touch: clock.touch,
    stop,
    close: clock.close,
  }
}

/** Two limits with two timers; `touch` is cheap enough to be called per fragment. */
function clocks(totalMs: number, idleMs: number, expire: (code: 'total_timeout' | 'idle_timeout', ms: number) => void) {
  let touched = performance.now()
  const total = setTimeout(() => expire('total_timeout', totalMs), totalMs)
  let idle = setTimeout(checkIdle, idleMs)
  function checkIdle(): void {
    const left = idleMs - (performance.now() - touched)
    if (left > 0) idle = setTimeout(checkIdle, left)
    else expire('idle_timeout', idleMs)
  }
  return {
    touch(): void {
      touched = performance.now()
    },
    close(): void {
      clearTimeout(total)
      clearTimeout(idle)
    },
  }
}

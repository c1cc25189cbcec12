// One worker's right to write one turn, and what its steps share.
import type { Agent } from '../agents/agent-type.ts'
import type { TurnContext } from '../agents/middleware.ts'
import { reviewInput } from '../agents/reviewer.ts'
import { stopsAfter } from '../agents/stop-when.ts'
import type { EngineInternals } from '../engine-internals.ts'
import { OxbowError } from '../errors.ts'
import type { EventBody, Failure, Principal } from '../events/types.ts'
import type { FaultPoint, SessionLog } from '../journal/session-log.ts'
import type { Model } from '../model.ts'
import { type RememberedRules, rulesFor } from '../permissions/remembered.ts'
import type { Files } from '../ports.ts'
import type { SessionState, TurnState } from '../state/state.ts'
import { type Action, decide, whatFollows } from './decide.ts'
import { askAgain, isUnavailable } from './retry.ts'
import { turnClocks } from './turn-clocks.ts'

/** Thrown by a write when another worker has claimed the turn, or the turn has ended: this worker stops. */
export class ClaimLost extends Error {}

/** Why work stops early. `shutdown` leaves the turn open for the next start. */
export type StopReason = 'interrupt' | 'claim_lost' | 'shutdown' | 'failure'

export type TurnBuild = (turn: TurnState, state: SessionState) => readonly EventBody[]

export interface TurnRun {
  readonly log: SessionLog
  readonly agent: Agent
  /** The agent's, or the one that the turn chose. */
  readonly model: Model
  readonly files: Files
  readonly turnId: string
  /** For what concerns other sessions: those above and below this turn. */
  readonly engine: EngineInternals
  readonly context: TurnContext
  readonly signal: AbortSignal
  readonly faultPoint: FaultPoint | undefined
  readonly stopped: StopReason | undefined
  /** The turn as folded now. Throws ClaimLost when it is no longer this worker's. */
  turn(): TurnState
  /** The same, or undefined when it has ended or is another worker's. */
  held(): TurnState | undefined
  /** This worker has ended the turn. */
  readonly ended: boolean
  /** The next action: the one that follows from the state, or the failure with which this worker stops. */
  next(): Action
  /**
   * Appends what `build` returns for the newest state, and the events that follow from it without an effect in between.
   * Resolves when it is durable: what must be known after a crash before anything else happens.
   */
  write(build: TurnBuild): Promise<void>
  /** Like `write`, but only folds it now: it is stored in order, and a failure stops this worker. See `durable`. */
  writeAhead(build: TurnBuild): void
  /** Appends only what follows from the state without any effect. */
  settle(): void
  /** Resolves when everything written so far is stored. Rejects if that has failed. */
  durable(): Promise<void>
  /** Something came: an event or a fragment. Resets the idle clock. */
  touch(): void
  /** Pauses the idle clock while a tool runs within its own limit. Returns the function that resumes it. */
  suspendIdle(): () => void
  /** Work that ignored its cancellation and may still act: until it ends, this worker must look alive. */
  leaveBehind(work: Promise<unknown>): void
  stop(reason: StopReason, failure?: Failure): void
  /** Calls that run in this process now; the turn does not end while their outcomes are awaited. */
  readonly inFlight: Set<string>
  /**
   * Who the principal is now, according to the host; undefined when they are no longer authorised. While the host
   * cannot resolve it, the call is retried and the turn's clocks are paused.
   */
  currentPrincipal(principal: Principal): Promise<Principal | undefined>
  /** The turn's principal, as of this worker's claim or of a later approval. */
  readonly principal: Principal
  /**
   * Asks who they are now, and stops the turn with `principal_revoked` when they are no longer authorised. Resolves
   * with whether they may.
   */
  refreshPrincipal(): Promise<boolean>
  /** The same, when it was asked longer ago than the engine's `principalMaxAgeMs`. */
  refreshOldPrincipal(): Promise<boolean>
  /**
   * Whether more time may have passed since the input than a turn may run: it has waited, or nobody took it up for
   * long.
   */
  readonly waited: boolean
  /** The host currently cannot resolve the principal. */
  readonly waitsForIdentity: boolean
  /** Remembered allow rules of this session, this user or the tenant. */
  rememberedRules(principal: Principal): Promise<RememberedRules>
  /** Logs the full error and returns the reference under which a person finds it. */
  report(error: unknown): string
  close(): void
}

export function turnRun(options: {
  log: SessionLog
  agent: Agent
  files: Files
  engine: EngineInternals
  turnId: string
  worker: string
  epoch: number
  faultPoint: FaultPoint | undefined
  report: (error: unknown) => string
  currentPrincipal: (principal: Principal) => Promise<Principal | undefined>
  principalMaxAgeMs: number
  leaveBehind: (work: Promise<unknown>) => void
}): TurnRun {
  const {
    log,
    agent,
    files,
    engine,
    turnId,
    worker,
    epoch,
    faultPoint,
    report,
    currentPrincipal,
    principalMaxAgeMs,
    leaveBehind,
  } = options
  const controller = new AbortController()
  let stopped: StopReason | undefined
  let failure: Failure | undefined
  const inFlight = new Set<string>()
  let identityWaits = 0

  const isMine = (turn: TurnState | undefined): turn is TurnState =>
    turn?.turnId === turnId && turn.claim?.epoch === epoch && turn.claim.worker === worker
  const mine = (turn: TurnState | undefined): TurnState => {
    if (isMine(turn)) return turn
    throw new ClaimLost(`turn ${turnId} is no longer this worker's`)
  }
  const first = mine(log.ahead.turn)
  const totalMs = first.options.totalTimeoutMs ?? agent.limits.totalTimeoutMs
  const idleMs = first.options.idleTimeoutMs ?? agent.limits.idleTimeoutMs

  const model = agent.models.get(first.options.model ?? agent.model.id)
  const { compactor, review, stopWhen } = agent
  const next = (turn: TurnState, state: SessionState): Action =>
    failure === undefined || turn.interrupt !== undefined
      ? decide(turn, agent.limits, {
          due: compactor && (() => compactor.due(state)),
          review: review && ((text) => review(reviewInput(text, state))),
          stop: stopWhen && ((after) => stopsAfter(stopWhen, after)),
        })
      : { type: 'finish', ending: { type: 'turn.failed', error: failure } }

  const stop = (reason: StopReason, why?: Failure): void => {
    if (stopped !== undefined) return
    stopped = reason
    failure = why
    controller.abort(new OxbowError(reason, `The turn was stopped: ${reason}.`))
  }
  const clock = turnClocks(totalMs, idleMs, (code, ms) => {
    const message = `The turn was stopped after ${ms} ms${code === 'idle_timeout' ? ' without progress' : ''}.`
    stop('failure', { code, message, reference: report(new OxbowError(code, message)) })
  })

  let { principal } = first
  const askHost = async (about: Principal): Promise<Principal | undefined> => {
    try {
      return await currentPrincipal(about)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      report(error)
    }
    identityWaits += 1
    const goOn = clock.pause()
    try {
      return await askAgain(() => currentPrincipal(about), controller.signal)
    } finally {
      identityWaits -= 1
      goOn()
    }
  }

  let lost: { readonly error: unknown } | undefined
  let ended = false
  const givenUp = (): boolean => stopped === 'shutdown'
  /**
   * What follows from an event without an effect is stored in the same append: the next step, a pause, the end of the
   * turn. This loop is where a turn ends.
   */
  const append = (build: TurnBuild): Promise<void> => {
    if (lost !== undefined) throw lost.error
    /** The messages that join in the step that begins here: the model may be called before others come. */
    let joined: number | undefined
    return log.appendAhead((draft) => {
      draft.add(...build(mine(draft.state.turn), draft.state))
      for (;;) {
        const after = draft.state.turn
        if (after?.turnId !== turnId) {
          ended = true
          return
        }
        if (after.calls.some((it) => it.finished === undefined && inFlight.has(it.callId))) return
        const action = next(after, draft.state)
        for (const it of whatFollows(after, action)) {
          if (it.type === 'step.started') joined ??= after.steers.length
          draft.add(it.type === 'step.started' && joined !== after.steers.length ? { ...it, joined } : it)
        }
        // A finding about the answer leads on: to the next step, or to the end.
        if (action.type !== 'review') return
      }
    }, givenUp)
  }
  const writeAhead = (build: TurnBuild): void => {
    append(build).catch((error: unknown) => {
      lost ??= { error }
      stop('claim_lost')
    })
    clock.touch()
  }

  if (model === undefined) {
    const message = `The agent ${agent.name} no longer has the model ${first.options.model}, which this turn chose.`
    stop('failure', { code: 'unknown_model', message, reference: report(new OxbowError('unknown_model', message)) })
  }

  let principalAsOf = performance.now()
  let asking: Promise<boolean> | undefined
  async function refreshPrincipal(): Promise<boolean> {
    const askedAt = performance.now()
    const now = await askHost(first.principal)
    if (now === undefined) {
      stop('failure', { code: 'principal_revoked', message: `${first.principal.user} is no longer authorised.` })
      return false
    }
    principal = now
    principalAsOf = askedAt
    return true
  }

  return {
    log,
    agent,
    model: model ?? agent.model,
    files,
    engine,
    turnId,
    faultPoint,
    signal: controller.signal,
    context: {
      session: log.key,
      turnId,
      agent: agent.name,
      get principal() {
        return principal
      },
      attributes: first.options.attributes ?? {},
      signal: controller.signal,
    },
    get stopped() {
      return stopped
    },
    inFlight,
    report,
    currentPrincipal: askHost,
    get principal() {
      return principal
    },
    waited: first.waited === true || Date.now() - first.task.since > totalMs,
    refreshPrincipal,
    async refreshOldPrincipal() {
      if (performance.now() - principalAsOf < principalMaxAgeMs) return true
      // Calls that begin together ask once.
      asking ??= refreshPrincipal().finally(() => {
        asking = undefined
      })
      return asking
    },
    get waitsForIdentity() {
      return identityWaits > 0
    },
    rememberedRules: (principal) => rulesFor(files, principal, log.key.tenant, log.ahead.rules),
    turn: () => mine(log.ahead.turn),
    held: () => (isMine(log.ahead.turn) ? log.ahead.turn : undefined),
    get ended() {
      return ended
    },
    next: () => next(mine(log.ahead.turn), log.ahead),
    async write(build) {
      await append(build)
      clock.touch()
    },
    writeAhead,
    settle: () => writeAhead(() => []),
    async durable() {
      await log.appendAhead(() => {}, givenUp)
      if (lost !== undefined) throw lost.error
    },
    touch: clock.touch,
    suspendIdle: clock.suspend,
    leaveBehind,
    stop,
    close: clock.close,
  }
}

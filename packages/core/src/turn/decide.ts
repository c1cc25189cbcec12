// Decides the next action, as a pure function of the turn's state.

import type { CompactionReason } from '../agents/compactor.ts'
import type { TurnLimits } from '../agents/limits.ts'
import type { Finding } from '../agents/reviewer.ts'
import type { Event, EventBody, Failure } from '../events/types.ts'
import { staleStepsNow } from '../state/repeats.ts'
import { awaitsApproval, type CallState, type TurnState } from '../state/state.ts'
import { waitOf } from '../state/work.ts'
import { overBudget } from './budget.ts'

export type PauseReason = Event<'turn.paused'>['reason']

export type Ending =
  | {
      readonly type: 'turn.finished'
      readonly reason: 'completed' | 'stopped' | 'repetition' | 'max_steps' | 'length' | 'refusal' | 'filtered'
    }
  | { readonly type: 'turn.failed'; readonly error: Failure }
  | { readonly type: 'turn.cancelled'; readonly reason: string }

export type Action =
  /** Call the model. `begun`: `step.started` is stored already (a crash came between). */
  | { readonly type: 'think'; readonly step: number; readonly toolsOffered: boolean; readonly begun: boolean }
  /** Judge and run these calls. */
  | { readonly type: 'act'; readonly calls: readonly CallState[] }
  /** Validate the structured answer. */
  | { readonly type: 'check' }
  /** Store the fault of the answer; `again`: the model answers once more. */
  | { readonly type: 'review'; readonly step: number; readonly finding: Finding; readonly again: boolean }
  /** Make the conversation shorter before the model is called. */
  | { readonly type: 'compact'; readonly step: number; readonly reason: CompactionReason }
  | { readonly type: 'wait'; readonly reason: PauseReason }
  | { readonly type: 'finish'; readonly ending: Ending }

/** Checks that only some agents have. */
export interface TurnChecks {
  /** Whether the conversation is to be compacted. */
  readonly due?: (() => CompactionReason | undefined) | undefined
  /** The fault of the last answer. */
  readonly review?: ((text: string) => Finding | undefined) | undefined
  /** Whether the turn ends after the calls of this step. */
  readonly stop?: ((turn: TurnState) => boolean) | undefined
}

/** Steps in a row without anything new, after which the model is offered no more tools and has to answer. */
export const MAX_STALE_STEPS = 4

export function decide(turn: TurnState, limits: TurnLimits, { due, review, stop }: TurnChecks = {}): Action {
  if (turn.interrupt !== undefined) return finish({ type: 'turn.cancelled', reason: turn.interrupt.reason })
  if (turn.paused?.reason === 'recovery_limit' || turn.recoveries > limits.maxRecoveries)
    return { type: 'wait', reason: 'recovery_limit' }

  if (turn.pauseRequested) return { type: 'wait', reason: 'manual' }

  const open = turn.calls.filter((call) => call.finished === undefined)
  if (open.length > 0) {
    const ready = open.filter((call) => !awaitsApproval(call) && !awaitsResult(call) && waitOf(call) === undefined)
    if (ready.length > 0) return { type: 'act', calls: ready }
    if (open.some(awaitsApproval)) return { type: 'wait', reason: 'approval' }
    if (open.some(awaitsResult)) return { type: 'wait', reason: 'external' }
    return { type: 'wait', reason: open.some((call) => waitOf(call)?.kind === 'signal') ? 'signal' : 'sleep' }
  }
  if (limits.whenDenied === 'stop' && turn.calls.length > 0 && turn.calls.every(deniedByPerson))
    return finish({ type: 'turn.cancelled', reason: 'every call was refused' })

  const maxSteps = Math.min(turn.options.maxSteps ?? limits.maxSteps, limits.maxSteps)
  const looping = staleStepsNow(turn.repeats, turn.calls.length) >= MAX_STALE_STEPS
  const { reply } = turn
  if (reply === undefined && turn.step > 0) {
    const reason = turn.compactedStep === turn.step ? undefined : due?.()
    if (reason !== undefined) return { type: 'compact', step: turn.step, reason }
    return { type: 'think', step: turn.step, toolsOffered: turn.toolsOffered, begun: true }
  }
  const next = (toolsOffered = turn.step < maxSteps && !looping): Action => {
    const spent = overBudget(turn, limits.budget)
    if (spent !== undefined) return finish({ type: 'turn.failed', error: spent })
    return { type: 'think', step: turn.step + 1, toolsOffered, begun: false }
  }
  if (reply === undefined) return next()

  if (reply.finishReason === 'refusal' || reply.finishReason === 'filtered')
    return finish({ type: 'turn.finished', reason: reply.finishReason })
  // Text that was shown cannot be withdrawn: such an answer is not repeated.
  if (reply.error?.code === 'context_overflow' && reply.empty && due !== undefined) {
    const { step, overflow } = turn
    if (overflow?.step === step) return next(turn.toolsOffered)
    if (overflow?.step === step - 1)
      return finish({ type: 'turn.failed', error: stillTooLong(reply.error, overflow.parts) })
    return { type: 'compact', step, reason: 'overflow' }
  }
  if (reply.error !== undefined) return finish({ type: 'turn.failed', error: reply.error })
  if (turn.calls.length > 0 && turn.toolsOffered)
    return turn.steers.length === 0 && stop?.(turn) ? finish({ type: 'turn.finished', reason: 'stopped' }) : next()
  if (turn.steers.length > 0) return next()
  if (reply.empty && turn.calls.length === 0 && reply.finishReason === 'stop')
    return turn.emptyReplies < 2 ? next() : finish({ type: 'turn.failed', error: emptyReply })
  if (turn.options.output !== undefined) {
    if (reply.rejected === undefined) return { type: 'check' }
    return turn.rejections < limits.outputAttempts
      ? next()
      : finish({ type: 'turn.failed', error: outputInvalid(turn) })
  }
  if (reply.reviewed === 'again') return next()
  const finding = reply.reviewed === undefined ? review?.(reply.text) : undefined
  if (finding !== undefined) {
    const mayMend = turn.toolsOffered && turn.corrected === undefined && reply.finishReason === 'stop'
    const again = mayMend && overBudget(turn, limits.budget) === undefined
    return { type: 'review', step: turn.step, finding, again }
  }
  if (!turn.toolsOffered)
    return finish({ type: 'turn.finished', reason: turn.step > maxSteps ? 'max_steps' : 'repetition' })
  return finish({ type: 'turn.finished', reason: reply.finishReason === 'length' ? 'length' : 'completed' })
}

const awaitsResult = ({ external, resolved }: CallState): boolean => external === true && resolved === undefined

const deniedByPerson = ({ approval }: CallState): boolean => approval?.resolved?.verdict === 'denied'

/** The events that may be stored together with the one that led to `action`, because no effect lies between them. */
export function whatFollows(turn: TurnState, action: Action): EventBody[] {
  const { turnId } = turn
  if (action.type === 'think' && !action.begun)
    return [{ type: 'step.started', turnId, step: action.step, toolsOffered: action.toolsOffered }]
  if (action.type === 'wait' && turn.paused === undefined)
    return [{ type: 'turn.paused', turnId, reason: action.reason }]
  if (action.type === 'review') {
    const { step, finding, again } = action
    const { correction, items, ...told } = finding
    return [{ type: 'reply.reviewed', turnId, step, ...told, items: [...items], ...(again && { correction }) }]
  }
  if (action.type === 'finish') return [...closeCalls(turn), { ...action.ending, turnId }]
  return []
}

/** Ends the calls that a turn leaves open. What had started and was not seen to end is honestly unknown. */
function closeCalls(turn: TurnState): EventBody[] {
  return turn.calls
    .filter((call) => call.finished === undefined)
    .map((call) => {
      const waits = waitOf(call) !== undefined
      const status = call.started === undefined || waits ? 'cancelled' : 'unknown'
      const text = waits
        ? cancelledWhileWaiting(call)
        : status === 'cancelled'
          ? 'Cancelled before it ran.'
          : UNKNOWN_OUTCOME
      return {
        type: 'call.finished',
        turnId: turn.turnId,
        callId: call.callId,
        status,
        content: [{ type: 'text', text }],
        durationMs: 0,
      }
    })
}

/** Nothing runs while a call waits, so what it has done is known. */
function cancelledWhileWaiting({ work = [] }: CallState): string {
  const done = work.filter((it) => it.kind === 'step' && it.ended?.status === 'success').map((it) => it.name)
  const steps = done.length === 0 ? 'No step had run.' : `These steps had taken effect: ${done.join(', ')}.`
  return `Cancelled while it waited. ${steps}`
}

export const UNKNOWN_OUTCOME =
  'The outcome of this call is unknown: it had started when its process stopped. It may have taken effect. ' +
  'Do not repeat it before checking, and tell the user.'

const finish = (ending: Ending): Action => ({ type: 'finish', ending })

const emptyReply: Failure = {
  code: 'empty_reply',
  message: 'The model gave an empty answer twice. Try again, or choose another model.',
}

const outputInvalid = (turn: TurnState): Failure => ({
  code: 'output_invalid',
  message: `The model's answer did not satisfy the requested schema after ${turn.rejections} attempts: ${turn.reply?.rejected ?? ''}`,
})

const stillTooLong = (error: Failure, parts: Readonly<Record<string, number>>): Failure => ({
  ...error,
  message:
    'The conversation does not fit into the window of the model, even after compaction. Approximate tokens: ' +
    `${Object.entries(parts)
      .map(([part, tokens]) => `${part} ${tokens}`)
      .join(', ')}. Use a model with a larger window, or begin a new session.`,
})

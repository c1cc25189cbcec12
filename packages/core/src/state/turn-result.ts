import { textOf } from '../events/blocks.ts'
import type { CallStatus, Event, Failure, InputBlock, Usage } from '../events/types.ts'
import { noUsage } from '../model.ts'
import { addUsage } from './state.ts'

export interface PendingCall {
  readonly callId: string
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** A call that waits for a person. */
export type PendingApproval = Omit<Event<'approval.requested'>, 'type' | 'seq' | 'at' | 'turnId'>

/** A call of a tool. */
export interface MadeCall {
  readonly callId: string
  readonly tool: string
  /** The decided arguments; undefined without a decision. */
  readonly arguments: Readonly<Record<string, unknown>> | undefined
  /** Undefined while it runs or waits. */
  readonly status: CallStatus | undefined
  /** The content that the model received. */
  readonly content: readonly InputBlock[]
}

/** The result of a turn, or its state so far. */
export interface TurnResult {
  readonly turnId: string
  readonly status: 'running' | 'paused' | 'finished' | 'failed' | 'cancelled'
  /** Why it ended or paused: `completed`, `max_steps`, `length`, `refusal`, `filtered`, `approval`, `external` … */
  readonly reason: string
  /** The text of the last answer. */
  readonly text: string
  /** The validated structured output, when requested. */
  readonly output: unknown
  readonly error: Failure | undefined
  readonly steps: number
  readonly usage: Usage
  /** All calls of the turn, in the model's order. */
  readonly calls: readonly MadeCall[]
  /** External calls whose results the caller has to deliver. */
  readonly pending: readonly PendingCall[]
  /** Calls that wait for an approval. */
  readonly approvals: readonly PendingApproval[]
}

const start: TurnResult = {
  turnId: '',
  status: 'running',
  reason: '',
  text: '',
  output: undefined,
  error: undefined,
  steps: 0,
  usage: noUsage,
  calls: [],
  pending: [],
  approvals: [],
}

/**
 * Folds the events of one turn to its result, as `session.run()` returns it. Events of other turns are skipped.
 *
 * @param events stored events, in their order
 * @example const { status, text } = turnResult(turnId, await session.events())
 */
export function turnResult(turnId: string, events: readonly Event[]): TurnResult {
  let result = newResult(turnId)
  for (const event of events)
    if (event.type !== 'session.opened' && event.turnId === turnId) result = resultAfter(result, event)
  return result
}

/** Before anything has happened in the turn. */
export const newResult = (turnId: string): TurnResult => ({ ...start, turnId })

/** After an event of the turn. */
export const resultAfter = (result: TurnResult, event: Event): TurnResult => ({ ...result, ...change(result, event) })

function change(result: TurnResult, event: Event): Partial<TurnResult> {
  switch (event.type) {
    case 'turn.claimed':
    case 'turn.released':
    case 'interrupt.requested':
      return { status: 'running', reason: '' }
    case 'model.finished': {
      const text = textOf(event.message.blocks)
      const asked = event.message.blocks.flatMap((it): MadeCall[] =>
        it.type === 'call'
          ? [{ callId: it.callId, tool: it.tool, arguments: undefined, status: undefined, content: [] }]
          : [],
      )
      return {
        text,
        steps: event.step,
        usage: addUsage(result.usage, event.usage),
        ...(asked.length > 0 && { calls: [...result.calls, ...asked] }),
      }
    }
    case 'context.compacted':
      return event.usage === undefined ? {} : { usage: addUsage(result.usage, event.usage) }
    case 'external.requested': {
      const { callId, tool } = event
      return { pending: [...result.pending, { callId, tool, arguments: event.arguments }] }
    }
    // Any event that ends a pause ends it here, before a worker reacts to it.
    case 'external.resolved':
      return { status: 'running', reason: '', pending: result.pending.filter((it) => it.callId !== event.callId) }
    case 'call.decided':
      return { calls: withCall(result, event.callId, { arguments: event.arguments }) }
    case 'call.finished': {
      const { status, content } = event
      return {
        pending: result.pending.filter((it) => it.callId !== event.callId),
        calls: withCall(result, event.callId, { status, content }),
      }
    }
    case 'approval.requested': {
      const { type: _, seq: __, at: ___, turnId: ____, ...approval } = event
      return { approvals: [...result.approvals, approval] }
    }
    case 'approval.resolved':
      return {
        status: 'running',
        reason: '',
        approvals: result.approvals.filter((it) => it.approvalId !== event.approvalId),
      }
    case 'turn.paused':
      return { status: 'paused', reason: event.reason }
    case 'turn.finished':
      return { status: 'finished', reason: event.reason, output: event.output }
    case 'turn.failed':
      return { status: 'failed', reason: event.error.code, error: event.error }
    case 'turn.cancelled':
      return { status: 'cancelled', reason: event.reason }
    default:
      return {}
  }
}

const withCall = ({ calls }: TurnResult, callId: string, change: Partial<MadeCall>): MadeCall[] =>
  calls.map((it) => (it.callId === callId ? { ...it, ...change } : it))

/**
 * Whether an event ends its turn: each turn has exactly one such event.
 *
 * @example for await (const item of session.follow()) if (isEvent(item) && isEnd(item)) break
 */
export const isEnd = (event: Event): boolean =>
  event.type === 'turn.finished' || event.type === 'turn.failed' || event.type === 'turn.cancelled'

// The events of a task. Each level contains the previous one: `status` ⊂ `full` ⊂ `verbose`.
import { isEvent, type SessionItem } from '@oxbow/core'
import { failureOfResult, unknownCalls } from '../failures.ts'
import type { Moment, Moments } from '../tasks/stream/moments.ts'
import type { Encode, TaskFrame } from '../tasks/stream/reading.ts'
import type { Detail } from './submission.ts'
import { pendingConfirms } from './task.ts'

type EventName =
  | 'RUN_STARTED'
  | 'RUN_FINISHED'
  | 'RUN_ERROR'
  | 'TOOL_CALL_START'
  | 'TOOL_CALL_END'
  | 'TOOL_RESULT'
  | 'REQUIRE_CONFIRM'
  | 'STATUS'
  | 'TEXT_DELTA'
  | 'THINKING_DELTA'
  | 'AGENT_EVENT'

const LEVELS: readonly Detail[] = ['status', 'full', 'verbose']
const levelOf = (event: EventName): number =>
  event === 'AGENT_EVENT' ? 2 : event === 'TEXT_DELTA' || event === 'THINKING_DELTA' ? 1 : 0

export function protocolEvents(taskId: string, agentId: string, detail: Detail): Encode {
  const level = LEVELS.indexOf(detail)
  // The full record is sent once, and only at level `verbose`.
  const isWhole = ({ type }: Moment): boolean =>
    detail === 'verbose' && type !== 'call' && type !== 'text' && type !== 'thinking'
  return (moment, fold) =>
    eventsOf(moment, fold)
      .filter(([event]) => levelOf(event) <= level)
      .map(([event, fields], index): TaskFrame => {
        const id = moment.at + index
        const { source } = moment
        const data = {
          seq: id,
          type: event,
          taskId,
          agentId,
          timestamp: new Date(moment.time).toISOString(),
          ...fields,
          eventType: source.type,
          // A JSON string, so that clients with typed fields can ignore it.
          payload: JSON.stringify(isWhole(moment) ? source : payloadOf(source, moment)),
        }
        return { id, event, data }
      })
}

/** The part of the source that belongs to the event, without what its other fields or a higher level contain. */
function payloadOf(source: SessionItem, moment: Moment): object {
  const { type } = source
  if (!isEvent(source)) {
    const { step } = source
    return 'block' in source && 'offset' in source
      ? { type, step, block: source.block, offset: source.offset }
      : { type, step }
  }
  const about = { type, seq: source.seq, at: source.at }
  switch (source.type) {
    case 'turn.started':
      return { ...about, turnId: source.turnId, agent: source.agent, surface: source.surface }
    case 'model.finished':
      return moment.type === 'call' ? { ...about, step: source.step, callId: moment.callId } : about
    case 'call.finished': {
      const { callId, status, durationMs, error, artifact } = source
      return { ...about, callId, status, durationMs, error, artifact }
    }
    case 'approval.resolved': {
      const { approvalId, verdict, principal, reason } = source
      return { ...about, approvalId, verdict, by: principal?.user, reason }
    }
    case 'turn.claimed':
      return { ...about, epoch: source.epoch }
    case 'turn.paused':
    case 'turn.cancelled':
      return { ...about, reason: source.reason }
    case 'turn.finished':
      return { ...about, reason: source.reason, output: source.output }
    case 'turn.failed':
      return { ...about, error: source.error }
    default:
      return about
  }
}

type Named = readonly [EventName, object]

function eventsOf(moment: Moment, fold: Moments): Named[] {
  switch (moment.type) {
    case 'started':
      return [['RUN_STARTED', { status: 'pending' }]]
    case 'text':
      return [['TEXT_DELTA', { text: moment.text }]]
    case 'thinking':
      return [['THINKING_DELTA', { text: moment.text }]]
    case 'call': {
      const call = { toolCallId: moment.callId, toolName: moment.tool }
      return [
        ['TOOL_CALL_START', call],
        ['TOOL_CALL_END', { ...call, toolInput: moment.arguments }],
      ]
    }
    case 'result': {
      const { callId, tool, status, text } = moment
      return [['TOOL_RESULT', { toolCallId: callId, toolName: tool, status: status.toUpperCase(), text }]]
    }
    case 'state':
      return [ofState(moment, fold)]
    case 'ended':
      return [ofEnd(fold)]
    case 'other':
      return [['AGENT_EVENT', {}]]
  }
}

function ofState({ source }: Moment, { result }: Moments): Named {
  switch (source.type) {
    case 'turn.paused':
      if (source.reason === 'approval')
        return ['REQUIRE_CONFIRM', { status: 'awaiting_confirm', pendingConfirms: pendingConfirms(result) }]
      return ['STATUS', { status: 'running', reason: source.reason }]
    case 'approval.resolved':
      return ['STATUS', { status: 'running', approved: source.verdict === 'approved' }]
    case 'turn.claimed':
      // From the second worker on, the text of an incomplete answer is sent again from its beginning.
      return ['STATUS', { status: 'running', epoch: source.epoch }]
    case 'turn.released':
      return ['STATUS', { status: 'running' }]
    default:
      return ['AGENT_EVENT', {}]
  }
}

function ofEnd({ result }: Moments): Named {
  const { status, reason, text, error, output } = result
  const empty = failureOfResult(result)
  if (empty !== undefined) return ['RUN_ERROR', { status: 'error', error: empty.message, errorCode: empty.code }]
  if (status === 'finished') {
    const unknown = unknownCalls(result)
    return ['RUN_FINISHED', { status: 'success', reason, text, output, ...(unknown && { unknownOutcomes: unknown }) }]
  }
  if (status === 'cancelled') return ['RUN_ERROR', { status: 'cancelled', error: reason }]
  return ['RUN_ERROR', { status: 'error', error: error?.message, errorCode: error?.code }]
}

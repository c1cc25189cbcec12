// The frames of the task API: `message`, `tool_call`, `tool_result`, `state`, and `done` or `error` at the end.

import type { SessionKey } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { failureOfResult, unknownCalls } from '../../failures.ts'
import { approvalsOf } from '../snapshot.ts'
import type { Moment, Moments } from './moments.ts'
import type { Encode, TaskFrame } from './reading.ts'

export const taskFrames =
  (taskId: string, key: SessionKey): Encode =>
  (moment, fold): TaskFrame[] => {
    const frame = (event: string, data: object): TaskFrame[] => [{ id: moment.at, event, data: { taskId, ...data } }]
    switch (moment.type) {
      case 'text':
        return frame('message', { text: moment.text, step: moment.step })
      case 'call': {
        const { callId, tool } = moment
        return frame('tool_call', { callId, tool, arguments: parsed(moment.arguments) })
      }
      case 'result': {
        const { callId, tool, status, text } = moment
        return frame('tool_result', { callId, tool, status, text })
      }
      case 'started':
      case 'state':
        return frame('state', stateOf(moment, fold, key))
      case 'ended':
        return frame(fold.result.status === 'failed' || failureOfResult(fold.result) ? 'error' : 'done', endOf(fold))
      default:
        return []
    }
  }

function stateOf({ source }: Moment, { task, result }: Moments, key: SessionKey): object {
  return {
    state: task?.state,
    since: task?.since,
    // From the second worker on, the text of an incomplete answer is sent again from its beginning.
    ...(source.type === 'turn.claimed' && { epoch: source.epoch }),
    ...(result.status === 'paused' && { reason: result.reason }),
    ...(result.approvals.length > 0 && { approvals: approvalsOf(key, result) }),
    ...(result.pending.length > 0 && { pending: result.pending }),
  }
}

function endOf({ task, result }: Moments): object {
  const { reason, text, output, usage, error } = result
  if (error !== undefined) return { state: task?.state, ...error }
  const empty = failureOfResult(result)
  if (empty !== undefined) return { state: 'FAILED', code: empty.code, message: empty.message, usage }
  const unknown = unknownCalls(result)
  return {
    state: task?.state,
    reason,
    result: text,
    ...defined({ output }),
    usage,
    ...(unknown && { unknownOutcomes: unknown }),
  }
}

/** Arguments that are not JSON are shown unchanged; the call will be rejected. */
function parsed(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

// The state of a task, for clients without a stream.
import { type Event, type SessionKey, type Task, type TurnResult, turnResult } from '@oxbow/core'
import { defined, dwellTimes, taskOf } from '@oxbow/core/internal'
import { z } from 'zod'
import { publicApprovalId } from '../approvals/public-id.ts'
import { failureOfResult, unknownCalls } from '../failures.ts'
import { unknownOutcomes } from '../http/schemas.ts'
import { eventsOfTask, type TaskPlace } from './place.ts'

const state = z.enum(['CREATED', 'RUNNING', 'WAITING_TOOL', 'WAITING_USER', 'COMPLETED', 'FAILED', 'CANCELLED'])
const usage = z.looseObject({ inputTokens: z.number(), outputTokens: z.number(), estimated: z.boolean() })
const call = z.looseObject({ callId: z.string(), tool: z.string(), arguments: z.record(z.string(), z.unknown()) })

export const taskSnapshot = z.object({
  taskId: z.string(),
  sessionId: z.string(),
  state,
  since: z.number().describe('When this state began, in milliseconds since 1970.'),
  createdAt: z.number(),
  dwellMs: z.partialRecord(state, z.number()).describe('Milliseconds in each state so far.'),
  reason: z.string().optional().describe('Why the task is waiting, or how it ended.'),
  result: z.string().optional().describe('The answer of an ended task, if any.'),
  output: z.unknown().optional().describe('The structured answer, if requested.'),
  error: z.object({ code: z.string(), message: z.string(), reference: z.string().optional() }).optional(),
  approvals: z
    .array(
      call.extend({
        id: z.string().describe('For /api/approvals/{id}.'),
        approvalId: z.string().describe('The id within the session.'),
        expiresAt: z.number(),
      }),
    )
    .describe('Open approvals.'),
  pending: z.array(call).describe('External calls whose results the caller must send.'),
  rounds: z
    .array(
      z.object({
        step: z.number(),
        model: z.string(),
        finishReason: z.string(),
        totalMs: z.number(),
        usage,
        calls: z.number(),
      }),
    )
    .describe('Time and tokens of each model call.'),
  usage,
  unknownOutcomes,
})
export type TaskSnapshot = z.output<typeof taskSnapshot>

export async function snapshotOf(taskId: string, place: TaskPlace): Promise<TaskSnapshot> {
  const events = await eventsOfTask(place)
  const task = taskOf(place.turnId, events) as Task
  const result = turnResult(place.turnId, events)
  const empty = failureOfResult(result)
  const unknown = unknownCalls(result)
  return {
    taskId,
    sessionId: place.session.key.session,
    state: empty === undefined ? task.state : 'FAILED',
    since: task.since,
    createdAt: events[0]!.at,
    dwellMs: dwellTimes(task, Date.now()),
    ...(result.reason !== '' && { reason: result.reason }),
    ...(result.status === 'finished' && empty === undefined && { result: result.text }),
    ...defined({ output: result.output, error: result.error }),
    ...(empty !== undefined && { error: { code: empty.code, message: empty.message } }),
    approvals: approvalsOf(place.session.key, result),
    pending: result.pending.map((it) => ({ ...it })),
    rounds: events.filter((it) => it.type === 'model.finished').map(roundOf),
    usage: result.usage,
    ...(unknown && { unknownOutcomes: unknown }),
  }
}

/** Open approvals, with the ids of the approvals API. */
export const approvalsOf = (key: SessionKey, { approvals }: TurnResult) =>
  approvals.map((it) => ({ id: publicApprovalId(key, it.approvalId), ...it }))

const roundOf = ({ step, model, finishReason, timing, usage: tokens, message }: Event<'model.finished'>) => ({
  step,
  model,
  finishReason,
  totalMs: timing.totalMs,
  usage: tokens,
  calls: message.blocks.filter((it) => it.type === 'call').length,
})

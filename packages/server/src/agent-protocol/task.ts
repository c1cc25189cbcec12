// A task of the protocol is a turn in a session of the same id. Its submission is in the journal, so any replica can
// answer for it.

import { type Engine, type Event, type Principal, type TurnResult, turnResult } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { failureOfResult, unknownCalls } from '../failures.ts'
import { HttpError } from '../http/errors.ts'
import { toId } from '../http/ids.ts'
import { unknownOutcomes } from '../http/schemas.ts'
import type { Caller } from '../principal.ts'
import { eventsOfTask, findTask, type TaskPlace } from '../tasks/place.ts'
import { type AgentRequest, CONTEXT_KEY } from './factory.ts'
import { attributesIn, submittedText } from './submission.ts'

export const taskPath = z.object({ taskId: z.string().min(1).max(1_000) })

export interface ProtocolTask extends TaskPlace {
  readonly taskId: string
  readonly started: Event<'turn.started'>
  readonly events: readonly Event[]
  readonly result: TurnResult
}

/** Any non-blank string may be an id; one that the engine does not accept is stored as a digest. */
export const sessionIdOf = (taskId: string): string => toId(taskId)!

export async function protocolTask(
  engine: Engine,
  owner: Caller['owner'],
  taskId: string,
): Promise<ProtocolTask | undefined> {
  // A blank id is never submitted.
  if (taskId.trim() === '') return undefined
  const place = await findTask(engine, owner, sessionIdOf(taskId))
  if (place === undefined) return undefined
  const events = await eventsOfTask(place)
  const started = events[0] as Event<'turn.started'>
  return { ...place, taskId, started, events, result: turnResult(place.turnId, events) }
}

/** @throws HttpError 404 `unknown_task` */
export async function existingProtocolTask(
  engine: Engine,
  owner: Caller['owner'],
  taskId: string,
): Promise<ProtocolTask> {
  const task = await protocolTask(engine, owner, taskId)
  if (task === undefined) throw new HttpError(404, 'unknown_task', `There is no task ${JSON.stringify(taskId)}.`)
  return task
}

export interface Kept {
  readonly agentId: string | undefined
  readonly context: Readonly<Record<string, unknown>>
}

/** The original submission; empty for a task that was submitted over another surface. */
export function keptWith({ options }: Event<'turn.started'>): Kept {
  const kept = options.attributes?.[CONTEXT_KEY] as Kept | undefined
  return { agentId: kept?.agentId, context: kept?.context ?? {} }
}

export function requestFor(
  taskId: string,
  { agentId, context }: Kept,
  principal: Principal,
  more: Pick<AgentRequest, 'input' | 'resume'>,
): AgentRequest {
  return {
    taskId,
    agentId,
    userId: submittedText(context, 'user_id'),
    parentSessionId: submittedText(context, 'parent_session_id'),
    context,
    attributes: attributesIn(context),
    principal,
    ...more,
  }
}

export type TaskStatus = 'pending' | 'running' | 'awaiting_confirm' | 'success' | 'error' | 'cancelled'

export function protocolStatusOf(result: TurnResult, claimed: boolean): TaskStatus {
  const { status, reason } = result
  if (status === 'finished') return failureOfResult(result) === undefined ? 'success' : 'error'
  if (status === 'failed') return 'error'
  if (status === 'cancelled') return 'cancelled'
  if (status === 'paused') return reason === 'approval' ? 'awaiting_confirm' : 'running'
  return claimed ? 'running' : 'pending'
}

export const pendingConfirm = z.object({
  toolCallId: z.string(),
  toolName: z.string(),
  toolInputJson: z.string(),
})

export const pendingConfirms = ({ approvals }: TurnResult): z.output<typeof pendingConfirm>[] =>
  approvals.map((it) => ({
    toolCallId: it.callId,
    toolName: it.tool,
    toolInputJson: JSON.stringify(it.arguments),
  }))

export const snapshot = z.object({
  task_id: z.string(),
  agent_id: z.string().describe('The agent that runs the task.'),
  status: z.enum(['pending', 'running', 'awaiting_confirm', 'success', 'error', 'cancelled']),
  result: z.string().optional(),
  error: z.string().optional(),
  error_code: z.string().optional(),
  pending_confirms: z.array(pendingConfirm).optional(),
  parent_session_id: z.string().optional(),
  reason: z.string().optional().describe('Why a result is incomplete: `length`, `filtered`, `max_steps` and others.'),
  unknown_outcomes: unknownOutcomes,
})

export function protocolTaskOf({ taskId, started, events, result }: ProtocolTask): z.output<typeof snapshot> {
  const status = protocolStatusOf(
    result,
    events.some((it) => it.type === 'turn.claimed'),
  )
  const empty = failureOfResult(result)
  const unknown = unknownCalls(result)
  const parent = submittedText(keptWith(started).context, 'parent_session_id')
  return {
    task_id: taskId,
    agent_id: started.agent.name,
    status,
    ...(status === 'success' && { result: result.text }),
    ...(status === 'success' && result.reason !== 'completed' && { reason: result.reason }),
    ...(empty !== undefined && { error: empty.message, error_code: empty.code }),
    ...(unknown && { unknown_outcomes: unknown }),
    ...(status === 'cancelled' && { error: result.reason, error_code: 'cancelled' }),
    ...(result.error !== undefined && { error: result.error.message, error_code: result.error.code }),
    ...(status === 'awaiting_confirm' && { pending_confirms: pendingConfirms(result) }),
    ...defined({ parent_session_id: parent }),
  }
}

// Routes that read, pause, resume and cancel a task.
import type { ApprovalDecision, Engine, Principal } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { editedArguments, errorAnswer, only, userQuery, whose } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'
import { existingTask, type TaskPlace, taskId } from './place.ts'
import { snapshotOf, taskSnapshot } from './snapshot.ts'

const params = z.object({ taskId })
const reason = z.string().max(500).optional()
const notFound = { description: 'The task does not exist.', schema: errorAnswer }

export function taskRoute(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/agent/task/{taskId}',
    id: 'getTask',
    summary: 'The state of a task, the time spent in each state, and its result or what it is waiting for.',
    params,
    query: userQuery,
    answers: { 200: { description: 'The task.', schema: taskSnapshot }, 404: notFound },
    async handle({ params: { taskId }, query }, c) {
      const { owner } = callerOf(c, query)
      return c.json(await snapshotOf(taskId, await existingTask(engine, owner, taskId)))
    },
  })
}

export function cancelTaskRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/agent/task/{taskId}/cancel',
    id: 'cancelTask',
    summary: 'Requests the cancellation of a task. An ended task does not change.',
    params,
    body: only({ ...whose, reason }),
    bodyOptional: true,
    answers: { 200: { description: 'The current state of the task.', schema: taskSnapshot }, 404: notFound },
    async handle({ params: { taskId }, body }, c) {
      const { owner, principal } = callerOf(c, body)
      const { session, turnId } = await existingTask(engine, owner, taskId)
      await session.interrupt({ turnId, principal, ...defined({ reason: body.reason }) })
      return c.json(await snapshotOf(taskId, await existingTask(engine, owner, taskId)))
    },
  })
}

export function pauseTaskRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/agent/task/{taskId}/pause',
    id: 'pauseTask',
    summary: 'Pauses a task before its next step, until it is resumed.',
    params,
    body: only({ ...whose, reason }),
    bodyOptional: true,
    answers: {
      202: { description: 'The current state of the task.', schema: taskSnapshot },
      404: notFound,
      409: { description: 'The task has ended, or has not started yet.', schema: errorAnswer },
    },
    async handle({ params: { taskId }, body }, c) {
      const { owner, principal } = callerOf(c, body)
      const { session, turnId } = await existingTask(engine, owner, taskId)
      const hit = await session.pause({
        turnId,
        principal,
        ...defined({ reason: body.reason }),
      })
      if (hit === undefined)
        throw new HttpError(409, 'task_not_running', 'The task has ended, or another turn of its session runs first.')
      return c.json(await snapshotOf(taskId, await existingTask(engine, owner, taskId)), 202)
    },
  })
}

const decision = only({
  callId: z.string().optional(),
  approvalId: z.string().optional(),
  approved: z.boolean('must be true or false'),
  reason: z.string().max(2_000).optional(),
  arguments: editedArguments.optional().describe('Replaces the arguments of the call.'),
}).refine((it) => it.callId !== undefined || it.approvalId !== undefined, 'callId or approvalId is required')

export function resumeTaskRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/agent/task/{taskId}/resume',
    id: 'resumeTask',
    summary: 'Resumes a paused task, or decides on its waiting calls.',
    params,
    body: only({ ...whose, decisions: z.array(decision).max(1_000).optional() }),
    bodyOptional: true,
    answers: {
      202: { description: 'The current state of the task.', schema: taskSnapshot },
      400: { description: 'Edited arguments are invalid; nothing is decided.', schema: errorAnswer },
      403: { description: 'The caller may not decide on this call.', schema: errorAnswer },
      404: notFound,
      409: { description: 'The task is not waiting.', schema: errorAnswer },
    },
    async handle({ params: { taskId }, body }, c) {
      const { owner, principal } = callerOf(c, body)
      const place = await existingTask(engine, owner, taskId)
      if (isCancelling(place))
        throw new HttpError(409, 'task_cancelling', 'The task is being cancelled. It cannot be resumed.')
      const { decisions = [] } = body
      const named = decisions.map((it) => ({
        approvalId: it.approvalId ?? approvalOf(place, it.callId!),
        decision: decisionOf(it),
      }))
      if (named.length === 0) await release(place, principal)
      else await place.session.decideAll(named, { principal })
      return c.json(await snapshotOf(taskId, await existingTask(engine, owner, taskId)), 202)
    },
  })
}

const decisionOf = ({ approved, reason, arguments: edited }: z.infer<typeof decision>): ApprovalDecision => ({
  verdict: approved ? 'approved' : 'denied',
  ...defined({ reason, arguments: edited }),
})

async function release({ session, turnId, state }: TaskPlace, principal: Principal): Promise<void> {
  const { turn } = state
  if (turn?.turnId !== turnId || (!turn.pauseRequested && turn.paused?.reason !== 'recovery_limit'))
    throw new HttpError(
      409,
      'task_not_paused',
      turn?.paused?.reason === 'approval'
        ? 'The task is waiting for approvals. Decide on each call in `decisions`.'
        : 'The task was not paused.',
    )
  await session.release({ principal })
}

/** Whether cancellation was requested and the worker has not handled it yet. */
export const isCancelling = ({ state, turnId }: TaskPlace): boolean =>
  state.turn?.turnId === turnId && state.turn.interrupt !== undefined

/** @throws HttpError 409 */
export function approvalOf({ state, turnId }: TaskPlace, callId: string): string {
  const call = state.turn?.turnId === turnId ? state.turn.calls.find((it) => it.callId === callId) : undefined
  const { approval } = call ?? {}
  if (approval === undefined || approval.resolved !== undefined || call?.finished !== undefined)
    throw new HttpError(
      409,
      'call_not_waiting',
      `Call ${JSON.stringify(callId)} of this task is not waiting for a decision.`,
    )
  return approval.requested.approvalId
}

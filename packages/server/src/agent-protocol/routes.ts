// Routes below /tasks/{taskId}: snapshot, wait, cancel, resume and events.

import { OxbowError } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, only } from '../http/schemas.ts'
import { within } from '../http/within.ts'
import { callerOf } from '../principal.ts'
import { lastEventId } from '../stream/last-event-id.ts'
import { approvalOf, isCancelling } from '../tasks/acting.ts'
import { fromNowOn, untilSettled } from '../tasks/stream/reading.ts'
import { streamTask, type TaskStreams } from '../tasks/stream/stream.ts'
import { protocolEvents } from './events.ts'
import { fileRoutes } from './files.ts'
import { detailIn } from './submission.ts'
import { choose, principalFor, type Submitting, submitTaskRoute } from './submit.ts'
import { existingProtocolTask, keptWith, protocolTaskOf, requestFor, snapshot, taskPath } from './task.ts'

export type AgentProtocol = Submitting & Pick<TaskStreams, 'streams' | 'streamSlots' | 'broadcasts' | 'rights'>

const SECONDS_RULE = 'must be a number of seconds, 0 or more'
const MAX_SECONDS = 86_400
/** Clients send huge limits to mean "as long as necessary"; after a day they get the current state of the task. */
const seconds = z.coerce
  .number(SECONDS_RULE)
  .min(0, SECONDS_RULE)
  .transform((it) => Math.min(it, MAX_SECONDS))

const notFound = { description: 'The task does not exist.', schema: errorAnswer }

export function agentProtocolRoutes(deps: AgentProtocol): Route[] {
  if (!deps.config.enabled) return []
  return [
    submitTaskRoute(deps),
    snapshotRoute(deps),
    waitRoute(deps),
    cancelRoute(deps),
    eventsRoute(deps),
    resumeRoute(deps),
    ...fileRoutes(deps.engine),
  ]
}

function snapshotRoute({ engine }: AgentProtocol): Route {
  return route({
    method: 'get',
    path: '/tasks/{taskId}',
    id: 'getProtocolTask',
    summary: 'Agent Protocol: the current state of a task.',
    params: taskPath,
    answers: { 200: { description: 'The task.', schema: snapshot }, 404: notFound },
    async handle({ params: { taskId } }, c) {
      return c.json(protocolTaskOf(await existingProtocolTask(engine, callerOf(c).owner, taskId)))
    },
  })
}

function waitRoute({ engine, rights }: AgentProtocol): Route {
  return route({
    method: 'get',
    path: '/tasks/{taskId}/wait',
    id: 'waitForProtocolTask',
    summary: 'Agent Protocol: waits until the task ends or needs a decision, up to the time limit.',
    params: taskPath,
    query: only({ timeout_seconds: seconds.default(7_200) }),
    answers: { 200: { description: 'The state of the task at that time.', schema: snapshot }, 404: notFound },
    async handle({ params: { taskId }, query }, c) {
      const caller = callerOf(c)
      const { owner } = caller
      const task = await existingProtocolTask(engine, owner, taskId)
      const mayStillRead = rights.before(caller)
      await within(c, query.timeout_seconds * 1_000, (signal) =>
        untilSettled(task, (reason) => reason === 'approval', signal),
      )
      await mayStillRead()
      return c.json(protocolTaskOf(await existingProtocolTask(engine, owner, taskId)))
    },
  })
}

function cancelRoute({ engine }: AgentProtocol): Route {
  return route({
    method: 'post',
    path: '/tasks/{taskId}/cancel',
    id: 'cancelProtocolTask',
    summary: 'Agent Protocol: requests the cancellation of a task. An ended task does not change.',
    params: taskPath,
    answers: { 200: { description: 'The current state of the task.', schema: snapshot }, 404: notFound },
    async handle({ params: { taskId } }, c) {
      const { owner, principal } = callerOf(c)
      const { session, turnId } = await existingProtocolTask(engine, owner, taskId)
      await session.interrupt({ turnId, principal, reason: 'cancelled by the caller' })
      return c.json(protocolTaskOf(await existingProtocolTask(engine, owner, taskId)))
    },
  })
}

function eventsRoute(deps: AgentProtocol): Route {
  return route({
    method: 'get',
    path: '/tasks/{taskId}/events',
    id: 'streamProtocolTask',
    summary: 'Agent Protocol: streams the events of a task, from its start or after `from_seq`.',
    params: taskPath,
    headers: z.object({ 'Last-Event-ID': z.string().optional().describe('Used when `from_seq` is missing.') }),
    query: only({ from_seq: z.string().optional().describe('The `seq` of the last received event.') }),
    answers: {
      200: { description: 'Events, as server-sent events.', contentType: 'text/event-stream' },
      404: notFound,
    },
    async handle({ params: { taskId }, query }, c) {
      const { engine, config } = deps
      if (!config.streaming)
        throw new HttpError(404, 'streaming_disabled', 'Streaming is disabled. Use GET /tasks/{taskId}/wait.')
      const caller = callerOf(c)
      const task = await existingProtocolTask(engine, caller.owner, taskId)
      const given = lastEventId(c, query.from_seq, 'from_seq')
      const after = given ?? (config.replay ? 0 : await fromNowOn(task))
      const detail = detailIn(keptWith(task.started).context)
      return streamTask({ ...deps, limitMs: config.streamLimitMs }, c, caller, task, {
        after,
        encode: protocolEvents(taskId, task.started.agent.name, detail),
        form: `protocol ${taskId}`,
      })
    },
  })
}

/**
 * The protocol's decisions cannot edit arguments. Unknown fields are rejected, so that an intended edit is not silently
 * ignored.
 */
const decision = only({
  toolCallId: z.string().optional(),
  tool_call_id: z.string().optional(),
  approved: z.union([z.boolean(), z.enum(['true', 'false']).transform((it) => it === 'true')], 'must be true or false'),
  reason: z.string().max(2_000).optional().describe('For the model and for the record.'),
})
  .refine((it) => it.toolCallId !== undefined || it.tool_call_id !== undefined, 'toolCallId is required')
  .refine(
    (it) => it.toolCallId === undefined || it.tool_call_id === undefined || it.toolCallId === it.tool_call_id,
    'toolCallId and tool_call_id name different calls. Send one of them.',
  )

function resumeRoute(deps: AgentProtocol): Route {
  const { engine, config } = deps
  return route({
    method: 'post',
    path: '/tasks/{taskId}/resume',
    id: 'resumeProtocolTask',
    summary: 'Agent Protocol: decides on waiting calls; calls that are not named keep waiting.',
    params: taskPath,
    body: only({ decisions: z.array(decision).min(1, 'must not be empty').max(1_000) }),
    answers: {
      200: {
        description: 'Decided, or `error` when the agent of the task no longer exists.',
        schema: z.object({ task_id: z.string(), status: z.enum(['running', 'error']) }),
      },
      403: { description: 'The caller may not decide on this call.', schema: errorAnswer },
      404: notFound,
      409: { description: 'The task is not waiting for this decision.', schema: errorAnswer },
    },
    async handle({ params: { taskId }, body }, c) {
      const caller = callerOf(c)
      const task = await existingProtocolTask(engine, caller.owner, taskId)
      if (!config.hitl)
        throw new HttpError(
          409,
          'hitl_disabled',
          'Approvals are disabled for tasks of this service. Set agentProtocol.hitl to enable them.',
        )
      if (task.result.approvals.length === 0 || isCancelling(task))
        throw new HttpError(409, 'task_not_waiting', 'The task is not waiting for a decision.')
      const decisions = body.decisions.map(({ toolCallId, tool_call_id, approved, reason }) => ({
        approvalId: approvalOf(task, (toolCallId ?? tool_call_id)!),
        decision: {
          verdict: approved ? ('approved' as const) : ('denied' as const),
          ...defined({ reason }),
        },
      }))

      const request = requestFor(taskId, keptWith(task.started), task.started.principal, { input: '', resume: true })
      const chosen = await choose(deps, request)
      const failure =
        'failure' in chosen
          ? chosen.failure
          : chosen.agent.name === task.started.agent.name
            ? undefined
            : {
                code: 'agent_changed',
                message: `The task was started by the agent ${task.started.agent.name}, not ${chosen.agent.name}.`,
              }
      if (failure !== undefined) {
        await task.session.fail(task.turnId, failure)
        return c.json({ task_id: taskId, status: 'error' as const })
      }
      await task.session
        .decideAll(decisions, { principal: principalFor(caller, keptWith(task.started)) })
        .catch((error: unknown) => {
          const isGone = error instanceof OxbowError && error.code === 'unknown_approval'
          throw isGone
            ? new HttpError(409, 'task_not_waiting', 'The task is no longer waiting for this decision.')
            : error
        })
      return c.json({ task_id: taskId, status: 'running' as const })
    },
  })
}

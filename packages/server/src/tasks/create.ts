// POST /agent/task: accepts a task; with `wait` it also waits for the result.
import { randomUUID } from 'node:crypto'
import type { Agent, Engine } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { toId } from '../http/ids.ts'
import { type Route, route } from '../http/route.ts'
import { given, messageText, only, optionalId, wholeNumber, whose } from '../http/schemas.ts'
import { within } from '../http/within.ts'
import type { TurnSlots } from '../identity/limits/turn-slots.ts'
import { callerOf } from '../principal.ts'
import type { Rights } from '../stream/rights.ts'
import { mayBeSet } from './attributes.ts'
import { existingTask, taskIdOf } from './place.ts'
import { snapshotOf, taskSnapshot } from './snapshot.ts'
import { untilSettled } from './stream/reading.ts'

const MAX_WAIT_SECONDS = 60

const accepted = z.object({ taskId: z.string(), sessionId: z.string(), state: z.string() })

export function createTaskRoute(
  engine: Engine,
  rights: Rights,
  limits: { maxMessageLength: number },
  slots: TurnSlots,
): Route {
  return route({
    method: 'post',
    path: '/agent/task',
    id: 'createTask',
    summary: 'Accepts a task and returns its id at once; with `wait` it waits for the result of a short task.',
    headers: z.object({ 'Idempotency-Key': z.string().optional().describe('Makes a retry safe, like `taskId`.') }),
    query: only({
      wait: wholeNumber(0, MAX_WAIT_SECONDS)
        .default(0)
        .describe('Seconds to wait until the task ends or needs an approval.'),
    }),
    body: only({
      ...whose,
      message: messageText(limits.maxMessageLength),
      taskId: optionalId.describe('Makes a retry safe: the same id returns the same task. Default: a new id.'),
      sessionId: optionalId.describe('Default: a new session.'),
      agent: optionalId.describe('Default: the session’s agent, or the first agent.'),
      tools: z.array(z.string()).optional().describe('The tools that may run. Default: all tools of the agent.'),
      deny: z.array(z.string()).optional().describe('Additional deny rules; they can only restrict.'),
      attributes: z
        .record(z.string().refine(mayBeSet, 'is reserved. Choose another name.'), z.unknown())
        .optional()
        .describe('For tools and middleware; never in the prompt.'),
      maxSteps: z.number().int().positive().max(10_000).optional(),
    }),
    answers: {
      200: {
        description: 'The task has ended, or is waiting for an approval or a result (only with `wait`).',
        schema: taskSnapshot,
      },
      202: { description: 'The task is accepted, now or earlier.', schema: accepted },
    },
    async handle({ body, query }, c) {
      const { owner, principal } = callerOf(c, body)
      const turnId = given(body.taskId) ?? toId(c.req.header('idempotency-key')) ?? randomUUID()
      const sessionId = given(body.sessionId) ?? turnId
      const named = given(body.agent)
      const session = engine.session({ ...owner, session: sessionId }, agentNamed(engine, named))
      const state = await session.state()
      const agent = engine.agents.get(state.agent || session.agent)!
      if (named !== undefined && named !== agent.name)
        throw new HttpError(
          409,
          'agent_fixed',
          `Session ${sessionId} belongs to the agent ${agent.name}: got ${named}. Leave \`agent\` out.`,
        )
      const { maxSteps } = agent.limits
      if (body.maxSteps !== undefined && body.maxSteps > maxSteps)
        throw new HttpError(
          400,
          'invalid_request',
          `maxSteps must be at most ${maxSteps} for ${agent.name}; got ${body.maxSteps}.`,
        )
      const deny = [...(body.deny ?? []), ...others(agent, body.tools)]

      const release = slots.take(principal, session.key, turnId)
      try {
        await session.submit(body.message, {
          turnId,
          principal,
          surface: 'task',
          ...(deny.length > 0 && { deny }),
          ...defined({ attributes: body.attributes, maxSteps: body.maxSteps }),
        })
      } catch (error) {
        release?.()
        throw error
      }
      // The task continues without its client. Its slot is free when it ends or pauses.
      if (release !== undefined) session.wait(turnId).then(release, release)

      const taskId = taskIdOf(sessionId, turnId)
      if (query.wait > 0) {
        const mayStillRead = rights.before({ owner, principal })
        const place = await existingTask(engine, owner, taskId)
        await within(c, query.wait * 1_000, (signal) => untilSettled(place, () => true, signal))
        await mayStillRead()
      }
      const snapshot = await snapshotOf(taskId, await existingTask(engine, owner, taskId))
      if (query.wait > 0 && settled(snapshot.state)) return c.json(snapshot, 200)
      return c.json({ taskId, sessionId, state: snapshot.state }, 202)
    },
  })
}

const settled = (state: string): boolean => /^(COMPLETED|FAILED|CANCELLED|WAITING_USER)$/.test(state)

function agentNamed(engine: Engine, name: string | undefined): { agent?: string } {
  if (name === undefined) return {}
  if (engine.agents.has(name)) return { agent: name }
  throw new HttpError(
    400,
    'unknown_agent',
    `Unknown agent ${JSON.stringify(name)}. Available: ${[...engine.agents.keys()].join(', ')}.`,
  )
}

/** Deny rules for every tool that is not in the list. Reading the task's own artifacts is always allowed. */
function others(agent: Agent, tools: readonly string[] | undefined): string[] {
  if (tools === undefined) return []
  const unknown = tools.filter((it) => !agent.tools.has(it))
  if (unknown.length > 0)
    throw new HttpError(
      400,
      'unknown_tool',
      `Unknown tool ${unknown.join(', ')} of ${agent.name}. Available: ${[...agent.tools.keys()].join(', ')}.`,
    )
  return [...agent.tools.keys()].filter((it) => !tools.includes(it) && it !== 'read_artifact')
}

// POST /tasks: clients choose the task's id, so they can repeat the request safely.
import { type Agent, type Engine, OxbowError, type Principal, type RunOptions } from '@oxbow/core'
import { matchesWildcard } from '@oxbow/core/internal'
import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { HttpError } from '../http/errors.ts'
import { toId } from '../http/ids.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer } from '../http/schemas.ts'
import type { TurnSlots } from '../identity/limits/turn-slots.ts'
import { type Caller, callerOf } from '../principal.ts'
import {
  type AgentFactory,
  type AgentProtocolHost,
  type AgentRequest,
  ATTRIBUTES_KEY,
  CONTEXT_KEY,
  promoteAttributes,
} from './factory.ts'
import { type Submission, submission, submittedText } from './submission.ts'
import { type Kept, protocolTask, requestFor, sessionIdOf } from './task.ts'

export interface Submitting {
  readonly engine: Engine
  readonly config: Config['agentProtocol']
  readonly host: AgentProtocolHost
  readonly slots: TurnSlots
  readonly maxMessageLength: number
  /** Logs an error that the caller must not see, and returns its reference. */
  readonly report: (error: unknown) => string
}

export function submitTaskRoute(deps: Submitting): Route {
  const { engine, slots } = deps
  return route({
    method: 'post',
    path: '/tasks',
    id: 'submitProtocolTask',
    summary: 'Agent Protocol: submits a task under an id that the caller chooses.',
    body: submission(deps.maxMessageLength),
    answers: {
      200: {
        description: 'Accepted, now or earlier.',
        schema: z.object({ task_id: z.string(), status: z.literal('pending') }),
      },
      400: { description: 'task_id is missing, or the body is invalid.', schema: errorAnswer },
      409: {
        description: 'The task has ended, or the id belongs to a session that is not a task.',
        schema: errorAnswer,
      },
    },
    async handle({ body }, c) {
      const caller = callerOf(c)
      const known = await protocolTask(engine, caller.owner, body.task_id)
      if (known !== undefined && /^(finished|failed|cancelled)$/.test(known.result.status))
        throw new HttpError(409, 'task_finished', `Task ${JSON.stringify(body.task_id)} has ended. Use a new task_id.`)
      if (known === undefined) {
        const session = engine.session({ ...caller.owner, session: sessionIdOf(body.task_id) })
        const { seq } = await session.state()
        if (seq > 0)
          throw new HttpError(
            409,
            'task_id_taken',
            `${JSON.stringify(body.task_id)} is already used by a session that is not a task. Use a new task_id.`,
          )
        const release = slots.take(caller.principal, session.key, session.key.session)
        await submit(deps, body, caller).catch(async (error: unknown) => {
          release?.()
          // A concurrent submission of the same id won, and its task is this one.
          const isSame = error instanceof OxbowError && error.code === 'turn_conflict'
          if (!isSame || (await protocolTask(engine, caller.owner, body.task_id)) === undefined) throw error
        })
        if (release !== undefined) session.wait(session.key.session).then(release, release)
      }
      return c.json({ task_id: body.task_id, status: 'pending' as const })
    },
  })
}

async function submit(deps: Submitting, body: Submission, caller: Caller): Promise<void> {
  const { engine, config, host } = deps
  const { task_id: taskId, input } = body
  const kept: Kept = { agentId: body.agent_id ?? undefined, context: body.context ?? {} }
  const principal = principalFor(caller, kept)
  const request = requestFor(taskId, kept, principal, { input, resume: false })
  const chosen = await choose(deps, request)
  const agent = 'agent' in chosen ? chosen.agent : [...engine.agents.values()][0]!
  const attributes: Record<string, unknown> = { [ATTRIBUTES_KEY]: request.attributes }
  for (const it of [promoteAttributes(...config.promote), ...(host.customizers ?? [])])
    Object.assign(attributes, await it(request))
  attributes[CONTEXT_KEY] = kept

  const turnId = sessionIdOf(taskId)
  const session = engine.session({ ...caller.owner, session: turnId }, { agent: agent.name })
  await session.submit(input.trim() === '' ? '(no input)' : input, {
    turnId,
    principal,
    surface: 'agent-protocol',
    attributes,
    deny: denyRules(body, agent),
    ...(!config.hitl && agent.policy.mode !== 'bypass' && { mode: 'dont-ask' as const }),
    ...('failure' in chosen && { failure: chosen.failure }),
  })
}

/** The principal of a task. With identity enabled it never comes from the body. */
export function principalFor({ owner, principal }: Caller, { context }: Kept): Principal {
  const user = toId(submittedText(context, 'user_id'))
  return principal === owner && user !== undefined ? { ...principal, user } : principal
}

export type Chosen = { readonly agent: Agent } | { readonly failure: NonNullable<RunOptions['failure']> }

/** Calls the factory; if it gives no agent, the task fails. */
export async function choose(
  { engine, host, report }: Pick<Submitting, 'engine' | 'host' | 'report'>,
  request: AgentRequest,
): Promise<Chosen> {
  const factory: AgentFactory = host.factory ?? defaultFactory(engine)
  try {
    const name = await factory(request)
    const agent = name === null || name === undefined ? undefined : engine.agents.get(name)
    if (agent !== undefined) return { agent }
    const asked = request.agentId === undefined ? 'this task' : `agent_id ${JSON.stringify(request.agentId)}`
    return { failure: { code: 'no_agent', message: `There is no agent for ${asked}.` } }
  } catch (error) {
    const message = 'The agent for this task could not be chosen.'
    return { failure: { code: 'no_agent', message, reference: report(error) } }
  }
}

const defaultFactory =
  ({ agents }: Engine): AgentFactory =>
  ({ agentId }) =>
    agentId !== undefined && agents.has(agentId) ? agentId : [...agents.keys()][0]

/**
 * A parent's rules may name tools that only the parent has; there is nothing to deny for them. A pattern that a tool
 * cannot interpret would deny nothing, so it denies the whole tool.
 */
function denyRules({ context }: Submission, { tools }: Agent): string[] {
  return (context?.deny_rules ?? []).flatMap(({ tool_name: rule, rule_content: content }) => {
    const [, named, inline] = /^([\w*-]+)(?:\((.+)\))?/s.exec(rule) ?? []
    if (named === undefined) return []
    const meant = [...tools.values()].filter((it) => matchesWildcard(named, it.name))
    const pattern = content ?? inline
    const isWhole = pattern === undefined && rule === named
    return meant.map((it) =>
      isWhole || pattern === undefined || it.matches === undefined ? it.name : `${it.name}(${pattern})`,
    )
  })
}

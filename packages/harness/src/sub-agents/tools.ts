// The tools of a delegating agent's model.
import {
  type ChildEnd,
  type ChildOptions,
  type ChildView,
  needsApproval,
  OxbowError,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
  tool,
} from '@oxbow/core'
import type { SubAgent } from './sub-agent.ts'

/** Time beyond the wait for a child: the engine's own overhead. */
const MARGIN_MS = 60_000
const MAX_WAIT_S = 600
const LONGEST_TIMER_MS = 2 ** 31 - 1

const id = { type: 'string', description: 'As agent_spawn and agent_list give it: agent_…' }
const background = {
  type: 'boolean',
  default: false,
  description: 'Continue at once; the result arrives as a message.',
}

export function delegationTools(
  agents: readonly SubAgent[],
  options: ChildOptions,
  backgroundAfterMs: number,
): readonly Tool[] {
  const names = agents.map((it) => it.agent.name)
  const list = agents.map((it) => `- ${it.agent.name}: ${it.description}`).join('\n')

  /** Waits for the child, requests its approval, or leaves it in the background. */
  async function settle(child: ChildView, { children, signal }: ToolContext): Promise<ToolResult> {
    const { childTurnId } = child
    if (child.background) return inBackground(child)
    const clock = AbortSignal.timeout(Math.min(backgroundAfterMs, LONGEST_TIMER_MS))
    try {
      const end = await children.wait(childTurnId, AbortSignal.any([signal, clock]), true)
      return 'reason' in end ? needsApproval(end) : resultOf(end)
    } catch (error) {
      if (signal.aborted || !clock.aborted) throw error
    }
    if (await children.detach(childTurnId)) return inBackground(child)
    return resultOf(await children.wait(childTurnId, signal))
  }

  /** A denial here is a denial there. */
  async function tellRefusal({ decision, children }: ToolContext): Promise<void> {
    if (decision !== undefined && decision.verdict !== 'approved') await children.refuse(decision)
  }

  const delegating = {
    effects: ['delegate'],
    idempotent: true,
    timeoutMs: backgroundAfterMs + MARGIN_MS,
    check: () => ({
      decision: 'allow',
      reason: 'Each call of the other agent is also judged under the rules of this one.',
    }),
  } satisfies Partial<ToolDefinition>

  return [
    tool({
      ...delegating,
      name: 'agent_spawn',
      description: `Gives a task to another agent and returns what it hands over. The agents:\n${list}`,
      input: {
        type: 'object',
        properties: {
          agent: { type: 'string', enum: names },
          task: { type: 'string', minLength: 1, description: 'What to do, with everything the agent needs to know.' },
          background,
        },
        required: ['agent', 'task'],
        additionalProperties: false,
      },
      async run(input, context) {
        await tellRefusal(context)
        const { agent, task, background: back } = input as { agent: string; task: string; background?: boolean }
        return settle(await context.children.open({ agent, task, background: back === true, ...options }), context)
      },
    }),
    tool({
      ...delegating,
      name: 'agent_send',
      description:
        'Sends a message to an agent that was started before. One that works reads it with its next step; one that has ' +
        'ended takes it as its next task and keeps its history.',
      input: {
        type: 'object',
        properties: { id, message: { type: 'string', minLength: 1 }, background },
        required: ['id', 'message'],
        additionalProperties: false,
      },
      async run(input, context) {
        await tellRefusal(context)
        const {
          id: session,
          message,
          background: back,
        } = input as { id: string; message: string; background?: boolean }
        const child = await context.children.send(session, message, { background: back === true, ...options })
        return child.joined
          ? `${session} works on "${child.task}" and reads this with its next step.`
          : settle(child, context)
      },
    }),
    tool({
      name: 'agent_list',
      description: 'Lists the agents that were started in this conversation, with their tasks and how these stand.',
      effects: ['read'],
      input: { type: 'object', properties: {}, additionalProperties: false },
      async run(_input, { children }) {
        const all = await children.list()
        return all.length === 0 ? 'No agent has been started.' : all.map(lineOf).join('\n')
      },
    }),
    tool({
      name: 'task_output',
      description: 'Shows what an agent has handed over, or has written and called so far.',
      effects: ['read'],
      input: { type: 'object', properties: { id }, required: ['id'], additionalProperties: false },
      async run(input, { children }) {
        const { status, text } = await children.output(String(input.id))
        return `${status}\n${text}`
      },
    }),
    tool({
      name: 'task_cancel',
      description: 'Stops an agent and all that work for it.',
      // It only stops agents that this conversation has started.
      effects: ['read'],
      input: { type: 'object', properties: { id }, required: ['id'], additionalProperties: false },
      async run(input, { children }) {
        const stopped = await children.cancel(String(input.id))
        return stopped ? 'It is being stopped.' : 'It had ended already.'
      },
    }),
    tool({
      name: 'wait_async_results',
      description: 'Waits until agents in the background have ended. Their results arrive as messages right after it.',
      effects: ['read'],
      timeoutMs: MAX_WAIT_S * 1_000 + MARGIN_MS,
      input: {
        type: 'object',
        properties: {
          ids: { type: 'array', items: id, description: 'Default: all.' },
          until: { enum: ['all', 'any'], default: 'all' },
          seconds: { type: 'number', minimum: 1, maximum: MAX_WAIT_S, default: 60 },
        },
        additionalProperties: false,
      },
      run: (input, context) => waitFor(input as Wait, context),
    }),
  ]
}

interface Wait {
  readonly ids?: readonly string[]
  readonly until?: 'all' | 'any'
  readonly seconds?: number
}

async function waitFor({ ids, until = 'all', seconds = 60 }: Wait, { children, signal }: ToolContext): Promise<string> {
  const all = await children.list()
  const unknown = ids?.find((it) => !all.some((child) => child.session === it))
  if (unknown !== undefined)
    throw new OxbowError('unknown_child', `Unknown agent ${JSON.stringify(unknown)} in this conversation.`)
  const meant = all.filter((it) => ids?.includes(it.session) ?? isOpen(it))
  if (meant.length === 0) return 'No agent works in the background.'
  const leave = new AbortController()
  const either = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1_000), leave.signal])
  const ends = meant.map((it) => children.wait(it.childTurnId, either))
  await (until === 'all' ? Promise.allSettled(ends) : Promise.any(ends).catch(() => {}))
  leave.abort()
  await Promise.allSettled(ends)
  signal.throwIfAborted()
  const now = await children.list()
  return now
    .filter((it) => meant.some((child) => child.session === it.session))
    .map(lineOf)
    .join('\n')
}

const isOpen = ({ status }: ChildView): boolean => status === 'running' || status === 'waits for an approval'

const lineOf = ({ session, agent, task, background: back, status }: ChildView): string =>
  `${session} (${agent}${back ? ', in the background' : ''}): ${status}. Task: ${task}`

const inBackground = ({ session, agent, task }: ChildView): string =>
  `${agent} works in the background as ${session} on "${task}". It is not done. Its result will come to you as a message; ` +
  'do not guess it. wait_async_results waits for it.'

/** @throws OxbowError `child_…`: only the agent's own hand-off can be a success */
function resultOf({ status, text }: ChildEnd): string {
  if (status === 'done' || status === 'partial' || status === 'blocked') return text
  throw new OxbowError(`child_${status}`, text)
}

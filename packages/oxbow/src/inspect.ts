// The definition of an agent for people: as the model receives it, and as the gate judges it.
import type { Agent, Part, PromptContext, Tool } from '@oxbow/core'
import { authorise, defined, matchesWildcard, mayEverRun, type PolicyAbove } from '@oxbow/core/internal'

export interface InspectedSection {
  /** The capability that contributed it; `agent`: its own definition. */
  readonly from: string
  readonly title: string
  readonly untrusted: boolean
  /** True when it may change in each step; `text` is that of the first step of a new session. */
  readonly moving: boolean
  readonly text: string
}

export interface InspectedTool {
  readonly name: string
  readonly from: string
  readonly description: string
  readonly effects: readonly string[]
  readonly timeoutMs: number
  readonly permission?: string
  readonly decision: 'allow' | 'ask' | 'deny'
  readonly rule: string
  readonly reason: string
  /** Rules or the tool's own check depend on the arguments: other calls may be decided differently. */
  readonly byArguments: boolean
  readonly input: object
}

export interface Inspected {
  readonly name: string
  readonly version: string
  readonly model: string
  readonly contextWindow?: number
  readonly mode: string
  /** The parent agent, whose rules apply to its calls too. */
  readonly parent?: string
  readonly prompt: readonly InspectedSection[]
  readonly tools: readonly InspectedTool[]
  readonly rules: {
    readonly allow: readonly { readonly rule: string; readonly from: string }[]
    readonly ask: readonly string[]
    readonly deny: readonly string[]
  }
  readonly middleware: readonly { readonly name: string; readonly from: string; readonly hooks: readonly string[] }[]
  readonly compacts: boolean
  readonly reviews: boolean
  readonly agents: readonly { readonly name: string; readonly model: string }[]
  readonly limits: Agent['limits']
  readonly sampling: Agent['sampling']
}

export async function inspect(agent: Agent, parent?: Agent): Promise<Inspected> {
  const { name, version, model, policy, parts, limits, sampling } = agent
  return {
    name,
    version,
    model: model.id,
    ...defined({ contextWindow: model.contextWindow }),
    mode: policy.mode,
    ...(parent && { parent: parent.name }),
    prompt: await sectionsOf(agent),
    tools: await Promise.all(parts.tools.map((it) => toolOf(agent, it, parent))),
    rules: {
      allow: parts.allow.map((it) => ({ rule: it.value, from: placeOf(it) })),
      ask: policy.ask.map((it) => it.text),
      deny: policy.deny.map((it) => it.text),
    },
    middleware: parts.middleware.map((it) => ({ name: it.value.name, from: placeOf(it), hooks: hooksOf(it.value) })),
    compacts: agent.compactor !== undefined,
    reviews: agent.review !== undefined,
    agents: agent.agents.map((it) => ({ name: it.name, model: it.model.id })),
    limits,
    sampling,
  }
}

/** `read_artifact` is added for tools with long results. */
const placeOf = ({ from }: Part<unknown>): string => from ?? 'agent'

/** In prompt order. */
async function sectionsOf({ name, instructions, parts }: Agent): Promise<InspectedSection[]> {
  const context: PromptContext = {
    session: { tenant: 'default', user: 'default', session: 'new' },
    turnId: 'first',
    agent: name,
    principal: { user: 'default' },
    attributes: {},
    signal: AbortSignal.timeout(10_000),
    slots: {},
  }
  const own = { from: 'agent', title: 'instructions', untrusted: false, moving: false, text: instructions }
  const brought = await Promise.all(
    parts.prompt.map(async ({ from = 'agent', value: { title, text, untrusted = false } }) => {
      const moving = typeof text === 'function'
      const shown = moving ? await text(context) : text
      return { from, title, untrusted, moving, text: shown ?? '' }
    }),
  )
  return [own, ...brought.filter((it) => !it.moving), ...brought.filter((it) => it.moving)]
}

async function toolOf({ policy }: Agent, part: Part<Tool>, parent: Agent | undefined): Promise<InspectedTool> {
  const tool = part.value
  const { name, description, effects, timeoutMs, permission, jsonSchema } = tool
  const above = parent && [asAbove(parent)]
  const rules = [policy, ...(above ?? [])].flatMap((it) => [...it.deny, ...it.ask, ...it.allow])
  // Assumes a caller with the permission.
  const principal = { user: 'default', permissions: permission === undefined ? [] : [permission] }
  const verdict = await authorise({
    tool,
    arguments: {},
    principal,
    policy: { ...policy, ...(above && { above }) },
  }).catch(() => ({
    decision: 'ask' as const,
    rule: `check:${name}`,
    reason: 'The tool’s own check decides by the arguments.',
  }))
  return {
    name,
    from: placeOf(part),
    description,
    effects,
    timeoutMs,
    ...defined({ permission }),
    ...verdict,
    byArguments:
      tool.check !== undefined || rules.some((it) => it.pattern !== undefined && matchesWildcard(it.tool, name)),
    input: jsonSchema,
  }
}

/** For a principal with every permission that the tools require. */
function asAbove({ name, policy, tools }: Agent): PolicyAbove {
  const all = [...tools.values()]
  const principal = { user: 'default', permissions: all.flatMap((it) => it.permission ?? []) }
  const own = all.filter((it) => mayEverRun(it, principal, policy))
  return { agent: name, ...policy, effects: new Set(own.flatMap((it) => it.effects)) }
}

const hooksOf = (middleware: object): string[] =>
  ['onAgent', 'onReasoning', 'onActing', 'onModelCall', 'onSystemPrompt'].filter(
    (it) => typeof (middleware as Record<string, unknown>)[it] === 'function',
  )

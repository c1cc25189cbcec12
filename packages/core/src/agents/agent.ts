import { hash } from 'node:crypto'
import { defined } from '../checks/defined.ts'
import { checkFields, checkObject, type Fields } from '../checks/fields.ts'
import { OxbowError } from '../errors.ts'
import { assertId } from '../journal/ids.ts'
import type { Model } from '../model.ts'
import type { Policy } from '../permissions/gate.ts'
import { checkRule, parseRule, type Rule } from '../permissions/rules.ts'
import { readArtifact } from '../tools/artifacts.ts'
import type { Mode } from '../tools/mode.ts'
import type { RuleKind, Tool } from '../tools/tool.ts'
import { AGENT, AGENT_HINTS } from './agent-fields.ts'
import type { Agent, AgentParts, Part } from './agent-type.ts'
import type { Capability } from './capability.ts'
import { type AgentLimits, DEFAULT_LIMITS } from './limits.ts'
import { compose, type Middleware } from './middleware.ts'
import { modelOf } from './named-models.ts'
import { type PromptContext, prompt } from './prompt.ts'
import type { Reviewer } from './reviewer.ts'
import type { StopWhen } from './stop-when.ts'

export interface AgentDefinition {
  readonly name: string
  /** Recorded with each turn. Default: a digest of the definition. */
  readonly version?: string
  /**
   * A model, or its name as `provider:model` if something that opens models by name is installed, as in the package
   * `oxbow`.
   */
  readonly model: Model | string
  /** Other models that a turn may choose with its option `model`. */
  readonly models?: readonly (Model | string)[]
  /** A text, or a function of the session and its principal that returns one for each step. */
  readonly instructions: string | ((context: PromptContext) => string | Promise<string>)
  /**
   * Ends the turn after a step with tool calls, with the reason `stopped`. Pure.
   *
   * @example stopWhen: ({ calls }) => calls.some((call) => call.tool === 'submit' && call.status === 'success')
   */
  readonly stopWhen?: StopWhen
  readonly tools?: readonly Tool[]
  /** Bundles of tools, prompt sections and hooks. Their middleware runs inside the agent's own. */
  readonly capabilities?: readonly Capability[]
  /** How calls are treated that no rule covers. Default `default`: calls that only read run, all others ask. */
  readonly mode?: Mode
  /** Rules, as `tool`, `prefix*` or `tool(pattern)`. Deny is stronger than ask, ask than allow. */
  readonly allow?: readonly string[]
  readonly ask?: readonly string[]
  readonly deny?: readonly string[]
  readonly middleware?: readonly Middleware[]
  readonly limits?: Partial<AgentLimits>
  readonly temperature?: number
  readonly maxOutputTokens?: number
}

/**
 * Defines an agent. An agent with tools whose results may be long also gets the tool `read_artifact`, which reads the
 * results that were too long to show.
 *
 * @param definition its name, model and instructions, and what else it has
 * @returns the agent, checked and immutable, for `createEngine()`
 * @throws OxbowError `agent_invalid`, naming the field; `rule_invalid` for a rule that could match nothing
 * @example
 * const helper = agent({ name: 'helper', model: 'openai:gpt-5', instructions: 'You answer in one sentence.' })
 */
export function agent(definition: AgentDefinition): Agent {
  checkObject(
    definition,
    "{ name: 'helper', model: 'openai:gpt-5', instructions: 'Help.' }",
    (what) => new OxbowError('agent_invalid', `agent() ${what}`),
  )
  const { name, mode = 'default', capabilities = [] } = definition
  assertId(name, 'agent name')
  checkFields(definition, AGENT satisfies Fields<AgentDefinition>, (what) => invalid(name, what), AGENT_HINTS)
  if (definition.instructions === undefined) throw invalid(name, 'instructions must be a text or a function')
  const model = modelOf(definition.model, `agent ${name}: model`)
  const models = (definition.models ?? []).map((it, index) => modelOf(it, `agent ${name}: models[${index}]`))
  const dynamic = typeof definition.instructions === 'function' ? definition.instructions : undefined
  const instructions = typeof definition.instructions === 'string' ? definition.instructions : ''
  const own = partsOf(definition.tools, capabilities, (it) => it.tools)
  const parts: AgentParts = {
    tools: own.some(({ value }) => !value?.shortResults) ? [...own, { from: undefined, value: readArtifact }] : own,
    prompt: partsOf(undefined, capabilities, (it) => it.prompt),
    allow: partsOf(definition.allow, capabilities, (it) => it.allow),
    middleware: partsOf(definition.middleware, capabilities, (it) => it.middleware),
  }
  const tools = new Map<string, Tool>()
  for (const { value: tool, from } of parts.tools) {
    if (tool?.jsonSchema === undefined)
      throw invalid(name, `${ofCapability(from)}tools must be made with tool() or externalTool()`)
    if (tools.has(tool.name)) {
      const first = parts.tools.find(({ value }) => value.name === tool.name)?.from ?? 'the agent'
      throw invalid(name, `two tools are named ${tool.name}: one of ${first}, one of ${from ?? 'the agent'}`)
    }
    tools.set(tool.name, tool)
  }
  const rules = (kind: RuleKind, texts: readonly string[] = []): Rule[] =>
    texts.map((text) => {
      const rule = parseRule(text)
      checkRule(rule, kind, [...tools.values()])
      return rule
    })
  const { ask, deny } = definition
  const allow = parts.allow.map((it) => it.value)
  const policy: Policy = { mode, allow: rules('allow', allow), ask: rules('ask', ask), deny: rules('deny', deny) }

  const given = Object.entries(definition.limits ?? {}).filter(([, it]) => it !== undefined)
  const limits: AgentLimits = { ...DEFAULT_LIMITS, ...Object.fromEntries(given) }

  const specs = [...tools.values()].map((tool) => ({
    name: tool.name,
    description: tool.description,
    input: tool.jsonSchema,
  }))
  for (const it of [model, ...models]) it.checkTools?.(specs)
  const compactions = partsOf(undefined, capabilities, (it) => it.compaction && [it.compaction])
  if (compactions.length > 1)
    throw invalid(name, `two capabilities compact: ${compactions.map((it) => it.from).join(', ')}`)
  const sections = parts.prompt.map((it) => it.value)
  const texts = sections.map((it) => (typeof it.text === 'string' ? it.text : it.title))
  const { temperature, maxOutputTokens } = definition
  const compactor = compactions[0]?.value({ name, model, instructions, tools: specs, maxOutputTokens })
  return {
    name,
    version:
      definition.version ??
      hash(
        'sha256',
        JSON.stringify([name, model.id, String(definition.instructions), texts, specs, mode, allow, ask, deny]),
      ).slice(0, 12),
    model,
    instructions,
    models: new Map([model, ...models].map((it) => [it.id, it])),
    prompt: prompt(instructions, sections, dynamic),
    tools,
    specs,
    policy,
    hooks: compose(parts.middleware.map((it) => it.value)),
    limits,
    stopWhen: definition.stopWhen,
    compactor,
    review: reviewerOf(capabilities),
    agents: partsOf(undefined, capabilities, (it) => it.agents).map((it) => it.value),
    parts,
    sampling: {
      ...defined({ temperature, maxOutputTokens }),
    },
  }
}

/** The parts of one kind, the agent's own first, then those of its capabilities in their order. */
function partsOf<T>(
  own: readonly T[] | undefined,
  capabilities: readonly Capability[],
  read: (capability: Capability) => readonly T[] | undefined,
): Part<T>[] {
  return [
    ...(own ?? []).map((value) => ({ from: undefined, value })),
    ...capabilities.flatMap((capability) =>
      (read(capability) ?? []).map((value) => ({ from: capability.name, value })),
    ),
  ]
}

/** The first finding counts. */
function reviewerOf(capabilities: readonly Capability[]): Reviewer | undefined {
  const reviewers = capabilities.flatMap((it) => it.review ?? [])
  if (reviewers.length === 0) return undefined
  return (answer) => {
    for (const review of reviewers) {
      const finding = review(answer)
      if (finding !== undefined) return finding
    }
    return undefined
  }
}

const ofCapability = (capability: string | undefined): string => (capability === undefined ? '' : `${capability}: `)

const invalid = (name: string, what: string) => new OxbowError('agent_invalid', `agent ${name}: ${what}`)

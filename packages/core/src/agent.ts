import { hash } from 'node:crypto'
import { readArtifact } from './artifacts.ts'
import type { Limits } from './decide.ts'
import { OxbowError } from './errors.ts'
import { assertId } from './ids.ts'
import { compose, type Hooks, type Middleware } from './middleware.ts'
import type { Model, ToolSpec } from './model.ts'
import type { Tool } from './tool.ts'

export interface AgentLimits extends Limits {
  /** Work on one turn, waiting for people excluded. */
  readonly totalTimeoutMs: number
  /** Longest time without any event or fragment while a turn is worked on. */
  readonly idleTimeoutMs: number
  /** Calls that only read and run at once. */
  readonly parallelReads: number
  /** Longer results are stored as artifacts; the model sees head, tail and a reference. In characters. */
  readonly maxResultLength: number
}

export const DEFAULT_LIMITS: AgentLimits = {
  maxSteps: 10,
  outputAttempts: 3,
  maxRecoveries: 5,
  totalTimeoutMs: 10 * 60_000,
  idleTimeoutMs: 2 * 60_000,
  parallelReads: 4,
  maxResultLength: 16_000,
}

export interface AgentDefinition {
  readonly name: string
  /** Recorded with each turn. Default: a digest of the definition. */
  readonly version?: string
  readonly model: Model
  readonly instructions: string
  readonly tools?: readonly Tool[]
  /** Names of tools that may run although they do more than read. */
  readonly allow?: readonly string[]
  readonly middleware?: readonly Middleware[]
  readonly limits?: Partial<AgentLimits>
  readonly temperature?: number
  readonly maxOutputTokens?: number
}

/** An agent as the engine uses it: checked and immutable. */
export interface Agent {
  readonly name: string
  readonly version: string
  readonly model: Model
  readonly instructions: string
  readonly tools: ReadonlyMap<string, Tool>
  readonly specs: readonly ToolSpec[]
  readonly allow: readonly string[]
  readonly hooks: Hooks
  readonly limits: AgentLimits
  readonly sampling: { readonly temperature?: number; readonly maxOutputTokens?: number }
}

/**
 * Defines an agent. An agent with tools also gets `read_artifact`, for pages of results that were too long to show.
 *
 * @throws OxbowError `agent_invalid`, naming the field
 */
export function agent(definition: AgentDefinition): Agent {
  const { name, model, instructions, allow = [], middleware = [] } = definition
  assertId(name, 'agent name')
  const own = definition.tools ?? []
  const tools = new Map<string, Tool>()
  for (const tool of own.length > 0 ? [...own, readArtifact] : own) {
    if (tools.has(tool.name)) throw invalid(name, `two tools are named ${tool.name}`)
    tools.set(tool.name, tool)
  }
  for (const tool of allow)
    if (!tools.has(tool))
      throw invalid(name, `"allow" names ${tool}, which is not one of its tools (${[...tools.keys()].join(', ')})`)

  const limits = { ...DEFAULT_LIMITS, ...definition.limits }
  for (const [key, value] of Object.entries(limits))
    if (!(typeof value === 'number' && value > 0)) throw invalid(name, `limits.${key} must be a number above 0`)

  const specs = [...tools.values()].map((tool) => ({
    name: tool.name,
    description: tool.description,
    input: tool.jsonSchema,
  }))
  const { temperature, maxOutputTokens } = definition
  return {
    name,
    version:
      definition.version ?? hash('sha256', JSON.stringify([name, model.id, instructions, specs, allow])).slice(0, 12),
    model,
    instructions,
    tools,
    specs,
    allow,
    hooks: compose(middleware),
    limits,
    sampling: {
      ...(temperature !== undefined && { temperature }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    },
  }
}

const invalid = (name: string, what: string) => new OxbowError('agent_invalid', `agent ${name}: ${what}`)

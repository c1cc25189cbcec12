// An agent as the engine uses it.

import type { Model, ToolSpec } from '../model.ts'
import type { Policy } from '../permissions/gate.ts'
import type { Tool } from '../tools/tool.ts'
import type { Compactor } from './compactor.ts'
import type { AgentLimits } from './limits.ts'
import type { Hooks, Middleware } from './middleware.ts'
import type { Prompt, PromptSection } from './prompt.ts'
import type { Reviewer } from './reviewer.ts'
import type { StopWhen } from './stop-when.ts'

/** The origin of a part of an agent: the name of a capability, or undefined for the agent's own definition. */
export interface Part<T> {
  readonly from: string | undefined
  readonly value: T
}

export interface AgentParts {
  readonly tools: readonly Part<Tool>[]
  readonly prompt: readonly Part<PromptSection>[]
  readonly allow: readonly Part<string>[]
  readonly middleware: readonly Part<Middleware>[]
}

/** An agent as the engine uses it: checked and immutable. */
export interface Agent {
  readonly name: string
  readonly version: string
  readonly model: Model
  /** Other models that a turn may name, by their ids. */
  readonly models: ReadonlyMap<string, Model>
  /** Empty if the instructions are a function. */
  readonly instructions: string
  readonly prompt: Prompt
  readonly tools: ReadonlyMap<string, Tool>
  readonly specs: readonly ToolSpec[]
  readonly policy: Policy
  readonly hooks: Hooks
  readonly limits: AgentLimits
  readonly stopWhen: StopWhen | undefined
  readonly compactor: Compactor | undefined
  /** The reviews of its capabilities, combined. */
  readonly review: Reviewer | undefined
  /** The agents that its tools may start. */
  readonly agents: readonly Agent[]
  /** The origin of each part, for people who inspect the agent. */
  readonly parts: AgentParts
  readonly sampling: { readonly temperature?: number; readonly maxOutputTokens?: number }
}

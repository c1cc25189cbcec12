// An agent as the engine uses it.

import type { StateLimits } from '../journal/deadlines.ts'
import type { Model, ToolSpec } from '../model.ts'
import type { Policy } from '../permissions/gate.ts'
import type { Tool } from '../tools/tool.ts'
import type { Limits } from '../turn/decide.ts'
import type { Compactor } from './compactor.ts'
import type { Hooks, Middleware } from './middleware.ts'
import type { Part } from './part.ts'
import type { Prompt, PromptSection } from './prompt.ts'
import type { Reviewer } from './reviewer.ts'

export interface AgentLimits extends Limits {
  /** Work on one turn, waiting for people excluded. */
  readonly totalTimeoutMs: number
  /** Longest time without any event or fragment while a turn is worked on. */
  readonly idleTimeoutMs: number
  /** Calls that only read and run at once. */
  readonly parallelReads: number
  /** Longer results are stored as artifacts; the model sees head, tail and a reference. In characters. */
  readonly maxResultLength: number
  /** How long a person may take to decide on an approval. */
  readonly approvalTimeoutMs: number
  /**
   * How long a turn may stay in one state before it fails with `state_timeout`, also when its worker does not answer.
   * Default: an hour for `CREATED`, a minute more than the turn's total time for `RUNNING` and `WAITING_TOOL`, and 30
   * days for whatever waits for people.
   */
  readonly stateTimeoutsMs: StateLimits['stateTimeoutsMs']
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
  readonly instructions: string
  readonly prompt: Prompt
  readonly tools: ReadonlyMap<string, Tool>
  readonly specs: readonly ToolSpec[]
  readonly policy: Policy
  readonly hooks: Hooks
  readonly limits: AgentLimits
  readonly compactor: Compactor | undefined
  /** Those of its capabilities, in one. */
  readonly review: Reviewer | undefined
  /** Those that it may start. */
  readonly agents: readonly Agent[]
  /** Where each part came from, for people. */
  readonly parts: AgentParts
  readonly sampling: { readonly temperature?: number; readonly maxOutputTokens?: number }
}

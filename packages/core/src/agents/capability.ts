// Something that an agent can do, in one piece: its tools, what it adds to the prompt, its hooks, what it remembers.

import type { Tool } from '../tools/tool.ts'
import type { Agent } from './agent-type.ts'
import type { CompactorFor } from './compactor.ts'
import type { Middleware } from './middleware.ts'
import type { PromptSection } from './prompt.ts'
import type { Reviewer } from './reviewer.ts'

export interface Capability {
  /** Shown where an agent is inspected, and in errors. */
  readonly name: string
  readonly tools?: readonly Tool[]
  readonly middleware?: readonly Middleware[]
  readonly prompt?: readonly PromptSection[]
  /** Makes long conversations shorter; an agent has at most one. */
  readonly compaction?: CompactorFor
  /** Calls of its own tools that run without asking, as rules. The agent's own `ask` and `deny` take precedence. */
  readonly allow?: readonly string[]
  /** Reviews the last answer of a turn; the model may correct it once. */
  readonly review?: Reviewer
  /** Agents that its tools start; every engine with the agent has them too. */
  readonly agents?: readonly Agent[]
}

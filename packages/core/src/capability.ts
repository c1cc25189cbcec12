// Something that an agent can do, in one piece: its tools, what it adds to the prompt, its hooks, what it remembers.
import type { CompactorFor } from './compactor.ts'
import type { Middleware } from './middleware.ts'
import type { PromptSection } from './prompt.ts'
import type { Tool } from './tool.ts'

export interface Capability {
  /** Shown where an agent is inspected, and in errors. */
  readonly name: string
  readonly tools?: readonly Tool[]
  readonly middleware?: readonly Middleware[]
  readonly prompt?: readonly PromptSection[]
  /** Makes long conversations shorter; an agent has at most one. */
  readonly compaction?: CompactorFor
  /** Calls of its own tools that run without asking, as rules. The agent's own `ask` and `deny` are stronger. */
  readonly allow?: readonly string[]
}

/** Who brought a part of an agent: the name of a capability, or undefined for the agent's own definition. */
export interface Part<T> {
  readonly from: string | undefined
  readonly it: T
}

/** The parts of one kind, the agent's own first, then those of its capabilities in their order. */
export function partsOf<T>(
  own: readonly T[] | undefined,
  capabilities: readonly Capability[],
  of: (capability: Capability) => readonly T[] | undefined,
): Part<T>[] {
  return [
    ...(own ?? []).map((it) => ({ from: undefined, it })),
    ...capabilities.flatMap((capability) => (of(capability) ?? []).map((it) => ({ from: capability.name, it }))),
  ]
}

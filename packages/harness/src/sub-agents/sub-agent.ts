import type { Agent } from '@oxbow/core'

export interface SubAgent {
  /** For the delegating model: what the agent can do and when to call it. */
  readonly description: string
  readonly agent: Agent
  /** Where it is declared, for errors. Default: in code. */
  readonly from?: string
}

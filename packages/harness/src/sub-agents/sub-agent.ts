import type { Agent } from '@oxbow/core'

export interface SubAgent {
  /** For the model of the one that delegates: what the agent can do and when to ask it. */
  readonly description: string
  readonly agent: Agent
  /** Where it is declared, for errors. Default: in code. */
  readonly from?: string
}

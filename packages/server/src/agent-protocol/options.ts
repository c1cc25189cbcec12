import type { AgentFactory, AttributeCustomizer } from './factory.ts'

export interface AgentProtocolConfig {
  /** Without it the routes do not exist. */
  readonly enabled: boolean
  readonly streaming: boolean
  /** Tasks may wait for decisions; without it what would ask is denied. */
  readonly hitl: boolean
  /** A reader without a number gets the task from its start; without it only what comes from now on. */
  readonly replay: boolean
  readonly streamLimitMs: number
  /** Attributes that tools find under their own names. */
  readonly promote: readonly string[]
}

/** What only code can give. */
export interface AgentProtocolHost {
  /** Default: the agent that `agent_id` names, or else the engine's first. */
  readonly factory?: AgentFactory
  readonly customizers?: readonly AttributeCustomizer[]
}

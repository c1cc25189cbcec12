import type { AgentFactory, AttributeCustomizer } from './factory.ts'

export interface AgentProtocolConfig {
  /** If false, the routes do not exist. */
  readonly enabled: boolean
  readonly streaming: boolean
  /** Whether tasks may wait for approvals; if false, calls that need approval are denied. */
  readonly hitl: boolean
  /**
   * Whether a stream without a sequence number begins at the start of the task; if false, it begins with the next
   * event.
   */
  readonly replay: boolean
  readonly streamLimitMs: number
  /** Attributes that tools also find under their own names. */
  readonly promote: readonly string[]
}

/** Options that only code can set. */
export interface AgentProtocolHost {
  /** Default: the agent that `agent_id` names, otherwise the engine's first. */
  readonly factory?: AgentFactory
  readonly customizers?: readonly AttributeCustomizer[]
}

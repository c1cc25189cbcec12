// The options of a remote agent.
import type { ToolContext } from '@oxbow/core'
import type { Decision, Headers, RemoteCall, RemoteEvent } from './wire.ts'

export type RemoteDecision = Omit<Decision, 'toolCallId'>

/**
 * How the remote agent's approvals are decided. `ask`: they become one approval of this call, kept in the journal like
 * any other. `deny`: they are denied. A function decides at once, in the order of the calls.
 */
export type ApprovalPolicy =
  | 'ask'
  | 'deny'
  | ((
      calls: readonly RemoteCall[],
      context: ToolContext,
    ) => readonly RemoteDecision[] | Promise<readonly RemoteDecision[]>)

/** The origin of an event. */
export interface RemoteSource {
  readonly agent: string
  readonly taskId: string
  readonly turnId: string
  readonly callId: string
}

export type PerCall<T> = T | ((context: ToolContext) => T | Promise<T>)

export interface RemoteAgentOptions {
  /** The name of the tool, and the source of its events. */
  readonly name: string
  /** For the model: what the agent can do and when to call it. */
  readonly description: string
  /** The URL of the service, without `/tasks`. */
  readonly url: string
  /** For example `authorization`. A function is called for each call. */
  readonly headers?: PerCall<Headers>
  /** `agent_id`, when the service has several. */
  readonly agentId?: string
  /** For the remote's tools and routing; never in a prompt. */
  readonly attributes?: PerCall<Readonly<Record<string, unknown>>>
  /** In addition to the deny rules of the calling agent and turn, which always apply. */
  readonly deny?: readonly string[]
  /** Default `ask`. */
  readonly onApproval?: ApprovalPolicy
  /** Receives every event; must not throw. */
  readonly onEvent?: (event: RemoteEvent, source: RemoteSource) => void
  /** The time limit of one attempt, not counting waits for people. Default 10 minutes. */
  readonly timeoutMs?: number
  /** How long the service may be unreachable before the call fails. Default one minute. */
  readonly patienceMs?: number
  /**
   * How often a task may be passed from agent to agent, so that two cannot pass it back and forth forever. Default 5.
   */
  readonly maxDepth?: number
  readonly permission?: string
  readonly approver?: string
}

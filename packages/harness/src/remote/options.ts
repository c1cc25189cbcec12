// The options of a remote agent.
import type { ToolContext } from '@oxbow/core'
import type { Decision, Headers, RemoteCall, RemoteEvent } from './wire.ts'

export type RemoteDecision = Omit<Decision, 'toolCallId'>

/**
 * What becomes of calls for which the remote agent needs an approval. `ask`: they become one approval of this call,
 * which waits in the journal like any other. `deny`: they are refused. A function decides at once, by the order of the
 * calls.
 */
export type ApprovalPolicy =
  | 'ask'
  | 'deny'
  | ((
      calls: readonly RemoteCall[],
      context: ToolContext,
    ) => readonly RemoteDecision[] | Promise<readonly RemoteDecision[]>)

/** Where an event comes from. */
export interface RemoteSource {
  readonly agent: string
  readonly taskId: string
  readonly turnId: string
  readonly callId: string
}

export type PerCall<T> = T | ((context: ToolContext) => T | Promise<T>)

export interface RemoteAgentOptions {
  /** Of the tool, and as the source of its events. */
  readonly name: string
  /** For the model: what the agent can do and when to ask it. */
  readonly description: string
  /** Of the service, without `/tasks`. */
  readonly url: string
  /** For example `authorization`. A function is asked for each call. */
  readonly headers?: PerCall<Headers>
  /** `agent_id`, when the service has several. */
  readonly agentId?: string
  /** For the remote's tools and routing; never in a prompt. */
  readonly attributes?: PerCall<Readonly<Record<string, unknown>>>
  /** Beside the deny rules of the calling agent and turn, which always go along. */
  readonly deny?: readonly string[]
  /** Default `ask`. */
  readonly onApproval?: ApprovalPolicy
  /** Every event as it comes; must not throw. */
  readonly onEvent?: (event: RemoteEvent, source: RemoteSource) => void
  /** How long one attempt may take, waiting for people excluded. Default 10 minutes. */
  readonly timeoutMs?: number
  /** How long the service may be unreachable before the call fails. Default one minute. */
  readonly patienceMs?: number
  /**
   * How often a task may be handed on from agent to agent, so that two cannot send it to and fro for ever. Default 5.
   */
  readonly maxDepth?: number
  readonly permission?: string
  readonly approver?: string
}

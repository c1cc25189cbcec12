// The interface of tools that delegate: what they may do with the agents below their turn.

import type { Event, Principal } from '../events/types.ts'
import type { Effect } from './effect.ts'
import type { ApprovalRequest, ToolDecision } from './needs-approval.ts'

/** How a child came to its end. Only the first three are its own word; the others are what the engine saw. */
export type ChildStatus = Event<'child.closed'>['status']

export interface ChildOptions {
  /** The call does not wait: the result comes as a message. */
  readonly background?: boolean
  /** The rights of agents below beyond this agent's own tools and allow rules. Modes and denials above still apply. */
  readonly grant?: { readonly effects?: readonly Effect[]; readonly allow?: readonly string[] }
  /** Levels below the root. A smaller one from above holds. */
  readonly maxDepth: number
  /** Agents that the whole tree may start. A smaller one from above holds. */
  readonly maxChildren: number
}

export interface ChildTask extends ChildOptions {
  /** The name of an agent that a capability of this one provides. */
  readonly agent: string
  readonly task: string
}

export interface ChildView {
  /** Names the child to the model; also its session. */
  readonly session: string
  readonly agent: string
  /** Its present or last task. */
  readonly childTurnId: string
  readonly task: string
  readonly background: boolean
  readonly status: ChildStatus | 'running' | 'waits for an approval'
}

export interface ChildEnd {
  readonly status: ChildStatus
  /** Its hand-off between marks, for the model. */
  readonly text: string
}

/** Of the calling turn. Everything that changes something may be repeated under the same operation id. */
export interface Children {
  /**
   * Opens the child of this call, or finds the one that it has opened already.
   * @throws OxbowError `child_depth`, `child_limit`, `unknown_agent`
   */
  open(task: ChildTask): Promise<ChildView>
  /**
   * A message to a child: it joins the task that runs, or begins a new one in the same session.
   * @throws OxbowError as `open`, `unknown_child`
   */
  send(session: string, message: string, options: ChildOptions): Promise<ChildView & { readonly joined: boolean }>
  list(): Promise<readonly ChildView[]>
  /**
   * Waits until the task has ended. With `orQuestion` also until it needs an approval that has to be asked for here.
   */
  wait(childTurnId: string, signal: AbortSignal, orQuestion?: false): Promise<ChildEnd>
  wait(childTurnId: string, signal: AbortSignal, orQuestion: true): Promise<ChildEnd | ApprovalRequest>
  /** The call stops waiting. False when the task has ended already: then its result is the call's. */
  detach(childTurnId: string): Promise<boolean>
  /** Its result, or its progress so far, between marks. @throws OxbowError `unknown_child` */
  output(session: string): Promise<{ readonly status: ChildView['status']; readonly text: string }>
  /** Stops its task, and all below it. False when there was none. @throws OxbowError `unknown_child` */
  cancel(session: string): Promise<boolean>
  /** A request here was not approved: the child is informed. */
  refuse(decision: ToolDecision): Promise<void>
}

/** The call that uses the port. */
export interface CallingCall {
  readonly callId: string
  readonly operationId: string
  readonly step: number
  readonly principal: Principal
}

// The state of a session: the fold of its journal, and what can be derived from it.

import type { Person } from '../authority.ts'
import type {
  CallStatus,
  Delegation,
  Event,
  FinishReason,
  Message,
  Principal,
  ResultBlock,
  Spent,
  TurnOptions,
  Usage,
} from '../events/types.ts'
import { noUsage } from '../model.ts'
import type { SessionStatus } from '../ports.ts'
import type { Repeats } from './repeats.ts'
import type { Slots } from './slots.ts'
import type { Task } from './task.ts'
import type { WaitingSignal, WorkState } from './work-state.ts'

/** Bump when the fold or the state's shape changes: snapshots of other versions are ignored. */
export const STATE_VERSION = 14
/** Written to `session.opened`. */
export const SCHEMA_VERSION = 1

export interface CallState {
  readonly callId: string
  readonly position: number
  readonly tool: string
  /** Raw, as the model wrote it. */
  readonly arguments: string
  readonly decided?: Event<'call.decided'>
  readonly started?: { readonly operationId: string; readonly attempt: number }
  readonly external?: true
  readonly approval?: ApprovalState
  readonly resolved?: Pick<Event<'external.resolved'>, 'status' | 'content'>
  /** The steps, sleeps and signals of a durable tool, in the order in which it began them. */
  readonly work?: readonly WorkState[]
  readonly finished?: CallStatus
  readonly result?: ResultBlock
}

export interface ApprovalState {
  readonly requested: Event<'approval.requested'>
  readonly resolved?: Event<'approval.resolved'>
  /** The attempt of the running tool that asked. Missing when the gate did, before the first. */
  readonly attempt?: number
}

/** A rule that was accepted for the rest of this session. */
export interface SessionRule {
  readonly rule: string
  readonly author: string
  /** For a session rule: the user in whose turns it applies. Other users' calls run with other rights. */
  readonly asker?: Person
  /** Where the tool came from that it was accepted for: another's tool of that name is another tool. */
  readonly origin?: string
  readonly expiresAt?: number
}

export interface StepReply {
  readonly finishReason: FinishReason
  readonly text: string
  readonly empty: boolean
  readonly error?: Event<'model.finished'>['error']
  /** Why the structured answer was refused. */
  readonly rejected?: string
  /** Something was wrong with it: it stays, or the model answers once more. */
  readonly reviewed?: 'kept' | 'again'
}

export interface TurnState {
  readonly turnId: string
  readonly startedSeq: number
  readonly surface: string
  readonly principal: Principal
  readonly options: TurnOptions
  /** The agent that gave the task, if another agent did. */
  readonly delegation?: Delegation
  /** Its worker. A paused turn has none. */
  readonly claim?: { readonly worker?: string; readonly epoch: number }
  /** Claims since something was last achieved. */
  readonly recoveries: number
  /** The step that has started last; 0 before the first. */
  readonly step: number
  readonly toolsOffered: boolean
  /** The answer of the current step, once it is stored. */
  readonly reply?: StepReply
  /** The calls of the current step, in the model's order. */
  readonly calls: readonly CallState[]
  /** Consecutive failures by tool. */
  readonly failures: Readonly<Record<string, number>>
  readonly repeats: Repeats
  /** Steering inputs that wait for the next step. */
  readonly steers: readonly Message[]
  readonly interrupt?: { readonly reason: string }
  readonly paused?: { readonly reason: Event<'turn.paused'>['reason']; readonly seq: number; readonly at: number }
  readonly pauseRequested?: true
  /** Signals that no call has received yet, and the ids of all that came. */
  readonly signals?: readonly WaitingSignal[]
  readonly signalIds?: readonly string[]
  /** It has waited: for its place in the queue, for a person or for a result. */
  readonly waited?: true
  /** Calls that have begun to run in this turn, by tool. */
  readonly begun: Readonly<Record<string, number>>
  /** Calls that the model has made in this turn. */
  readonly callCount: number
  /** Agents that this turn has started. */
  readonly childCount: number
  /** The usage of those children that have ended. */
  readonly below: Spent
  readonly emptyReplies: number
  readonly rejections: number
  /** The model was asked once to correct its answer. */
  readonly corrected?: true
  /** The step before whose model call the context was compacted, or tried to be. */
  readonly compactedStep?: number
  /** The step that the provider refused as too long and after which room was made, and what is left since. */
  readonly overflow?: { readonly step: number; readonly parts: Readonly<Record<string, number>> }
  readonly usage: Usage
  /** Its task state, and since when. */
  readonly task: Task
}

/** A task that was given to another agent. */
export interface ChildRecord {
  readonly session: string
  readonly agent: string
  readonly childTurnId: string
  /** The turn and the call that gave it. */
  readonly turnId: string
  readonly callId: string
  readonly task: string
  readonly background: boolean
  /** The turn that gave it was stopped: so is the child. */
  readonly stopped?: true
  readonly closed?: Event<'child.closed'>['status']
}

export interface TurnRecord {
  readonly turnId: string
  readonly startedSeq: number
  readonly endedSeq: number
}

export interface SessionState {
  readonly seq: number
  readonly agent: string
  readonly title: string
  readonly messages: readonly Message[]
  /** The turn that runs, is paused, or waits for a worker. */
  readonly turn?: TurnState
  /** Accepted turns that run after it. */
  readonly queue: readonly QueuedTurn[]
  readonly finished: readonly TurnRecord[]
  /** Of all model calls of the session. A turn has its own. */
  readonly usage: Usage
  /** Tokens that the last model call read and wrote: the current length of the conversation. */
  readonly contextTokens: number
  /** The last message that is part of `contextTokens`; those after it are not counted yet. */
  readonly countedTo?: string
  /** The last compaction. With a `memory`, the first message replaces earlier ones. */
  readonly compaction?: { readonly tokens: number; readonly messages: number; readonly memory?: unknown }
  readonly rules: readonly SessionRule[]
  /** The call of another session that opened this one. */
  readonly parent?: NonNullable<Event<'session.opened'>['parent']>
  readonly children: readonly ChildRecord[]
  /** The usage of turns that ended before their children. */
  readonly outlived: readonly { readonly turnId: string; readonly spent: Spent }[]
  /** Turns whose result must be reported to the parent session. */
  readonly undelivered: readonly Undelivered[]
  /** The slots of capabilities, by name. */
  readonly slots: Slots
  /** The names of those that go to the session that gave the task. */
  readonly handsUp: readonly string[]
  /** Slots that sub-agents have passed up, by session. */
  readonly below: Readonly<Record<string, readonly Slots[]>>
  /** Steering inputs that were accepted, so that a retry of one is the same input. */
  readonly steered: readonly { readonly inputId: string; readonly turnId: string }[]
}

export interface Undelivered {
  readonly turnId: string
  readonly delegation: Delegation
  readonly spent: Spent
}

export interface QueuedTurn {
  readonly started: Event<'turn.started'>
  readonly interrupt?: { readonly reason: string }
}

export const emptyState: SessionState = {
  seq: 0,
  agent: '',
  title: '',
  messages: [],
  queue: [],
  finished: [],
  usage: noUsage,
  contextTokens: 0,
  rules: [],
  children: [],
  outlived: [],
  undelivered: [],
  slots: {},
  handsUp: [],
  below: {},
  steered: [],
}

/**
 * All tokens, in and out.
 *
 * @example const spent = tokensOf((await session.state()).usage)
 */
export const tokensOf = (usage: Usage): number =>
  usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens

export const addUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
  cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  reasoningTokens: a.reasoningTokens + b.reasoningTokens,
  estimated: a.estimated || b.estimated,
  ...costOf(a, b),
})

export const nothingSpent: Spent = { usage: noUsage, toolCalls: 0, children: 0 }

export const addSpent = (a: Spent, b: Spent): Spent => ({
  usage: addUsage(a.usage, b.usage),
  toolCalls: a.toolCalls + b.toolCalls,
  children: a.children + b.children,
})

/** The usage of the turn itself and of its children that have ended. */
export const spentBy = ({ usage, callCount, childCount, below }: TurnState): Spent =>
  addSpent({ usage, toolCalls: callCount, children: childCount }, below)

/** A sum with an unknown part is unknown. No usage costs nothing. */
function costOf(a: Usage, b: Usage): Pick<Usage, 'cost'> {
  const parts = [a, b].filter((it) => tokensOf(it) > 0 || it.cost !== undefined)
  const costs = parts.flatMap(({ cost }) => cost ?? [])
  return parts.length > 0 && costs.length === parts.length ? { cost: costs.reduce((sum, it) => sum + it, 0) } : {}
}

export function statusOf(state: SessionState): SessionStatus {
  if (state.turn === undefined) return 'idle'
  if (state.turn.paused?.reason === 'recovery_limit') return 'parked'
  return state.turn.paused === undefined ? 'running' : 'waiting'
}

/** Names come from a model: `constructor` is one like any other. */
export const countOf = (counts: Readonly<Record<string, number>>, tool: string): number =>
  Object.hasOwn(counts, tool) ? counts[tool]! : 0

/** Consecutive failures of a tool in this turn. */
export const failuresOf = ({ failures }: TurnState, tool: string): number => countOf(failures, tool)

/** Whether this call still needs a decision. */
export const awaitsApproval = ({ approval, finished }: CallState): boolean =>
  approval !== undefined && approval.resolved === undefined && finished === undefined

/**
 * The approvals that a turn waits for, in the order of its calls.
 *
 * @param turn the open turn of a session; undefined has none
 * @example for (const { tool, reason } of openApprovals((await session.state()).turn)) print(`${tool}: ${reason}`)
 */
export const openApprovals = (turn: TurnState | undefined): Event<'approval.requested'>[] =>
  (turn?.calls ?? []).filter(awaitsApproval).map((call) => call.approval!.requested)

/** The call of the current step that an approval is about. */
export const callOfApproval = (turn: TurnState | undefined, approvalId: string): CallState | undefined =>
  turn?.calls.find((call) => call.approval?.requested.approvalId === approvalId)

/**
 * Where a turn is in the journal: by its id, or by the id of a steering input that joined it. Continue with the
 * `turnId` of the result: only that one occurs in the turn's events. An open turn ends, so far, at the journal's end.
 *
 * @param id of a turn, or of a steering input
 * @returns the sequence numbers between which the turn's events are; undefined for an id that was not accepted
 * @example const ended = findTurn(await session.state(), turnId)?.ended
 */
export function findTurn(state: SessionState, id: string): (TurnRecord & { ended: boolean }) | undefined {
  const turnId = state.steered.find((it) => it.inputId === id)?.turnId ?? id
  const finished = state.finished.find((it) => it.turnId === turnId)
  if (finished !== undefined) return { ...finished, ended: true }
  const queued = state.queue.find((it) => it.started.turnId === turnId)?.started.seq
  const startedSeq = state.turn?.turnId === turnId ? state.turn.startedSeq : queued
  return startedSeq === undefined ? undefined : { turnId, startedSeq, endedSeq: state.seq, ended: false }
}

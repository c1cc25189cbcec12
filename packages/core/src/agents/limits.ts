// What an agent's turns may use up, and how long they may take.
import type { StateLimits } from '../state/deadlines.ts'

/**
 * What one turn may use up; then it fails with `budget_exceeded`. Each limit is checked before each call, of a model or
 * of a tool: what one call itself uses may go beyond it. Its time is `totalTimeoutMs`, with `total_timeout`.
 */
export interface Budget {
  /** Input and output of all model calls. */
  readonly tokens?: number
  /** Tool calls by the model, including refused ones. */
  readonly toolCalls?: number
  /** Other agents that are started: calls of tools with the effect `delegate`. */
  readonly children?: number
  /** US dollars. Where the price of an answer is not known, none of its calls runs. */
  readonly money?: number
  /** US dollars per million tokens. Default: the model's price; required for `money` where that is unknown. */
  readonly price?: { readonly input: number; readonly output: number }
}

export interface TurnLimits {
  /** Model calls per turn; after them one more without tools ends the turn. */
  readonly maxSteps: number
  /** How often an answer may fail its schema before the turn fails. */
  readonly outputAttempts: number
  /** Claims of one turn without any progress between them, after which it is parked. */
  readonly maxRecoveries: number
  /** What happens when a person has denied every call of a step: `tell` the model, or `stop` the turn. */
  readonly whenDenied: 'tell' | 'stop'
  readonly budget: Budget
}

export interface AgentLimits extends TurnLimits {
  /** Work on one turn, waiting for people excluded. */
  readonly totalTimeoutMs: number
  /** Longest time without any event or fragment while a turn is worked on. */
  readonly idleTimeoutMs: number
  /** Calls that only read and run at once. */
  readonly parallelReads: number
  /** Longer results are stored as artifacts; the model sees head, tail and a reference. In characters. */
  readonly maxResultLength: number
  /** How long a person may take to decide on an approval. */
  readonly approvalTimeoutMs: number
  /**
   * How long a turn may stay in one state before it fails with `state_timeout`, also when its worker does not answer.
   * Default: an hour for `CREATED`, a minute more than the turn's total time for `RUNNING` and `WAITING_TOOL`, and 30
   * days for whatever waits for people.
   */
  readonly stateTimeoutsMs: StateLimits['stateTimeoutsMs']
}

/** The limits of an agent that sets none. Times in milliseconds, lengths in characters. */
export const DEFAULT_LIMITS: AgentLimits = {
  maxSteps: 10,
  outputAttempts: 3,
  maxRecoveries: 5,
  totalTimeoutMs: 10 * 60_000,
  idleTimeoutMs: 2 * 60_000,
  parallelReads: 4,
  maxResultLength: 16_000,
  approvalTimeoutMs: 7 * 24 * 3_600_000,
  stateTimeoutsMs: {},
  whenDenied: 'tell',
  budget: {},
}

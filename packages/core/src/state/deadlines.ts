// When a session needs attention without an input.
import { type ChildRecord, openApprovals, type SessionState, type TurnState } from './state.ts'
import { wakesAt } from './work.ts'

/** How long a turn may stay in one state. Milliseconds; missing values follow from the turn's own time limit. */
export interface StateLimits {
  readonly totalTimeoutMs: number
  readonly stateTimeoutsMs: Readonly<Partial<Record<'CREATED' | 'RUNNING' | 'WAITING_TOOL' | 'WAITING_USER', number>>>
}

const HOUR_MS = 3_600_000
/** Workers enforce the turn's time limit themselves; other processes enforce it this much later. */
const WORKER_GRACE_MS = 60_000

/** When the turn will have been in its state for too long, if nothing changes. */
export function stateDeadline(turn: TurnState, limits: StateLimits): number {
  const { task, paused, options } = turn
  const { CREATED, RUNNING, WAITING_TOOL, WAITING_USER } = limits.stateTimeoutsMs
  // A sleep and a signal with a time limit end by themselves.
  if (paused !== undefined && wakesAt(turn) !== undefined) return Number.POSITIVE_INFINITY
  // External results get the same time as people.
  if (paused !== undefined) return task.since + (WAITING_USER ?? 30 * 24 * HOUR_MS)
  if (task.state === 'CREATED') return task.since + (CREATED ?? HOUR_MS)
  const work = (options.totalTimeoutMs ?? limits.totalTimeoutMs) + WORKER_GRACE_MS
  return task.since + ((task.state === 'WAITING_TOOL' ? WAITING_TOOL : RUNNING) ?? work)
}

/** A child whose parent's turn was stopped and that has not come to its end yet. */
export const mustStop = ({ stopped, closed }: ChildRecord): boolean => stopped === true && closed === undefined

/**
 * When the first open approval runs out, the first sleep ends, or the turn's state has lasted too long; 0 when something is to be told to a
 * parent or a child; undefined when nothing does.
 */
export function nextDeadline(state: SessionState, limits: StateLimits | undefined): number | undefined {
  const { turn } = state
  if (state.undelivered.length > 0 || state.children.some(mustStop)) return 0
  if (turn === undefined) return undefined
  const times = [
    ...openApprovals(turn).map((it) => it.expiresAt),
    wakesAt(turn) ?? Number.POSITIVE_INFINITY,
    limits === undefined ? Number.POSITIVE_INFINITY : stateDeadline(turn, limits),
  ]
  const first = Math.min(...times)
  return first === Number.POSITIVE_INFINITY ? undefined : first
}

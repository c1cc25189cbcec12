// A turn as a task, for people who watch over many: one word for what it is doing, and how long it has been at it.
import type { Event } from '../events/types.ts'

export const TASK_STATES = [
  'CREATED',
  'RUNNING',
  'WAITING_TOOL',
  'WAITING_USER',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const
export type TaskState = (typeof TASK_STATES)[number]
export type DwellTimes = Readonly<Partial<Record<TaskState, number>>>

export interface Task {
  readonly state: TaskState
  /** When it began, in milliseconds since 1970. A worker that takes the turn up begins its state again. */
  readonly since: number
  /** Milliseconds in each state, without the present stay. */
  readonly dwellMs: DwellTimes
  /** Calls that have started and not ended. */
  readonly running: readonly string[]
}

export const newTask = ({ at }: Event<'turn.started'>): Task => ({
  state: 'CREATED',
  since: at,
  dwellMs: {},
  running: [],
})

/** The task after an event of its turn. Pure and total; an event that changes nothing returns the task itself. */
export function taskAfter(task: Task, event: Event): Task {
  switch (event.type) {
    case 'turn.claimed':
      return enter({ ...task, running: [] }, 'RUNNING', event.at)
    case 'call.started': {
      const running = [...task.running.filter((it) => it !== event.callId), event.callId]
      return changed({ ...task, running }, 'WAITING_TOOL', event.at)
    }
    // Approvals before the start of a call are not in the list; a tool that asks has stopped.
    case 'approval.requested':
    case 'call.finished': {
      if (!task.running.includes(event.callId)) return task
      const running = task.running.filter((it) => it !== event.callId)
      return changed({ ...task, running }, running.length === 0 ? 'RUNNING' : task.state, event.at)
    }
    // A result that the caller delivers, and a sleep, count as a tool's; everything else waits for a person.
    case 'turn.paused': {
      const isTool = event.reason === 'external' || event.reason === 'sleep'
      return changed(task, isTool ? 'WAITING_TOOL' : 'WAITING_USER', event.at)
    }
    case 'approval.resolved':
    case 'external.resolved':
    case 'work.finished':
    case 'signal.received':
    case 'turn.released':
    case 'interrupt.requested':
      return task.state === 'CREATED' || task.running.length > 0 ? task : changed(task, 'RUNNING', event.at)
    case 'turn.finished':
      return changed({ ...task, running: [] }, 'COMPLETED', event.at)
    case 'turn.failed':
      return changed({ ...task, running: [] }, 'FAILED', event.at)
    case 'turn.cancelled':
      return changed({ ...task, running: [] }, 'CANCELLED', event.at)
    default:
      return task
  }
}

/** Folds the events of one turn; events of other turns are passed over. Undefined before its start. */
export function taskOf(turnId: string, events: readonly Event[]): Task | undefined {
  let task: Task | undefined
  for (const event of events)
    if (event.type === 'turn.started' && event.turnId === turnId) task = newTask(event)
    else if (task !== undefined && event.type !== 'session.opened' && event.turnId === turnId)
      task = taskAfter(task, event)
  return task
}

export const isOver = ({ state }: Task): boolean => state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELLED'

/** Milliseconds in each state, the present stay included. The last state takes no time. */
export function dwellTimes(task: Task, now: number): DwellTimes {
  if (isOver(task)) return task.dwellMs
  return { ...task.dwellMs, [task.state]: stay(task, now) }
}

const changed = (task: Task, state: TaskState, at: number): Task =>
  task.state === state ? task : enter(task, state, at)

const enter = (task: Task, state: TaskState, at: number): Task => ({
  ...task,
  state,
  since: at,
  dwellMs: { ...task.dwellMs, [task.state]: stay(task, at) },
})

/** Clocks of two machines differ: no stay is shorter than nothing. */
const stay = ({ state, since, dwellMs }: Task, now: number): number => (dwellMs[state] ?? 0) + Math.max(0, now - since)

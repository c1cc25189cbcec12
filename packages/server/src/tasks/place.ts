// Locates a task: its id contains the session and the turn, so no index is needed beside the journals.
import { type Engine, type Event, findTurn, type Session, type SessionState, turnEvents } from '@oxbow/core'
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import type { Caller } from '../principal.ts'

const ID = String.raw`(?!\.+(?:$|:))[A-Za-z0-9_.-]{1,64}`

/** `TASK` for a task in its own session, `SESSION:TURN` for one in a shared session. */
export const taskId = z
  .string()
  .regex(new RegExp(`^${ID}(?::${ID})?$`), 'must be a taskId that this service returned')
  .describe('The taskId that the service returned.')

export interface TaskPlace {
  readonly session: Session
  readonly turnId: string
  /** Events after this number belong to the task. */
  readonly startedAfter: number
  readonly state: SessionState
}

export const taskIdOf = (session: string, turnId: string): string =>
  session === turnId ? turnId : `${session}:${turnId}`

export function partsOf(task: string): { session: string; turnId: string } {
  const [session = task, turnId = session] = task.split(':')
  return { session, turnId }
}

/** Another user's task has a different key, so it is not found, exactly like an unknown one. */
export async function findTask(engine: Engine, owner: Caller['owner'], task: string): Promise<TaskPlace | undefined> {
  const { session: sessionId, turnId } = partsOf(task)
  const session = engine.session({ ...owner, session: sessionId })
  const state = await session.state()
  const found = findTurn(state, turnId)
  // A steering input belongs to the turn that it joined: continue with that turn's id.
  return found && { session, turnId: found.turnId, startedAfter: found.startedSeq - 1, state }
}

/** @throws HttpError 404 `unknown_task` */
export async function existingTask(engine: Engine, owner: Caller['owner'], task: string): Promise<TaskPlace> {
  const place = await findTask(engine, owner, task)
  if (place === undefined) throw new HttpError(404, 'unknown_task', `There is no task ${JSON.stringify(task)}.`)
  return place
}

/** The stored events of a task, up to its end or to now. */
export const eventsOfTask = ({ session, turnId, state }: TaskPlace): Promise<Event[]> =>
  Array.fromAsync(turnEvents((after) => session.events(after), state, turnId))

// Sessions that a request names.
import type { Engine, SessionState } from '@oxbow/core'
import { HttpError } from './http/errors.ts'
import type { Caller } from './principal.ts'

export const sessionOf = (engine: Engine, session: string, owner: Caller['owner']) =>
  engine.session({ ...owner, session })

/**
 * Another user's session has a different key, so it is not found, exactly like an unknown one.
 *
 * @throws HttpError 404
 */
export async function existing(engine: Engine, sessionId: string, owner: Caller['owner']): Promise<SessionState> {
  const state = await sessionOf(engine, sessionId, owner).state()
  if (state.seq === 0) throw unknownSession(sessionId)
  return state
}

export const unknownSession = (sessionId: string) =>
  new HttpError(404, 'unknown_session', `There is no session ${JSON.stringify(sessionId)}.`)

// POST routes of sessions: stop a turn, release paused or parked ones, send the result of an external call or a signal.
import { type Engine, releaseParked } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { existing, sessionOf } from '../existing-session.ts'
import { HttpError } from '../http/errors.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, given, id, only, optionalId, sessionPath, whose } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'

export function interruptRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/api/sessions/{sessionId}/interrupt',
    id: 'interruptTurn',
    summary: 'Stops a turn; without a turn id the running one.',
    params: sessionPath,
    body: only({ ...whose, turnId: optionalId, reason: z.string().max(500).optional() }),
    bodyOptional: true,
    answers: {
      200: { description: 'The stopped turn.', schema: z.object({ turnId: z.string() }) },
      404: { description: 'The session has no such open turn.', schema: errorAnswer },
    },
    async handle({ params: { sessionId }, body }, c) {
      const { owner, principal } = callerOf(c, body)
      await existing(engine, sessionId, owner)
      const turnId = given(body.turnId)
      const hit = await sessionOf(engine, sessionId, owner).interrupt({
        principal,
        ...defined({ turnId, reason: body.reason }),
      })
      if (hit === undefined)
        throw new HttpError(
          404,
          'no_open_turn',
          turnId === undefined ? 'No turn of this session is open.' : `Turn ${turnId} is not open in this session.`,
        )
      return c.json({ turnId: hit })
    },
  })
}

export function releaseRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/api/sessions/{sessionId}/release',
    id: 'releaseTurn',
    summary: 'Releases a turn that was paused manually, or parked after too many interruptions.',
    params: sessionPath,
    body: only(whose),
    bodyOptional: true,
    answers: {
      200: { description: 'The released turn.', schema: z.object({ turnId: z.string() }) },
      409: { description: 'No turn of the session is paused manually or parked.', schema: errorAnswer },
    },
    async handle({ params: { sessionId }, body }, c) {
      const { owner, principal } = callerOf(c, body)
      const { turn } = await existing(engine, sessionId, owner)
      await sessionOf(engine, sessionId, owner).release({ principal })
      return c.json({ turnId: turn?.turnId })
    },
  })
}

export function releaseParkedRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/admin/api/release-parked',
    id: 'releaseParked',
    access: 'admin',
    summary: 'Releases all turns that were parked after too many interruptions.',
    body: only({
      tenant: optionalId.describe('Default: your own.'),
      userId: optionalId.describe('Default: all users.'),
    }),
    bodyOptional: true,
    answers: {
      200: {
        description: 'The sessions of the released turns.',
        schema: z.object({ sessions: z.array(z.object({ sessionId: z.string(), userId: z.string() })) }),
      },
    },
    async handle({ body }, c) {
      const { owner, principal } = callerOf(c, { tenant: body.tenant })
      const user = given(body.userId)
      const whose = { tenant: owner.tenant, ...defined({ user }) }
      const released = await releaseParked(engine, whose, { principal })
      return c.json({ sessions: released.map((it) => ({ sessionId: it.session, userId: it.user })) })
    },
  })
}

const content = z.union(
  [
    z.string(),
    z.array(
      z.discriminatedUnion('type', [
        only({ type: z.literal('text'), text: z.string() }),
        only({
          type: z.literal('data'),
          mediaType: z.string(),
          data: z.string().optional().describe('Base64.'),
          url: z.string().optional(),
          name: z.string().optional(),
        }),
      ]),
    ),
  ],
  'must be a string, or a list of {"type": "text", "text"} and {"type": "data", "mediaType", "data" or "url"}',
)

export function callResultRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/api/sessions/{sessionId}/calls/{callId}',
    id: 'bringCallResult',
    summary: 'Sends the result of an external call and resumes the turn.',
    params: sessionPath.extend({ callId: id }),
    body: only({
      ...whose,
      status: z.enum(['success', 'error'], 'must be "success" or "error"').default('success'),
      content,
    }),
    answers: {
      202: {
        description: 'Stored. The session’s events after `after` show the outcome.',
        schema: z.object({ turnId: z.string(), after: z.number() }),
      },
      404: {
        description: 'No such call is waiting: it is unknown, or its turn already resumed.',
        schema: errorAnswer,
      },
      409: { description: 'Its result is already stored, and its turn waits for other results.', schema: errorAnswer },
    },
    async handle({ params: { sessionId, callId }, body }, c) {
      const { owner, principal } = callerOf(c, body)
      await existing(engine, sessionId, owner)
      const { status } = body
      const { turnId, after } = await sessionOf(engine, sessionId, owner).resolve(
        callId,
        { status, content: body.content as string },
        { principal },
      )
      return c.json({ turnId, after }, 202)
    },
  })
}

export function signalRoute(engine: Engine): Route {
  return route({
    method: 'post',
    path: '/api/sessions/{sessionId}/signals',
    id: 'sendSignal',
    summary: 'Sends a signal to the open turn; a tool that waits for its name continues.',
    params: sessionPath,
    body: only({
      ...whose,
      name: z.string().min(1).max(200),
      value: z.unknown().optional().describe('JSON that the tool receives. Default: null.'),
      signalId: optionalId.describe('A signal with the same id is delivered once. Default: a new id.'),
      turnId: optionalId.describe('Only if this is the open turn.'),
    }),
    answers: {
      202: {
        description: 'Stored. The session’s events after `after` show the outcome.',
        schema: z.object({ turnId: z.string(), after: z.number(), duplicate: z.boolean() }),
      },
      403: { description: 'The turn runs for another user.', schema: errorAnswer },
      404: { description: 'The session has no open turn, or another one.', schema: errorAnswer },
      429: { description: 'Too many signals wait to be received.', schema: errorAnswer },
    },
    async handle({ params: { sessionId }, body }, c) {
      const { owner, principal } = callerOf(c, body)
      await existing(engine, sessionId, owner)
      const [id, turnId] = [given(body.signalId), given(body.turnId)]
      const { accepted, ...sent } = await sessionOf(engine, sessionId, owner).signal(body.name, body.value ?? null, {
        principal,
        ...defined({ id, turnId }),
      })
      return c.json({ turnId: sent.turnId, after: sent.after, duplicate: accepted === 'duplicate' }, 202)
    },
  })
}

// POST /api/chat: sends one message and returns the answer.
import { randomUUID } from 'node:crypto'
import { type Engine, type Event, findTurn, openApprovals } from '@oxbow/core'
import { z } from 'zod'
import { openFound } from '../approvals/find.ts'
import { approvalView, approvalViewOf } from '../approvals/view.ts'
import { failureOf, failureOfResult, failureOfStop, unknownCalls } from '../failures.ts'
import { failureResponse, HttpError } from '../http/errors.ts'
import { toId } from '../http/ids.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, given, messageText, only, optionalId, unknownOutcomes, whose } from '../http/schemas.ts'
import type { TurnSlots } from '../identity/limits/turn-slots.ts'
import { callerOf } from '../principal.ts'
import type { Audience } from '../stream/audience.ts'
import type { Rights } from '../stream/rights.ts'
import { sessionForRetry } from './session-for-retry.ts'

type PauseReason = Event<'turn.paused'>['reason']

export function chatRoute(
  engine: Engine,
  audience: Audience,
  rights: Rights,
  limits: { maxMessageLength: number },
  slots: TurnSlots,
): Route {
  return route({
    method: 'post',
    path: '/api/chat',
    id: 'chat',
    summary: 'Sends a message and waits for the answer.',
    headers: z.object({
      'Idempotency-Key': z.string().optional().describe('Makes a retry safe: the same key returns the same turn.'),
    }),
    body: only({
      ...whose,
      userId: optionalId.describe('With identity enabled always your own. Without: default `default`.'),
      sessionId: optionalId.describe('Default: a new session.'),
      message: messageText(limits.maxMessageLength),
      turnId: optionalId.describe('Makes a retry safe: the same id returns the same turn.'),
    }),
    answers: {
      200: {
        description: 'The answer.',
        schema: z.object({
          sessionId: z.string(),
          reply: z.string(),
          reason: z
            .string()
            .optional()
            .describe('Why the reply is incomplete: `length`, `filtered`, `refusal`, `max_steps`, `stopped`.'),
          unknownOutcomes,
        }),
      },
      202: {
        description: 'The turn is waiting: for approvals, results of external calls, a signal, a time, or its release.',
        schema: z.object({
          sessionId: z.string(),
          reply: z.string(),
          turnId: z.string(),
          reason: z.string().describe('What it waits for, such as approval, external, signal or sleep.'),
          pending: z.array(
            z.object({ callId: z.string(), tool: z.string(), arguments: z.record(z.string(), z.unknown()) }),
          ),
          approvals: z.array(approvalView).optional().describe('The open approvals.'),
        }),
      },
      409: { description: 'The turn was stopped, or an earlier turn is waiting.', schema: errorAnswer },
      422: { description: 'The model refused, or the conversation is too long.', schema: errorAnswer },
      502: { description: 'The model failed.', schema: errorAnswer },
      504: { description: 'The answer took too long.', schema: errorAnswer },
    },
    async handle({ body }, c) {
      const { owner, principal } = callerOf(c, body)
      const retryKey = given(body.turnId) ?? toId(c.req.header('idempotency-key'))
      const turnId = retryKey ?? randomUUID()
      const sessionId =
        given(body.sessionId) ?? (retryKey === undefined ? randomUUID() : sessionForRetry(owner.user, retryKey))
      const session = engine.session({ ...owner, session: sessionId })

      const state = await session.state()
      if (state.turn?.paused !== undefined && findTurn(state, turnId) === undefined)
        throw new HttpError(
          409,
          'session_waiting',
          `This session is waiting for ${WAITS_FOR[state.turn.paused.reason]} (turn ${state.turn.turnId}). ` +
            `${WAY_OUT[state.turn.paused.reason]}, or interrupt it, before you send another message.`,
        )
      const release = slots.take(principal, session.key, turnId)
      const { outgoing } = c.env
      // A client that repeats the request of a turn started elsewhere does not stop that turn by disconnecting.
      const leave = audience.enter(session, turnId, findTurn(state, turnId) === undefined ? 'starter' : 'reconnected')
      if (outgoing.destroyed) leave(false)
      outgoing.once('close', () => leave(false))
      // A turn that waits for an external call needs no watcher.
      const mayStillRead = rights.before({ owner, principal })
      const running = session.run(body.message, { turnId, principal, surface: 'http' })
      const result = await running.finally(() => {
        leave(true)
        release?.()
      })

      await mayStillRead()
      if (result.status === 'cancelled') return failureResponse(failureOfStop(result.reason))
      if (result.reason === 'recovery_limit') return failureResponse(failureOf('recovery_limit', turnId))
      const reply = result.text
      if (result.status === 'paused') {
        const state = await session.state()
        const approvals = openApprovals(state.turn).map((it) =>
          approvalViewOf(session.key, openFound(session.key, state, it), principal),
        )
        const { pending, reason } = result
        return c.json({ sessionId, reply, turnId, reason, pending, ...(approvals.length > 0 && { approvals }) }, 202)
      }
      const empty = failureOfResult(result)
      if (empty !== undefined) return failureResponse(empty)
      const unknown = unknownCalls(result)
      const { reason } = result
      return c.json({
        sessionId,
        reply,
        ...(reason !== 'completed' && { reason }),
        ...(unknown && { unknownOutcomes: unknown }),
      })
    },
  })
}

const WAITS_FOR: Readonly<Record<PauseReason, string>> = {
  external: 'the result of an external call',
  approval: 'an approval',
  signal: 'a signal',
  sleep: 'the time until which a tool sleeps',
  manual: 'its release, because it was paused',
  recovery_limit: 'its release, because it was interrupted too often',
}

/** The ways to resume a waiting turn. */
export const WAY_OUT: Readonly<Record<PauseReason, string>> = {
  external: 'Send the result (POST /api/sessions/{sessionId}/calls/{callId})',
  approval: 'Decide on it (POST /api/approvals/{approvalId})',
  signal: 'Send it (POST /api/sessions/{sessionId}/signals)',
  sleep: 'Wait until it is over',
  manual: 'Release it (POST /api/sessions/{sessionId}/release)',
  recovery_limit: 'Release it (POST /api/sessions/{sessionId}/release)',
}

// GET routes of sessions: the list, the conversation and the journal.

import { type Block, type Engine, type Message, openApprovals } from '@oxbow/core'
import { defined, statusOf } from '@oxbow/core/internal'
import { z } from 'zod'
import { openFound } from '../approvals/find.ts'
import { approvalView, approvalViewOf } from '../approvals/view.ts'
import { existing, sessionOf, unknownSession } from '../existing-session.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, pageBefore, sequenceNumber, sessionPath, userQuery, wholeNumber } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'

const status = z.enum(['idle', 'running', 'waiting', 'parked'])

export function sessionList(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/sessions',
    id: 'listSessions',
    summary: 'The sessions of a user, newest first.',
    query: userQuery.extend({
      limit: wholeNumber(1, 200).default(50),
      before: pageBefore,
    }),
    answers: {
      200: {
        description: 'One page.',
        schema: z.object({
          sessions: z.array(
            z.object({
              sessionId: z.string(),
              userId: z.string(),
              status,
              title: z.string(),
              agent: z.string(),
              createdAt: z.number().describe('Milliseconds since 1970.'),
              updatedAt: z.number(),
            }),
          ),
          next: z.number().optional().describe('`before` of the next page, if there may be one.'),
        }),
      },
    },
    async handle({ query }, c) {
      const { owner } = callerOf(c, query)
      const { limit, before } = query
      const page = await engine.sessions({ ...owner, limit, ...defined({ before }) })
      const sessions = page.map(({ key, status, title, agent, createdAt, updatedAt }) => {
        return { sessionId: key.session, userId: key.user, status, title, agent, createdAt, updatedAt }
      })
      const next = page.length < limit ? undefined : page.at(-1)!.updatedAt
      return c.json({ sessions, ...defined({ next }) })
    },
  })
}

export function sessionMessages(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/sessions/{sessionId}/messages',
    id: 'sessionMessages',
    summary: 'The conversation as the model sees it, and the state of its turn.',
    params: sessionPath,
    query: userQuery,
    answers: {
      200: {
        description: 'The conversation.',
        schema: z.object({
          sessionId: z.string(),
          status,
          messages: z.array(
            z.object({
              id: z.string(),
              role: z.enum(['user', 'assistant', 'tool']),
              origin: z
                .enum(['agent', 'engine'])
                .optional()
                .describe('For the role `user`: written by another agent or by the engine, not by the user.'),
              blocks: z.array(z.looseObject({ type: z.enum(['text', 'thinking', 'data', 'call', 'result']) })),
              partial: z.boolean().optional(),
              model: z.string().optional().describe('The model that wrote it.'),
            }),
          ),
          turn: z
            .object({
              turnId: z.string(),
              step: z.number(),
              pending: z.array(z.object({ callId: z.string(), tool: z.string() })).describe('Open external calls.'),
              approvals: z.array(approvalView).describe('The open approvals.'),
            })
            .optional()
            .describe('The open turn.'),
          queued: z.array(z.string()).describe('Queued turns.'),
          seq: z.number().describe('The last event that this answer includes.'),
        }),
      },
      404: { description: 'The session does not exist.', schema: errorAnswer },
    },
    async handle({ params: { sessionId }, query }, c) {
      const { owner, principal } = callerOf(c, query)
      const state = await existing(engine, sessionId, owner)
      const { turn } = state
      const { key } = sessionOf(engine, sessionId, owner)
      const open = turn && {
        turnId: turn.turnId,
        step: turn.step,
        pending: turn.calls
          .filter((it) => it.external === true && it.resolved === undefined && it.finished === undefined)
          .map(({ callId, tool }) => ({ callId, tool })),
        approvals: openApprovals(state.turn).map((it) => approvalViewOf(key, openFound(key, state, it), principal)),
      }
      const answer = {
        sessionId,
        status: statusOf(state),
        ...(open && { turn: open }),
        queued: state.queue.map((it) => it.started.turnId),
        seq: state.seq,
      }
      c.header('Content-Type', 'application/json')
      return c.body(ReadableStream.from(inSlices(answer, state.messages)))
    },
  })
}

/** The answer with its messages as JSON, in slices so that the event loop is never blocked for long. */
async function* inSlices(answer: object, messages: readonly Message[]): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  yield encoder.encode(`${JSON.stringify(answer).slice(0, -1)},"messages":[`)
  for (let at = 0; at < messages.length; at += SLICE) {
    const slice = messages.slice(at, at + SLICE).map(shown)
    yield encoder.encode((at === 0 ? '' : ',') + JSON.stringify(slice).slice(1, -1))
    if (slice.length === SLICE) await new Promise(setImmediate)
  }
  yield encoder.encode(']}')
}

const SLICE = 500

export function sessionEvents(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/sessions/{sessionId}/events',
    id: 'sessionEvents',
    summary: 'The journal of a session, page by page.',
    params: sessionPath,
    query: userQuery.extend({ after: sequenceNumber.default(0) }),
    answers: {
      200: {
        description: 'At most 500 events.',
        schema: z.object({
          events: z.array(z.looseObject({ seq: z.number(), at: z.number(), type: z.string() })),
          next: z.number().optional().describe('`after` of the next page, if there is one.'),
        }),
      },
      404: { description: 'The session does not exist.', schema: errorAnswer },
    },
    async handle({ params: { sessionId }, query }, c) {
      const { owner } = callerOf(c, query)
      const session = sessionOf(engine, sessionId, owner)
      // Reads one page only: it does not need the state of the session.
      const head = await engine.backend.journal.head(session.key)
      if (head === 0) throw unknownSession(sessionId)
      const events = await session.events(query.after)
      const last = events.at(-1)
      return c.json({ events, ...(last !== undefined && last.seq < head && { next: last.seq }) })
    },
  })
}

/** Proofs and sealed reasoning stay between the engine and the provider. */
export const shown = (message: Message): Message => ({
  ...message,
  blocks: message.blocks.map((it): Block => (it.type === 'thinking' ? { type: 'thinking', text: it.text } : it)),
})

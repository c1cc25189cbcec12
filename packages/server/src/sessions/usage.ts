// GET /api/sessions/{sessionId}/usage: the current size of the context, and the usage of the last turn and of the
// session.

import { type Engine, type SessionState, turnEvents, turnResult, type Usage } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { existing, sessionOf } from '../existing-session.ts'
import { type Route, route } from '../http/route.ts'
import { errorAnswer, sessionPath, userQuery } from '../http/schemas.ts'
import { type Caller, callerOf } from '../principal.ts'

const usage = z.object({
  inputTokens: z.number().describe('Without tokens read from or written to the cache.'),
  cacheReadTokens: z.number(),
  cacheWriteTokens: z.number(),
  outputTokens: z.number(),
  reasoningTokens: z.number().describe('Part of outputTokens.'),
  estimated: z.boolean().describe('True when a provider reported no usage for some of it.'),
  cost: z.number().nullable().describe('US dollars; null when a price is unknown.'),
})

export function sessionUsage(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/api/sessions/{sessionId}/usage',
    id: 'sessionUsage',
    summary: 'Tokens and cost of the current context, the last turn and the session.',
    params: sessionPath,
    query: userQuery,
    answers: {
      200: {
        description: 'The usage.',
        schema: z.object({
          sessionId: z.string(),
          context: z.object({
            tokens: z.number().describe('Tokens that the last model call read and wrote.'),
            window: z.number().nullable().describe('The model’s context window; null when it is unknown.'),
          }),
          turn: usage.extend({ turnId: z.string() }).nullable().describe('The open turn, otherwise the last one.'),
          session: usage,
        }),
      },
      404: { description: 'The session does not exist.', schema: errorAnswer },
    },
    async handle({ params: { sessionId }, query }, c) {
      const { owner } = callerOf(c, query)
      const state = await existing(engine, sessionId, owner)
      return c.json({
        sessionId,
        context: {
          tokens: state.contextTokens,
          window: engine.agents.get(state.agent)?.model.contextWindow ?? null,
        },
        turn: await lastTurn(engine, sessionId, owner, state),
        session: shown(state.usage),
      })
    },
  })
}

async function lastTurn(
  engine: Engine,
  sessionId: string,
  owner: Caller['owner'],
  state: SessionState,
): Promise<z.output<typeof usage> | null> {
  const { turn, finished } = state
  if (turn !== undefined) return shown(turn.usage, turn.turnId)
  const last = finished.at(-1)
  if (last === undefined) return null
  const session = sessionOf(engine, sessionId, owner)
  const events = await Array.fromAsync(turnEvents((at) => session.events(at), state, last.turnId))
  return shown(turnResult(last.turnId, events).usage, last.turnId)
}

const shown = (usage: Usage, turnId?: string) => ({
  ...defined({ turnId }),
  ...usage,
  cost: usage.cost ?? null,
})

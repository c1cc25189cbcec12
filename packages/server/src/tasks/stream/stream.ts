// GET /agent/stream/{taskId}: the frames of a task as server-sent events.
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Engine } from '@oxbow/core'
import { z } from 'zod'
import { withdrawnBody } from '../../http/errors.ts'
import { type AppContext, type Route, route } from '../../http/route.ts'
import { errorAnswer, userQuery } from '../../http/schemas.ts'
import { streamHeaders } from '../../http/security.ts'
import type { StreamSlots } from '../../identity/limits/stream-slots.ts'
import { type Caller, callerOf } from '../../principal.ts'
import type { Broadcasts } from '../../stream/broadcast.ts'
import { lastEventId } from '../../stream/last-event-id.ts'
import type { Rights } from '../../stream/rights.ts'
import type { SseStreams } from '../../stream/sse.ts'
import { existingTask, type TaskPlace, taskId } from '../place.ts'
import { taskFrames } from './frames.ts'
import { eventStream, readTask, type TaskReading } from './reading.ts'

export interface TaskStreams {
  readonly streamSlots: StreamSlots
  readonly broadcasts: Broadcasts
  readonly streams: SseStreams
  readonly rights: Rights
  /** The time limit of a stream. A reader whose task has not ended reconnects and continues. */
  readonly limitMs: number
  readonly report: (error: unknown, about: { readonly turnId: string }) => string
}

export function taskStreamRoute(engine: Engine, deps: TaskStreams): Route {
  return route({
    method: 'get',
    path: '/agent/stream/{taskId}',
    id: 'streamTask',
    summary: 'Streams a task from its start, or from the last received frame, to its end.',
    params: z.object({ taskId }),
    headers: z.object({ 'Last-Event-ID': z.string().optional().describe('The last received `id:`.') }),
    query: userQuery.extend({ after: z.string().optional().describe('The same as Last-Event-ID.') }),
    answers: {
      200: {
        description: 'Events `message`, `tool_call`, `tool_result`, `state`, and finally `done` or `error`.',
        contentType: 'text/event-stream',
      },
      404: { description: 'The task does not exist.', schema: errorAnswer },
    },
    async handle({ params: { taskId }, query }, c) {
      const after = lastEventId(c, query.after) ?? 0
      const caller = callerOf(c, query)
      const place = await existingTask(engine, caller.owner, taskId)
      return streamTask(deps, c, caller, place, {
        after,
        encode: taskFrames(taskId, place.session.key),
        form: `task ${taskId}`,
      })
    },
  })
}

export async function streamTask(
  { streams, streamSlots, broadcasts, rights, limitMs, report }: TaskStreams,
  c: AppContext,
  caller: Caller,
  place: TaskPlace,
  what: Pick<TaskReading, 'after' | 'encode' | 'form'>,
): Promise<Response> {
  if (c.req.method === 'HEAD') return c.body(null, 200, { 'content-type': 'text/event-stream' })
  c.env.outgoing.once('close', streamSlots.take(caller.principal))
  const sse = streams.open(c.env.outgoing, streamHeaders(c))
  const reading = rights.watch(caller)
  const time = new AbortController()
  const timer = setTimeout(() => time.abort(), limitMs)
  try {
    // Headers are sent with the first byte, and a waiting task may have no event for a long time.
    sse.write(': open\n\n')
    const signal = AbortSignal.any([time.signal, reading.withdrawn])
    const ended = await readTask(broadcasts, place, {
      ...what,
      format: eventStream,
      wire: sse,
      signal,
      report: (error) => report(error, place),
    })
    if (!ended && reading.withdrawn.aborted) sse.write(`event: error\ndata: ${JSON.stringify(withdrawnBody())}\n\n`)
  } catch (error) {
    // The task continues without its reader, which can reconnect where it was.
    report(error, place)
  } finally {
    clearTimeout(timer)
    reading.done()
    sse.end()
  }
  return RESPONSE_ALREADY_SENT
}

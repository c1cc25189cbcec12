// GET /agent/ws/{taskId}: the frames of a task over a WebSocket, one JSON object per message.
import type { IncomingMessage, Server } from 'node:http'
import { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Engine } from '@oxbow/core'
import { type WebSocket, WebSocketServer } from 'ws'
import { z } from 'zod'
import { HttpError, withdrawnBody } from '../../http/errors.ts'
import { type Route, route } from '../../http/route.ts'
import { errorAnswer, userQuery } from '../../http/schemas.ts'
import { endSoon, refuse } from '../../http/wire.ts'
import { type Caller, callerOf } from '../../principal.ts'
import type { Wire } from '../../stream/broadcast.ts'
import { lastEventId } from '../../stream/last-event-id.ts'
import { existingTask, taskId } from '../place.ts'
import { taskFrames } from './frames.ts'
import { readTask, type TaskFrame } from './reading.ts'
import type { TaskStreams } from './stream.ts'

const NORMAL = 1000
const GOING_AWAY = 1001
const POLICY_VIOLATION = 1008
/** The maximum number of bytes that may be buffered for one reader. */
const MAX_WAITING = 64 * 1024

export interface Sockets {
  readonly route: Route
  /** Which requests are upgraded. HTTP/2 upgrades are ignored and answered as ordinary requests. */
  readonly wanted: (request: IncomingMessage) => boolean
  /**
   * Sends upgrade requests through the ordinary routes: the same checks, the same log, and an ordinary answer when they
   * are refused.
   */
  attach(server: Server, listener: (request: IncomingMessage, response: ServerResponse) => void): void
  /** Tells every reader to reconnect. */
  close(): void
  /** For readers that do not answer. */
  destroy(): void
}

export function taskSockets(engine: Engine, deps: Omit<TaskStreams, 'streams'> & { heartbeatMs: number }): Sockets {
  const server = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024 })
  // The library's own refusals lack the usual error form.
  server.on('wsClientError', ({ message }, socket) =>
    refuse(socket, { status: 400, phrase: 'Bad Request', code: 'invalid_upgrade', message: `${message}.` }),
  )
  const upgrades = new WeakMap<IncomingMessage, { socket: Duplex; head: Buffer }>()
  const beat = setInterval(() => {
    // A slow reader has unread bytes and needs no ping.
    for (const it of server.clients) if (it.bufferedAmount === 0) it.ping()
  }, deps.heartbeatMs)
  beat.unref()

  return {
    wanted: ({ method, headers }) => method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket',
    route: route({
      method: 'get',
      path: '/agent/ws/{taskId}',
      id: 'watchTask',
      summary: 'The frames of a task over a WebSocket: {"id", "event", "data"} per message.',
      params: z.object({ taskId }),
      query: userQuery.extend({ after: z.string().optional().describe('The `id` of the last frame received.') }),
      answers: {
        200: { description: 'Not used: the connection is upgraded (101).' },
        404: { description: 'The task does not exist.', schema: errorAnswer },
        426: { description: 'The request is not an upgrade.', schema: errorAnswer },
      },
      async handle({ params: { taskId }, query }, c) {
        const upgrade = upgrades.get(c.env.incoming)
        if (upgrade === undefined)
          throw new HttpError(426, 'upgrade_required', 'This route requires an upgrade to WebSocket.', {
            upgrade: 'websocket',
          })
        const after = lastEventId(c, query.after) ?? 0
        const caller = callerOf(c, query)
        const place = await existingTask(engine, caller.owner, taskId)
        upgrade.socket.once('close', deps.streamSlots.take(caller.principal))
        c.env.outgoing.detachSocket(upgrade.socket as never)
        server.handleUpgrade(c.env.incoming, upgrade.socket, upgrade.head, (socket) => {
          void serve(socket, caller, async (wire, signal) => {
            try {
              return await readTask(deps.broadcasts, place, {
                after,
                encode: taskFrames(taskId, place.session.key),
                format: message,
                form: `socket ${taskId}`,
                wire,
                signal,
                report: (error) => deps.report(error, place),
              })
            } catch (error) {
              deps.report(error, place)
              return false
            }
          })
        })
        return RESPONSE_ALREADY_SENT
      },
    }),
    attach(http, listener) {
      http.on('upgrade', (request, socket, head) => {
        upgrades.set(request, { socket, head })
        // From here on this code owns the socket: nothing else handles its errors.
        socket.on('error', () => socket.destroy())
        const response = new ServerResponse(request)
        response.assignSocket(socket as never)
        response.shouldKeepAlive = false
        response.once('finish', () => endSoon(socket))
        listener(request, response)
      })
    },
    close() {
      clearInterval(beat)
      for (const it of server.clients) it.close(GOING_AWAY)
      server.close()
    },
    destroy() {
      for (const it of server.clients) it.terminate()
    },
  }

  async function serve(
    socket: WebSocket,
    caller: Caller,
    read: (wire: Wire, signal: AbortSignal) => Promise<boolean>,
  ): Promise<void> {
    const reading = deps.rights.watch(caller)
    const left = new AbortController()
    socket.once('close', () => left.abort())
    socket.on('error', () => left.abort())
    const time = new AbortController()
    const timer = setTimeout(() => {
      time.abort()
      // A reader that does not read would not notice the close either.
      if (socket.bufferedAmount > MAX_WAITING) socket.terminate()
    }, deps.limitMs)
    const write = (text: string): Promise<void> | undefined => {
      if (socket.readyState !== socket.OPEN) return undefined
      let sent: Promise<void> | undefined
      for (const line of text.trimEnd().split('\n')) sent = new Promise((resolve) => socket.send(line, () => resolve()))
      return socket.bufferedAmount > MAX_WAITING ? sent : undefined
    }
    const ended = await read({ write, signal: left.signal }, AbortSignal.any([time.signal, reading.withdrawn]))
    clearTimeout(timer)
    reading.done()
    const sentAway = !ended && reading.withdrawn.aborted
    if (sentAway) write(JSON.stringify({ event: 'error', data: withdrawnBody() }))
    socket.close(ended ? NORMAL : sentAway ? POLICY_VIOLATION : GOING_AWAY, sentAway ? 'access_withdrawn' : undefined)
  }
}

const message = ({ id, event, data }: TaskFrame): string => `${JSON.stringify({ id, event, data })}\n`

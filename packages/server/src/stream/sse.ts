// An event stream on a Node response. Written directly: web streams between the engine and the socket would cost 3.2 µs
// per frame instead of 1.3 µs.
import type { ServerResponse } from 'node:http'

export interface Sse {
  /** Undefined while the reader keeps up; otherwise resolves when the reader has caught up or left. */
  write(text: string): Promise<void> | undefined
  end(): void
  /** Fires when the reader has left. */
  readonly signal: AbortSignal
}

export interface SseStreams {
  /** `comments`: whether the stream gets heartbeats; default true. */
  open(
    outgoing: ServerResponse,
    headers: Readonly<Record<string, string>>,
    options?: { readonly comments: boolean },
  ): Sse
  readonly count: number
  close(): void
}

const HEARTBEAT = ': keep-alive\n\n'

/**
 * A reader that reads nothing for this long is disconnected, because it keeps its session in memory. It may reconnect.
 */
const STALLED_MS = 10 * 60_000

/** One timer serves all streams. A slow reader gets no heartbeats: it has unread bytes. */
export function sseStreams(heartbeatMs: number, stalledMs = STALLED_MS): SseStreams {
  const streams = new Set<ServerResponse>()
  const silent = new WeakSet<ServerResponse>()
  /** The time since which a writer has been waiting for its reader. */
  const waiting = new Map<ServerResponse, number>()
  const beat = (): void => {
    const tooLong = performance.now() - stalledMs
    for (const [it, since] of waiting) if (since < tooLong) it.destroy()
    for (const it of streams) if (!it.writableNeedDrain && !silent.has(it)) it.write(HEARTBEAT)
  }
  const timer = setInterval(beat, heartbeatMs)
  timer.unref()

  return {
    open(outgoing, headers, { comments } = { comments: true }) {
      const left = new AbortController()
      streams.add(outgoing)
      if (!comments) silent.add(outgoing)
      outgoing.once('close', () => {
        streams.delete(outgoing)
        left.abort()
      })
      // A write to a closed socket is also reported by 'close'.
      outgoing.on('error', () => {})
      outgoing.writeHead(200, {
        ...headers,
        'content-type': 'text/event-stream',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      })
      return {
        signal: left.signal,
        write(text) {
          if (text === '' || outgoing.destroyed || outgoing.write(text)) return undefined
          return new Promise((resolve) => {
            waiting.set(outgoing, performance.now())
            const done = (): void => {
              waiting.delete(outgoing)
              outgoing.off('drain', done)
              outgoing.off('close', done)
              resolve()
            }
            outgoing.on('drain', done)
            outgoing.on('close', done)
          })
        },
        end() {
          streams.delete(outgoing)
          outgoing.end()
        },
      }
    },
    get count() {
      return streams.size
    },
    close: () => clearInterval(timer),
  }
}

// The connection that listens. A link that is dead in one direction shows no error, so it proves that it is alive by a
// notification to itself.
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Client } from 'pg'
import { type Database, loadPg } from './database.ts'

const PROVE_EVERY_MS = 5_000
const ANSWER_WITHIN_MS = 5_000
const RECONNECT_MS = 500
const CONNECT_MS = 5_000

export interface Listener {
  /** Resolves when it listens, now or after it has connected again. */
  listening(): Promise<void>
  /** See `Bus`. */
  lagMs(): number | undefined
  close(): Promise<void>
}

/** Calls `onMessage` for each notification, and `onGap` each time it begins to listen: messages before that were missed. */
export function listen(
  database: Database,
  url: string,
  channel: string,
  onMessage: (payload: string) => void,
  onGap: () => void,
): Listener {
  const own = `oxbow:alive:${randomUUID()}`
  let client: Client | undefined
  let closed = false
  let timer: NodeJS.Timeout | undefined
  let reconnecting: NodeJS.Timeout | undefined
  let answer: NodeJS.Timeout | undefined
  let state = Promise.withResolvers<void>()
  let provedAt = 0
  let lagMs: number | undefined

  async function connect(): Promise<void> {
    if (closed) return
    const { Client } = await loadPg()
    const next = new Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      application_name: 'oxbow listener',
    })
    const lost = () => {
      if (client === next || client === undefined) retry(next)
    }
    next.on('error', lost)
    next.on('end', lost)
    next.on('notification', ({ channel: from, payload = '' }) => {
      if (from === own) {
        clearTimeout(answer)
        lagMs = performance.now() - provedAt
      } else onMessage(payload)
    })
    try {
      await next.connect()
      if (closed) return void (await next.end())
      client = next
      await next.query(`LISTEN "${channel}"; LISTEN "${own}"`)
      // It does not keep the process alive.
      streamOf(next).unref()
      state.resolve()
      onGap()
      prove()
    } catch {
      retry(next)
    }
  }

  function retry(old: Client): void {
    if (closed || reconnecting !== undefined) return
    clearTimeout(timer)
    clearTimeout(answer)
    client = undefined
    state = Promise.withResolvers<void>()
    state.promise.catch(() => {})
    old.removeAllListeners('end')
    old.end().catch(() => {})
    reconnecting = setTimeout(() => {
      reconnecting = undefined
      void connect()
    }, RECONNECT_MS).unref()
  }

  function prove(): void {
    const listening = client
    if (listening === undefined) return
    answer = setTimeout(() => {
      // No answer: the socket looks open and is not.
      streamOf(listening).destroy()
      retry(listening)
    }, ANSWER_WITHIN_MS).unref()
    provedAt = performance.now()
    // Over another connection: an answer then says that notifications arrive, not that statements do.
    database.query(`SELECT pg_notify($1, '')`, [own]).catch(() => {})
    timer = setTimeout(prove, PROVE_EVERY_MS + ANSWER_WITHIN_MS).unref()
  }

  void database
    .pool()
    .catch(() => {})
    .then(connect)

  return {
    listening: () => state.promise,
    lagMs: () => (client === undefined ? Number.POSITIVE_INFINITY : lagMs),
    async close() {
      closed = true
      for (const it of [timer, answer, reconnecting]) clearTimeout(it)
      state.resolve()
      if (client === undefined) return
      client.removeAllListeners('end')
      // The goodbye is waited for.
      streamOf(client).ref()
      await client.end().catch(() => {})
    },
  }
}

/** The socket, which the types of the driver do not show. */
const streamOf = (client: Client): Socket => (client as unknown as { connection: { stream: Socket } }).connection.stream

// Messages between replicas, over NOTIFY. One connection of the process listens; the statements that notify run apart from
// appends, because a transaction that notifies holds a lock of the whole database while it commits.
import { randomUUID } from 'node:crypto'
import type { Bus } from '@oxbow/core'
import { localBus } from '../local/bus.ts'
import type { Database } from './database.ts'
import { listen } from './listener.ts'

export interface PostgresBus extends Bus {
  /** Like `subscribe`, without the messages of this process. */
  subscribeToOthers(topic: string, receive: (message: string) => void, onGap: () => void): () => void
  /** Resolves when messages of other replicas arrive. */
  listening(): Promise<void>
  close(): Promise<void>
}

/** What goes over the wire. `number` keeps two equal payloads of one transaction apart: PostgreSQL sends only one. */
interface Envelope {
  readonly from: string
  readonly number: number
  /** Topic, message, topic, message … */
  readonly messages?: readonly string[]
  /** The row that holds them. */
  readonly stored?: number
}

/** For how long messages gather into one notification. */
const GATHER_MS = 5
/** PostgreSQL allows 7,999 bytes. */
const PAYLOAD_BYTES = 7_900
/** What waits for a server that is away is dropped beyond this: the journal has all that matters. */
const MOST_WAITING = 10_000
const CLEAN_EVERY_MS = 60_000

export function postgresBus(database: Database, url: string): PostgresBus {
  const { schema } = database
  const channel = `oxbow:${schema}`
  const from = randomUUID()
  const here = localBus()
  const others = localBus()
  const gaps = new Set<() => void>()
  let outgoing: string[] = []
  let timer: NodeJS.Timeout | undefined
  let sending = false
  let closed = false
  let number = 0
  let cleanedAt = 0
  /** Long messages are fetched; what comes after them waits for its turn. */
  let incoming: Promise<void> | undefined

  const reportGap = () => {
    for (const it of gaps) it()
  }
  const listener = listen(database, url, channel, receive, reportGap)

  function receive(payload: string): void {
    const envelope = parsed(payload)
    if (envelope === undefined || envelope.from === from) return
    if (incoming === undefined && envelope.stored === undefined) {
      deliver(envelope.messages ?? [])
      return
    }
    const before = incoming
    const mine: Promise<void> = (async () => {
      await before
      deliver(envelope.messages ?? (await fetchStored(envelope.stored!)))
    })()
      .catch(reportGap)
      .finally(() => {
        if (incoming === mine) incoming = undefined
      })
    incoming = mine
  }

  function deliver(messages: readonly string[]): void {
    for (let index = 0; index < messages.length; index += 2) {
      here.publish(messages[index]!, messages[index + 1]!)
      others.publish(messages[index]!, messages[index + 1]!)
    }
  }

  async function fetchStored(id: number): Promise<string[]> {
    const [row] = await database.query<{ body: string }>(`SELECT body FROM ${schema}.messages WHERE id = $1`, [id])
    if (row === undefined) throw new Error('a long message is gone')
    return JSON.parse(row.body) as string[]
  }

  async function flush(): Promise<void> {
    timer = undefined
    if (sending) return
    sending = true
    try {
      while (outgoing.length > 0) {
        const messages = outgoing
        outgoing = []
        for (const it of payloads(messages, envelope)) await send(it)
      }
    } catch {
      // Fleeting by contract; appends report what is wrong with the database.
      outgoing = []
    } finally {
      sending = false
    }
  }

  const envelope = (messages: readonly string[]): string => {
    number += 1
    return JSON.stringify({ from, number, messages } satisfies Envelope)
  }

  async function send(payload: { readonly text: string } | { readonly long: string }): Promise<void> {
    if ('text' in payload) {
      await database.query('SELECT pg_notify($1, $2)', [channel, payload.text])
      return
    }
    number += 1
    await database.query(
      `WITH stored AS (INSERT INTO ${schema}.messages (body) VALUES ($2) RETURNING id)
       SELECT pg_notify($1, json_build_object('from', $3::text, 'number', $4::bigint, 'stored', id)::text) FROM stored`,
      [channel, payload.long, from, number],
    )
    if (performance.now() - cleanedAt < CLEAN_EVERY_MS) return
    cleanedAt = performance.now()
    await database.query(`DELETE FROM ${schema}.messages WHERE at < now() - interval '1 minute'`)
  }

  const withGaps = (stop: () => void, onGap: (() => void) | undefined): (() => void) => {
    // One entry per subscription, also when several share a function.
    const own = onGap && (() => onGap())
    if (own) gaps.add(own)
    return () => {
      stop()
      if (own) gaps.delete(own)
    }
  }

  return {
    publish(topic, message) {
      if (closed) return
      here.publish(topic, message)
      if (outgoing.length >= MOST_WAITING) outgoing = []
      outgoing.push(topic, message)
      timer ??= setTimeout(() => void flush(), GATHER_MS)
    },
    subscribe: (topic, receive, onGap) => withGaps(here.subscribe(topic, receive), onGap),
    subscribeToOthers: (topic, receive, onGap) => withGaps(others.subscribe(topic, receive), onGap),
    listening: listener.listening,
    lagMs: listener.lagMs,
    async close() {
      closed = true
      clearTimeout(timer)
      await flush()
      await listener.close()
    },
  }
}

/** Notifications that hold the messages in their order; what fits into none is stored instead. */
function* payloads(
  messages: readonly string[],
  envelope: (messages: readonly string[]) => string,
): Generator<{ readonly text: string } | { readonly long: string }> {
  let batch: string[] = []
  let bytes = 0
  for (let index = 0; index < messages.length; index += 2) {
    const pair = messages.slice(index, index + 2)
    const size = Buffer.byteLength(JSON.stringify(pair))
    if (batch.length > 0 && bytes + size > PAYLOAD_BYTES - 200) {
      yield { text: envelope(batch) }
      batch = []
      bytes = 0
    }
    if (size > PAYLOAD_BYTES - 200) {
      yield { long: JSON.stringify(pair) }
      continue
    }
    batch.push(...pair)
    bytes += size
  }
  if (batch.length > 0) yield { text: envelope(batch) }
}

/** Whatever else notifies on the channel is not ours. */
function parsed(payload: string): Envelope | undefined {
  try {
    const value = JSON.parse(payload) as Partial<Envelope> | null
    return typeof value?.from === 'string' ? (value as Envelope) : undefined
  } catch {
    return undefined
  }
}

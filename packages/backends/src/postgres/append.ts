// Appends of many sessions in one statement: while one is under way, what comes makes the next one.

import { crc32 } from 'node:zlib'
import type { AppendNotes, Event, SessionKey } from '@oxbow/core'
import { mapKey } from '../keys.ts'
import type { Database } from './database.ts'
import { isConflict, isConnectionLoss, postgresError } from './errors.ts'

export interface SessionAppend {
  readonly key: SessionKey
  readonly expectedSeq: number
  readonly events: readonly Event[]
  readonly notes: AppendNotes
}

interface Waiting extends SessionAppend {
  readonly bodies: readonly string[]
  /** An attempt was lost on the way: it may have been stored. */
  uncertain: boolean
  resolve(stored: boolean): void
  reject(error: unknown): void
}

/** Sessions in one statement, and statements at once. */
const MOST_SESSIONS = 100
const STATEMENTS = 2
/** Attempts against conflicts and lost connections, and the pause before the second one. */
const ATTEMPTS = 5
const PAUSE_MS = 20

/** The checksum of an event, bound to its place. */
export const sumOf = (key: SessionKey, seq: number, body: string): number => crc32(body, crc32(`${mapKey(key)} ${seq}`))

/** PostgreSQL texts hold no NUL. */
const plain = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')

/**
 * `append` stores events if their session still ends at `expectedSeq`, and resolves with whether they are stored; `idle`
 * resolves when no append is under way. `onStored` is called with what was stored, after the commit.
 */
export function appender(
  database: Database,
  onStored: (keys: readonly SessionKey[]) => void,
): { append(append: SessionAppend): Promise<boolean>; idle(): Promise<unknown> } {
  const sql = appendSql(database.schema)
  const eventAt = `SELECT e.body FROM ${database.schema}.sessions s
    JOIN ${database.schema}.events e ON e.session = s.id
    WHERE s.tenant = $1 AND s.usr = $2 AND s.session = $3 AND e.seq > $4 AND e.seq <= $5 ORDER BY e.seq`
  let queue: Waiting[] = []
  let running = 0
  /** Sessions with an append under way: the next one of each waits, because it builds on it. */
  const busy = new Set<string>()

  function takeBatch(): Waiting[] {
    const batch: Waiting[] = []
    const rest: Waiting[] = []
    for (const it of queue) {
      const id = mapKey(it.key)
      if (batch.length >= MOST_SESSIONS || busy.has(id)) rest.push(it)
      else {
        busy.add(id)
        batch.push(it)
      }
    }
    queue = rest
    return batch
  }

  async function flush(): Promise<void> {
    if (running >= STATEMENTS) return
    running += 1
    for (let batch = takeBatch(); batch.length > 0; batch = takeBatch()) {
      await store(batch)
      for (const it of batch) busy.delete(mapKey(it.key))
    }
    running -= 1
  }

  async function store(batch: readonly Waiting[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const rows = await database.raw<{ n: string }>(sql, parametersOf(batch))
        const stored = new Set(rows.map(({ n }) => Number(n)))
        const won = batch.filter((_, n) => stored.has(n))
        if (won.length > 0) onStored(won.map(({ key }) => key))
        for (const it of won) it.resolve(true)
        await Promise.all(batch.filter((_, n) => !stored.has(n)).map(settleLoser))
        return
      } catch (error) {
        const lost = isConnectionLoss(error)
        if (lost) for (const it of batch) it.uncertain = true
        if (attempt >= ATTEMPTS || !(lost || isConflict(error))) {
          const failure = postgresError(database.name, error)
          // One that the server cannot store must not fail the others.
          if (batch.length > 1 && !failure.retryable) for (const it of batch) await store([it])
          else for (const it of batch) it.reject(failure)
          return
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random())))
      }
    }
  }

  /** A session that ends elsewhere: because of another writer, or of an attempt of our own whose answer was lost. */
  async function settleLoser(it: Waiting): Promise<void> {
    if (!it.uncertain) return it.resolve(false)
    try {
      const { tenant, user, session } = it.key
      const last = it.expectedSeq + it.events.length
      const rows = await database.query<{ body: string }>(eventAt, [tenant, user, session, it.expectedSeq, last])
      const ours = rows.length === it.bodies.length && rows.every(({ body }, n) => body === it.bodies[n])
      if (ours) onStored([it.key])
      it.resolve(ours)
    } catch (error) {
      it.reject(error)
    }
  }

  const underWay = new Set<Promise<boolean>>()
  return {
    append(append) {
      const { promise, resolve, reject } = Promise.withResolvers<boolean>()
      // Copies: the caller may go on with its arrays before the statement is sent.
      const events = [...append.events]
      const bodies = events.map((it) => JSON.stringify(it))
      const notes = { ...append.notes, audit: [...(append.notes.audit ?? [])] }
      queue.push({ ...append, events, notes, bodies, uncertain: false, resolve, reject })
      // What the same turn of the event loop brings goes into one statement.
      setImmediate(() => void flush())
      underWay.add(promise)
      void Promise.allSettled([promise]).then(() => underWay.delete(promise))
      return promise
    },
    idle: () => Promise.allSettled(underWay),
  }
}

function parametersOf(batch: readonly Waiting[]): unknown[] {
  const sessions = batch.map(({ key, expectedSeq, events, notes }) => [
    key.tenant,
    key.user,
    key.session,
    expectedSeq,
    expectedSeq + events.length,
    notes.status,
    plain(notes.agent),
    plain(notes.title),
    notes.wakeAt ?? null,
    events[0]!.at,
    events.at(-1)!.at,
  ])
  const events = batch.flatMap(({ key, events: own, bodies }, n) =>
    own.map(({ seq }, index) => [n, seq, sumOf(key, seq, bodies[index]!), bodies[index]!]),
  )
  const audit = batch.flatMap(({ key, notes }, n) =>
    (notes.audit ?? []).map((it) => {
      const body = JSON.stringify(it)
      const { seq, at, principal, tool, status } = it
      return [n, seq, at, plain(principal.user), plain(tool), status ?? null, sumOf(key, seq, body), body]
    }),
  )
  return [...columns(sessions, 11), ...columns(events, 4), ...columns(audit, 8)]
}

const columns = (rows: readonly (readonly unknown[])[], count: number): unknown[][] =>
  Array.from({ length: count }, (_, index) => rows.map((row) => row[index]))

/** How far `updated_at`, and a deadline that moves away, may lag behind. */
const LAG_MS = 60_000

// Rows are locked in the order of their ids, so that two statements never wait for each other, and the condition on
// `head` is checked again on the row as it is once it is locked. Returns the numbers of the sessions that were stored.
const appendSql = (schema: string): string => `
WITH input AS MATERIALIZED (
  SELECT tenant, usr, session, expected, head, status, agent, title, wake_at, first_at, last_at, line - 1 AS n
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::bigint[], $11::bigint[])
    WITH ORDINALITY AS i (tenant, usr, session, expected, head, status, agent, title, wake_at, first_at, last_at, line)
), created AS (
  INSERT INTO ${schema}.sessions (tenant, usr, session, head, status, agent, title, wake_at, created_at, updated_at)
  SELECT tenant, usr, session, head, status, agent, title, wake_at, first_at, last_at
  FROM input WHERE expected = 0 ORDER BY tenant, usr, session
  ON CONFLICT (tenant, usr, session) DO NOTHING
  RETURNING id, tenant, usr, session
), locked AS MATERIALIZED (
  SELECT s.id, i.n FROM input i
  JOIN ${schema}.sessions s ON s.tenant = i.tenant AND s.usr = i.usr AND s.session = i.session
  WHERE i.expected > 0 AND s.head = i.expected
  ORDER BY s.id FOR UPDATE OF s
), updated AS (
  UPDATE ${schema}.sessions s SET
    head = i.head, status = i.status, agent = i.agent, title = i.title,
    updated_at = CASE WHEN s.status <> i.status OR s.agent <> i.agent OR s.title <> i.title
      OR abs(i.last_at - s.updated_at) >= ${LAG_MS} THEN i.last_at ELSE s.updated_at END,
    wake_at = CASE WHEN s.wake_at IS NULL OR i.wake_at IS NULL OR i.wake_at < s.wake_at
      OR i.wake_at >= s.wake_at + ${LAG_MS} THEN i.wake_at ELSE s.wake_at END
  FROM locked l JOIN input i ON i.n = l.n
  WHERE s.id = l.id
  RETURNING s.id, i.n
), won AS MATERIALIZED (
  SELECT id, n FROM updated
  UNION ALL
  SELECT c.id, i.n FROM created c JOIN input i ON i.tenant = c.tenant AND i.usr = c.usr AND i.session = c.session
), stored AS (
  INSERT INTO ${schema}.events (session, seq, sum, body)
  SELECT w.id, e.seq, e.sum, e.body
  FROM unnest($12::bigint[], $13::bigint[], $14::bigint[], $15::text[]) AS e (n, seq, sum, body)
  JOIN won w ON w.n = e.n
), audited AS (
  INSERT INTO ${schema}.audit (session, tenant, name, seq, at, usr, tool, status, sum, body)
  SELECT w.id, i.tenant, i.session, a.seq, a.at, a.usr, a.tool, a.status, a.sum, a.body
  FROM unnest($16::bigint[], $17::bigint[], $18::bigint[], $19::text[], $20::text[], $21::text[], $22::bigint[],
    $23::text[]) WITH ORDINALITY AS a (n, seq, at, usr, tool, status, sum, body, line)
  JOIN won w ON w.n = a.n JOIN input i ON i.n = a.n ORDER BY a.line
)
SELECT n FROM won`

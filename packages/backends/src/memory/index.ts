// Everything in this process's memory and gone with it: for tests, examples and throw-away sessions.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type {
  AuditQuery,
  AuditRecord,
  Backend,
  Event,
  Files,
  Journal,
  SessionKey,
  SessionQuery,
  SessionSummary,
  Snapshot,
  StoreScope,
  Workers,
} from '@oxbow/core'
import { defined, withoutData } from '@oxbow/core/internal'
import { assertAudit, assertDense, assertKey, assertName, closedError, mapKey } from '../keys.ts'
import { localBus } from '../local/bus.ts'
import { localLocks } from '../local/locks.ts'
import { localQueue } from '../local/queue.ts'

interface Session {
  summary: SessionSummary
  wakeAt: number | undefined
  readonly events: Event[]
}

interface StoredFile {
  readonly path: string
  readonly data: Uint8Array
  readonly version: number
}

/**
 * A back end that keeps everything in this process's memory.
 *
 * @example const backend = memory()
 */
export function memory(): Backend {
  const name = 'memory'
  let closed = false
  const assertOpen = () => {
    if (closed) throw closedError(name)
  }
  const sessions = new Map<string, Session>()
  const announced = new Map<string, string>()
  const queue = localQueue(assertOpen)
  return {
    name,
    queue,
    bus: localBus(),
    locks: localLocks(assertOpen),
    journal: memoryJournal(assertOpen, sessions, () => announced.size > 1),
    files: memoryFiles(assertOpen),
    workers: memoryWorkers(assertOpen, announced),
    async check() {
      assertOpen()
    },
    async verify() {
      assertOpen()
      const events = [...sessions.values()].reduce((sum, it) => sum + it.events.length, 0)
      // Memory needs no checksums.
      return { sessions: sessions.size, events, files: 0, unchecked: 0, marked: true, problems: [] }
    },
    async close() {
      closed = true
      queue.close()
    },
  }
}

/** `isShared`: several engines work on this memory, as several processes would on a file. */
function memoryJournal(assertOpen: () => void, sessions: Map<string, Session>, isShared: () => boolean): Journal {
  const watchers = new Map<string, Set<() => void>>()
  const snapshots = new Map<string, Snapshot>()
  const audited: AuditRecord[] = []
  const isOf = (key: SessionKey) => (it: AuditRecord) => mapKey(it.key) === mapKey(key)
  return {
    async append(key, expectedSeq, events, { status, agent, title, wakeAt, audit = [] }) {
      assertOpen()
      assertKey(key)
      assertDense(expectedSeq, events)
      assertAudit(events, audit)
      const id = mapKey(key)
      const session = sessions.get(id)
      const head = session?.events.length ?? 0
      if (head !== expectedSeq) return { ok: false, head }
      const next = {
        key: session?.summary.key ?? { tenant: key.tenant, user: key.user, session: key.session },
        head: head + events.length,
        status,
        agent,
        title,
        createdAt: session?.summary.createdAt ?? events[0]!.at,
        updatedAt: events.at(-1)!.at,
      }
      if (session === undefined) sessions.set(id, { summary: next, wakeAt, events: [...events] })
      else {
        session.summary = next
        session.wakeAt = wakeAt
        // Not push(...events): a large batch would overflow the stack.
        for (const event of events) session.events.push(event)
      }
      audited.push(...audit)
      if (isShared()) for (const wake of watchers.get(id) ?? []) setImmediate(wake)
      return { ok: true }
    },
    async read(key, afterSeq, limit = 500) {
      assertOpen()
      assertKey(key)
      return sessions.get(mapKey(key))?.events.slice(afterSeq, afterSeq + limit) ?? []
    },
    async head(key) {
      assertOpen()
      assertKey(key)
      return sessions.get(mapKey(key))?.events.length ?? 0
    },
    async list(query) {
      assertOpen()
      const { dueBy } = query
      const due = [...sessions.values()].filter((it) => dueBy === undefined || (it.wakeAt ?? Infinity) <= dueBy)
      return page(due.map((session) => session.summary).filter(matches(query)), query.limit ?? 100)
    },
    async audit(query) {
      assertOpen()
      const { after = 0, limit = 100 } = query
      const records: AuditRecord[] = []
      let cursor = after
      for (; cursor < audited.length && records.length < limit; cursor++)
        if (asked(query)(audited[cursor]!)) records.push(audited[cursor]!)
      return { records, cursor }
    },
    async note(record) {
      assertOpen()
      audited.push(record)
    },
    async records(key, afterSeq, limit) {
      const bySeq = new Map(audited.filter(isOf(key)).map((it) => [it.seq, it]))
      return (await this.read(key, afterSeq, limit)).map((event) => ({
        event,
        ...defined({ audit: bySeq.get(event.seq) }),
      }))
    },
    async *sessions(scope = {}) {
      assertOpen()
      for (const { summary, wakeAt } of sessions.values())
        if (within(scope, summary.key)) yield { ...summary, ...defined({ wakeAt }) }
    },
    async erase(key, expectedSeq) {
      assertOpen()
      assertKey(key)
      const id = mapKey(key)
      const head = sessions.get(id)?.events.length ?? 0
      if (head !== expectedSeq) return { ok: false, head }
      sessions.delete(id)
      snapshots.delete(id)
      for (const [index, it] of audited.entries()) if (isOf(key)(it) && it.seq > 0) audited[index] = withoutData(it)
      return { ok: true }
    },
    async getSnapshot(key) {
      assertOpen()
      assertKey(key)
      return snapshots.get(mapKey(key))
    },
    async putSnapshot(key, snapshot) {
      assertOpen()
      assertKey(key)
      const stored = snapshots.get(mapKey(key))
      // One of a session that has been erased must not come back.
      if (!sessions.has(mapKey(key))) return
      // A late writer must not replace a newer snapshot that it could have used itself.
      if (stored?.version === snapshot.version && stored.seq > snapshot.seq) return
      snapshots.set(mapKey(key), { seq: snapshot.seq, version: snapshot.version, data: snapshot.data })
    },
    watch(key, wake) {
      const id = mapKey(key)
      const own = (): void => {
        if (watchers.get(id)?.has(own)) wake()
      }
      const all = watchers.get(id) ?? new Set()
      watchers.set(id, all.add(own))
      return () => {
        all.delete(own)
        if (all.size === 0 && watchers.get(id) === all) watchers.delete(id)
      }
    },
  }
}

const within = ({ tenant, user }: StoreScope, key: SessionKey): boolean =>
  (tenant === undefined || key.tenant === tenant) && (user === undefined || key.user === user)

const matches = (query: SessionQuery) => (summary: SessionSummary) =>
  (query.tenant === undefined || summary.key.tenant === query.tenant) &&
  (query.user === undefined || summary.key.user === query.user) &&
  (query.status === undefined ||
    (query.status === 'open' ? summary.status !== 'idle' : summary.status === query.status)) &&
  (query.before === undefined || summary.updatedAt < query.before)

const asked = (query: AuditQuery) => (record: AuditRecord) =>
  (query.tenant === undefined || record.key.tenant === query.tenant) &&
  (query.user === undefined || record.principal.user === query.user) &&
  (query.session === undefined || record.key.session === query.session) &&
  (query.tool === undefined || record.tool === query.tool) &&
  (query.status === undefined || record.status === query.status) &&
  (query.from === undefined || record.at >= query.from) &&
  (query.to === undefined || record.at < query.to)

/** The newest `limit` rows, and those of the same millisecond as the last: `before` could not reach them. */
function page(rows: SessionSummary[], limit: number): SessionSummary[] {
  rows.sort((a, b) => b.updatedAt - a.updatedAt)
  const last = rows[limit - 1]
  return last === undefined ? rows : rows.filter((row, index) => index < limit || row.updatedAt === last.updatedAt)
}

function memoryFiles(assertOpen: () => void): Files {
  const owners = new Map<string, { readonly owner: SessionKey; readonly files: Map<string, StoredFile> }>()
  // Counts across all files, so that a deleted and recreated file never repeats a version.
  let lastVersion = 0
  return {
    async get(owner, path) {
      assertOpen()
      assertKey(owner)
      const file = owners.get(mapKey(owner))?.files.get(path)
      return file && { data: new Uint8Array(file.data), version: file.version }
    },
    async put(owner, path, data, ifVersion) {
      assertOpen()
      assertKey(owner)
      assertName(path, 'path')
      const id = mapKey(owner)
      const { files } = owners.get(id) ?? { files: new Map<string, StoredFile>() }
      if (ifVersion !== undefined && ifVersion !== (files.get(path)?.version ?? 0)) return undefined
      lastVersion += 1
      files.set(path, { path, data: new Uint8Array(data), version: lastVersion })
      owners.set(id, { owner: { tenant: owner.tenant, user: owner.user, session: owner.session }, files })
      return lastVersion
    },
    async list(owner, prefix) {
      assertOpen()
      assertKey(owner)
      return [...(owners.get(mapKey(owner))?.files.values() ?? [])]
        .filter((file) => file.path.startsWith(prefix))
        .map((file) => ({ path: file.path, bytes: file.data.byteLength, version: file.version }))
        .sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
    },
    async delete(owner, path) {
      assertOpen()
      assertKey(owner)
      owners.get(mapKey(owner))?.files.delete(path)
    },
    async *owners(scope = {}) {
      assertOpen()
      for (const { owner, files } of owners.values()) if (files.size > 0 && within(scope, owner)) yield owner
    },
    async erase(owner) {
      assertOpen()
      assertKey(owner)
      const count = owners.get(mapKey(owner))?.files.size ?? 0
      owners.delete(mapKey(owner))
      return count
    },
  }
}

function memoryWorkers(assertOpen: () => void, announced: Map<string, string>): Workers {
  return {
    async announce(worker) {
      assertOpen()
      assertName(worker, 'worker')
      const announcement = randomUUID()
      announced.set(worker, announcement)
      return {
        async release() {
          if (announced.get(worker) === announcement) announced.delete(worker)
        },
      }
    },
    async alive(worker) {
      assertOpen()
      return announced.has(worker)
    },
    async status(worker) {
      assertOpen()
      return announced.has(worker) ? { alive: true, host: hostname(), pid: process.pid, silentMs: 0 } : undefined
    },
  }
}

// What a back end must offer. Each implementation passes the conformance suite of @oxbow/testing.
import type { CallStatus, Event, Principal } from './events/types.ts'

/** The key of a session. Always these three fields, never one joined string. */
export interface SessionKey {
  readonly tenant: string
  readonly user: string
  readonly session: string
}

/** `running`: a worker should be at it. `waiting`: for a person or a caller. `parked`: gave up recovering. */
export type SessionStatus = 'idle' | 'running' | 'waiting' | 'parked'

export interface SessionSummary {
  readonly key: SessionKey
  readonly head: number
  readonly status: SessionStatus
  readonly agent: string
  /** The beginning of the first input, at most 80 characters. */
  readonly title: string
  readonly createdAt: number
  /** The `at` of the last event, or of one at most a minute before it. */
  readonly updatedAt: number
}

/** What is stored with the events of an append, in the same transaction. */
export interface AppendNotes extends Pick<SessionSummary, 'status' | 'agent' | 'title'> {
  /** When the session needs attention without an input: a time limit. Milliseconds since 1970. */
  readonly wakeAt?: number
  /** At most one for each event of the append, in their order. */
  readonly audit?: readonly AuditRecord[]
}

/**
 * One line of the audit log: that a call was judged, that a person decided, or what became of it. `data.erased` is an act
 * on stored data and describes no event: its `seq` is 0, and `*` stands for all users or sessions in its key.
 */
export interface AuditRecord {
  readonly key: SessionKey
  /** The event that it describes. */
  readonly seq: number
  readonly at: number
  readonly event: 'call.decided' | 'approval.resolved' | 'external.resolved' | 'call.finished' | 'data.erased'
  readonly turnId: string
  readonly callId: string
  readonly tool: string
  /** The principal as it was when the turn started. */
  readonly principal: Principal
  /** Without the values that the tool marks as secret. */
  readonly arguments: Readonly<Record<string, unknown>>
  readonly decision: 'allow' | 'ask' | 'deny' | 'approved' | 'denied' | 'expired' | undefined
  readonly rule: string | undefined
  readonly reason: string | undefined
  /** Who decided on the approval. */
  readonly approver: string | undefined
  /** Of `external.resolved`: who delivered the result of an external call. */
  readonly broughtBy?: string
  /** The rule that was accepted with it. Missing in records that are older than the field. */
  readonly remember?: Event<'approval.resolved'>['remember']
  readonly operationId: string | undefined
  /** Of `call.finished`. */
  readonly status: CallStatus | undefined
  /** Its session was erased: what the call was about has been removed from the record. */
  readonly erased?: true
}

/** An event as it is stored, with the audit record that was stored with it. */
export interface JournalRecord {
  readonly event: Event
  readonly audit?: AuditRecord
}

/** All that is stored about a session beside its events. */
export interface StoredSession extends SessionSummary {
  readonly wakeAt?: number
}

/** What belongs to a tenant, or to a user; without a tenant everything. */
export interface StoreScope {
  readonly tenant?: string
  readonly user?: string
}

export interface AuditQuery {
  readonly tenant?: string
  readonly user?: string
  readonly session?: string
  readonly tool?: string
  readonly status?: CallStatus
  /** Milliseconds since 1970, inclusive and exclusive. */
  readonly from?: number
  readonly to?: number
  /** The cursor of the page before. */
  readonly after?: number
  /** Default 100. */
  readonly limit?: number
}

export interface Journal {
  /**
   * Stores all of `events` or none, durably, if the journal still ends at `expectedSeq` (0: no journal yet).
   * `events[i].seq` must be `expectedSeq + 1 + i`, else it rejects with `invalid_append`. `notes` are stored in the
   * same transaction; an audit record that describes no event of `events` rejects with `invalid_append`. A stale
   * `expectedSeq` is an answer, not an error; a journal that cannot be read or written rejects.
   */
  append(
    key: SessionKey,
    expectedSeq: number,
    events: readonly Event[],
    notes: AppendNotes,
  ): Promise<{ ok: true } | { ok: false; head: number }>

  /**
   * Events with `seq > afterSeq`, in order, at most `limit` (default 500). Rejects with `journal_corrupt` on damage.
   */
  read(key: SessionKey, afterSeq: number, limit?: number): Promise<Event[]>

  /** The last sequence number, 0 for an unknown session. */
  head(key: SessionKey): Promise<number>

  /**
   * Newest first. `before` is the `updatedAt` of the last row of the page before; a page may exceed `limit` (default
   * 100) to hold all rows that share its last millisecond.
   */
  list(query: SessionQuery): Promise<SessionSummary[]>

  /** Audit records in the order in which they were stored. `cursor` continues after the page. */
  audit(query: AuditQuery): Promise<{ records: AuditRecord[]; cursor: number }>

  /**
   * Adds a record that describes no event of this journal: an act on stored data, or a record from another store whose
   * session was erased there.
   */
  note(record: AuditRecord): Promise<void>

  /** As `read`, with the audit records. */
  records(key: SessionKey, afterSeq: number, limit?: number): Promise<JournalRecord[]>

  /**
   * Every session that exists all the while, at least once. One that is damaged is listed too: reading it rejects.
   */
  sessions(scope?: StoreScope): AsyncIterable<StoredSession>

  /**
   * Erases a session with its snapshot if its journal still ends at `expectedSeq`, also a damaged one. From then on it is
   * unknown: a late append is refused, and a session of the same key begins at 0. Its audit records stay, as
   * `withoutData` leaves them. The data is removed in bounded steps; what a crash leaves of it is removed by the next
   * `erase`. Rejects while a part of the store that may hold the data cannot be reached.
   */
  erase(key: SessionKey, expectedSeq: number): Promise<{ ok: true } | { ok: false; head: number }>

  /**
   * A cache that may vanish. `data` is opaque text; `version` is the version of its format. An older one never replaces a
   * newer.
   */
  getSnapshot(key: SessionKey): Promise<Snapshot | undefined>
  putSnapshot(key: SessionKey, snapshot: Snapshot): Promise<void>

  /**
   * Calls `wake` soon after another process or connection may have appended to this session.
   * May call too often, never too seldom: an append elsewhere is noticed within 200 ms. Returns the way to stop.
   */
  watch(key: SessionKey, wake: () => void): () => void
}

export interface SessionQuery {
  readonly tenant?: string
  readonly user?: string
  /** `open`: all but `idle`. */
  readonly status?: SessionStatus | 'open'
  readonly before?: number
  readonly limit?: number
  /**
   * Sessions whose `wakeAt` is at or before this time. A session whose deadline moved may be listed a minute too early.
   */
  readonly dueBy?: number
}

export interface Snapshot {
  readonly seq: number
  readonly version: number
  readonly data: string
}

/** Files that belong to a session: artifacts now, workspaces later. `path` is an opaque name, never a host path. */
export interface Files {
  get(owner: SessionKey, path: string): Promise<{ data: Uint8Array; version: number } | undefined>
  /**
   * Compare and set: `ifVersion` 0 means "must not exist", undefined means "whatever is there". Resolves with the new
   * version, undefined on a conflict. Versions do not repeat, also after a delete.
   */
  put(owner: SessionKey, path: string, data: Uint8Array, ifVersion?: number): Promise<number | undefined>
  list(owner: SessionKey, prefix: string): Promise<{ path: string; bytes: number; version: number }[]>
  delete(owner: SessionKey, path: string): Promise<void>
  /** Every owner of files, at least once. An owner need not be a session: notes and rules have their own. */
  owners(scope?: StoreScope): AsyncIterable<SessionKey>
  /** Erases all files of an owner, and that there were any. Resolves with how many there were. */
  erase(owner: SessionKey): Promise<number>
}

/**
 * Leases of workers. They save work and carry no correctness: a wrong answer costs a repeated model call, never a
 * double write, because the append of a worker that lost its turn is refused.
 */
export interface Workers {
  /** Announces a worker of this process and renews its lease until `release`, which may be skipped by a crash. */
  announce(worker: string): Promise<{ release(): Promise<void> }>
  /** False once the process has ended, or has given no sign of life for as long as a lease lasts. */
  alive(worker: string): Promise<boolean>
  /** Undefined for a worker that was released or never announced. */
  status(worker: string): Promise<WorkerStatus | undefined>
}

export interface WorkerStatus {
  readonly alive: boolean
  readonly host: string
  readonly pid: number
  /** Since its last sign of life, in milliseconds. */
  readonly silentMs: number
}

/** Something about a session that a worker should look at. */
export interface Job {
  readonly key: SessionKey
  /** Why, for people who look at the queue. */
  readonly reason: string
}

/**
 * Spreads work over processes. Jobs carry no correctness: one that is lost is found by the sweep for open turns, and
 * one that comes twice costs a look at a session.
 */
export interface Queue {
  /**
   * Resolves when the job is stored. It is handed out once `runAt` has come (milliseconds since 1970, default now). A
   * session has at most one job that waits: of two, the one that is due earlier remains.
   */
  enqueue(job: Job, runAt?: number): Promise<void>
  /**
   * Hands due jobs to `handle`, at most `concurrency` at once. A job is done when `handle` resolves. One that rejects
   * is handed out again after a growing pause, and fails for good after 10 attempts; one whose process ends is handed
   * out by another. `stop` takes no further jobs and resolves when those already taken are done.
   */
  work(handle: (job: Job) => Promise<void>, concurrency: number): { stop(): Promise<void> }
  /**
   * Jobs that are due and wait, jobs that failed for good, and for how long the oldest has been due, in milliseconds.
   */
  depth(): Promise<QueueDepth>
}

export interface QueueDepth {
  readonly due: number
  readonly failed: number
  readonly oldestMs: number
}

/**
 * Fleeting messages between processes: text fragments and wake-ups. They may be lost, and are never stored. Those of
 * one publisher to one topic come in their order.
 */
export interface Bus {
  /** Sends to all subscribers of the topic, in this process too. Never waits and never throws. */
  publish(topic: string, message: string): void
  /**
   * How long the last measured message of this process to itself took, in milliseconds; Infinity while the connection is
   * away. Undefined before the first one, and where messages never leave the process.
   */
  lagMs(): number | undefined
  /** `onGap` is called when messages may have been lost, for example after a reconnect. Returns the way to stop. */
  subscribe(topic: string, receive: (message: string) => void, onGap?: () => void): () => void
}

/** Guards of things that only one process may use at a time, with a time to live. */
export interface Locks {
  /** Undefined while somebody holds the name. */
  acquire(name: string, ttlMs: number): Promise<Lock | undefined>
}

export interface Lock {
  /**
   * A fencing token: greater than that of every earlier holder of the name. What is guarded refuses a smaller token
   * than it has seen, because a holder that was stopped for longer than its time to live does not know that it has lost
   * the lock.
   */
  readonly token: number
  /** Resolves with false when the lock is lost. */
  renew(ttlMs: number): Promise<boolean>
  release(): Promise<void>
}

/** What a check of everything that is stored has found. */
export interface StoreReport {
  readonly sessions: number
  readonly events: number
  readonly files: number
  /** Events and files that were stored without a checksum, by a version that had none. */
  readonly unchecked: number
  /** Whether the loss of the newest events would be noticed. */
  readonly marked: boolean
  /** One sentence each; empty when everything is intact. At most 100. */
  readonly problems: readonly string[]
}

/** Names with NUL or lone surrogates reject with `invalid_key`; calls after `close` with `backend_closed`. */
export interface Backend {
  /** Shown by readiness checks and logs, for example `sqlite .oxbow/oxbow.db`. */
  readonly name: string
  readonly journal: Journal
  readonly files: Files
  readonly workers: Workers
  readonly queue: Queue
  readonly bus: Bus
  readonly locks: Locks
  /** Rejects with the fault, including one found when the store was opened; used by `/readyz`. */
  check(): Promise<void>
  /** Reads everything and compares it with its checksums. Rejects only when the store cannot be read at all. */
  verify(onProgress?: (doneEvents: number, totalEvents: number) => void): Promise<StoreReport>
  close(): Promise<void>
}

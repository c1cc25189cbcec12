// A session in this process: the folded state, the only way to append, and those who follow.

import type { Event, EventBody, SessionItem } from '../events/types.ts'
import type { AppendNotes, AuditRecord, Journal, SessionKey } from '../ports.ts'
import { auditOf, type SecretsOf } from './audit.ts'
import { nextDeadline, type StateLimits } from './deadlines.ts'
import { evolve, evolveAll } from './evolve.ts'
import { type Follower, follower } from './follower.ts'
import type { LiveStep } from './live-step.ts'
import { emptyState, type SessionState, STATE_VERSION, statusOf } from './state.ts'

export type FaultPoint = (name: string) => void

/** Events that are about to be stored, and the state as it will be. */
export class Draft {
  readonly events: Event[] = []
  readonly audit: AuditRecord[] = []
  state: SessionState
  readonly #key: SessionKey
  readonly #at: number
  readonly #secrets: SecretsOf

  constructor(state: SessionState, key: SessionKey, at: number, secrets: SecretsOf) {
    this.state = state
    this.#key = key
    this.#at = at
    this.#secrets = secrets
  }

  add(...bodies: readonly EventBody[]): void {
    for (const body of bodies) {
      const event: Event = { ...body, seq: this.state.seq + 1, at: this.#at }
      this.events.push(event)
      this.state = evolve(this.state, event)
      const record = auditOf(this.#key, this.state, event, this.#secrets)
      if (record !== undefined) this.audit.push(record)
    }
  }
}

/**
 * Writes into the draft what follows from its state; runs again on a newer state when somebody else was quicker. Adding
 * nothing is allowed. Throwing refuses this one write.
 */
export type Build<T> = (draft: Draft) => T

interface Waiting {
  readonly build: Build<unknown>
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

const SNAPSHOT_EVERY = 512
/** Events kept at hand, so that who follows its own turn reads nothing from storage. */
const RECENT = 16

export class SessionLog {
  readonly key: SessionKey
  state: SessionState = emptyState
  /** The answer that is being streamed by this process. */
  live: LiveStep | undefined
  /** Told after each stored batch, before followers are. */
  onStored: (() => void) | undefined
  readonly #journal: Journal
  readonly #now: () => number
  readonly #faultPoint: FaultPoint | undefined
  readonly #secretsOf: SecretsOf
  readonly #limitsOf: (agent: string) => StateLimits | undefined
  readonly #followers = new Set<Follower>()
  #recent: readonly Event[] = []
  #waiting: Waiting[] = []
  #flushing = false
  #reading: Promise<void> | undefined
  #snapshotSeq = 0
  #users = 0
  #holding: NodeJS.Timeout | undefined
  #failure: { error: unknown } | undefined
  #stopWatching: (() => void) | undefined

  constructor(
    key: SessionKey,
    journal: Journal,
    options: {
      now: () => number
      faultPoint: FaultPoint | undefined
      secretsOf: SecretsOf
      limitsOf: (agent: string) => StateLimits | undefined
    },
  ) {
    this.key = key
    this.#journal = journal
    this.#now = options.now
    this.#faultPoint = options.faultPoint
    this.#secretsOf = options.secretsOf
    this.#limitsOf = options.limitsOf
  }

  /** Reads the session from storage. Rejects when it cannot be read: an unreadable session is never a fresh one. */
  async load(): Promise<void> {
    const snapshot = await this.#journal.getSnapshot(this.key)
    if (snapshot?.version === STATE_VERSION) {
      const state = parseSnapshot(snapshot.data)
      if (state?.seq === snapshot.seq && snapshot.seq <= (await this.#journal.head(this.key))) {
        this.state = state
        this.#snapshotSeq = state.seq
      }
    }
    await this.catchUp()
  }

  /** Folds what others have appended. */
  catchUp(): Promise<void> {
    this.#reading ??= this.#readNew().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readNew(): Promise<void> {
    for (;;) {
      const events = await this.#journal.read(this.key, this.state.seq)
      if (events.length === 0) return
      this.#stored(events)
      // A long session is read in many pages; others may have their turn between them.
      if (events.length >= 500) await new Promise(setImmediate)
    }
  }

  /** Appends what `build` writes and resolves with what it returned, once that is durable. */
  append<T>(build: Build<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ build, resolve, reject })
      if (!this.#flushing) void this.#flush()
    })
  }

  async #flush(): Promise<void> {
    this.#flushing = true
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#waiting
        this.#waiting = []
        await this.#write(batch)
      }
    } finally {
      this.#flushing = false
    }
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const draft = new Draft(this.state, this.key, this.#now(), this.#secretsOf)
    const built: { waiting: Waiting; value: unknown }[] = []
    for (const waiting of batch) {
      const before = { events: draft.events.length, audit: draft.audit.length, state: draft.state }
      try {
        built.push({ waiting, value: waiting.build(draft) })
      } catch (error) {
        draft.events.length = before.events
        draft.audit.length = before.audit
        draft.state = before.state
        waiting.reject(error)
      }
    }
    try {
      if (draft.events.length > 0) {
        this.#faultPoint?.('append.before')
        const outcome = await this.#journal.append(
          this.key,
          this.state.seq,
          draft.events,
          notesOf(draft, this.#limitsOf),
        )
        this.#faultPoint?.('append.after')
        if (!outcome.ok) {
          await this.catchUp()
          this.#waiting = [...built.map((it) => it.waiting), ...this.#waiting]
          return
        }
        this.#stored(draft.events, draft.state)
      }
      for (const { waiting, value } of built) waiting.resolve(value as never)
    } catch (error) {
      for (const { waiting } of built) waiting.reject(error)
    }
  }

  /** Folds and shows stored events, once each: our own may have been read back before their append has returned. */
  #stored(events: readonly Event[], folded?: SessionState): void {
    const fresh = events.filter((it) => it.seq > this.state.seq)
    if (fresh.length === 0) return
    this.state = folded !== undefined && fresh.length === events.length ? folded : evolveAll(this.state, fresh)
    this.#recent = [...this.#recent, ...fresh].slice(-RECENT)
    this.onStored?.()
    for (const event of fresh) {
      if (event.type === 'model.finished' || event.type === 'turn.claimed') this.live = undefined
      this.publish(event)
    }
  }

  /** Shows an item to everybody who follows. Synchronous, and the whole cost of a fragment. */
  publish(item: SessionItem): void {
    for (const it of this.#followers) it.push(item)
  }

  /** Events after `after`: the last few are at hand, older ones come from storage. */
  async read(after: number): Promise<Event[]> {
    const first = this.#recent[0]
    if (first !== undefined && first.seq <= after + 1) return this.#recent.filter((it) => it.seq > after)
    return this.#journal.read(this.key, after)
  }

  /** Everything after `after`, then whatever comes, until the reader leaves. */
  follow(after = this.state.seq, only: { fragments?: boolean; turnId?: string } = {}): Follower {
    const reader = follower(
      {
        seq: () => this.state.seq,
        read: (seq) => this.read(seq),
        soFar: () => this.live?.soFar() ?? [],
      },
      after,
      only,
      (self) => {
        if (this.#followers.delete(self)) this.release()
      },
    )
    this.#followers.add(reader)
    this.retain()
    if (this.#failure !== undefined) reader.fail(this.#failure.error)
    return reader
  }

  /** Ends every follower with an error: this process can no longer tell what happens. */
  fail(error: unknown): void {
    for (const it of this.#followers) it.fail(error)
  }

  /** While somebody works or reads here, appends of other processes are noticed. */
  retain(): void {
    this.#users += 1
    // Nothing else need hold the process: the store's thread and the sweep do not.
    this.#holding ??= setInterval(() => {}, 2 ** 30)
    this.#stopWatching ??= this.#journal.watch(this.key, () => {
      this.catchUp().catch((error: unknown) => this.fail(error))
    })
  }

  release(): void {
    this.#users -= 1
    if (this.#users > 0) return
    clearInterval(this.#holding)
    this.#holding = undefined
    this.#stopWatching?.()
    this.#stopWatching = undefined
  }

  get idle(): boolean {
    return this.#users === 0 && !this.#flushing
  }

  /** Somebody here waits for what becomes of this session. */
  get watched(): boolean {
    return this.#followers.size > 0
  }

  /** Like `fail`, and for everybody who comes later. */
  shutDown(error: unknown): void {
    this.#failure = { error }
    this.fail(error)
  }

  /** Stores a snapshot when the journal has doubled since the last one, so that its cost stays constant per event. */
  async snapshotIfDue(): Promise<void> {
    const { state } = this
    if (state.seq - this.#snapshotSeq < Math.max(SNAPSHOT_EVERY, this.#snapshotSeq)) return
    this.#snapshotSeq = state.seq
    await this.#journal.putSnapshot(this.key, { seq: state.seq, version: STATE_VERSION, data: JSON.stringify(state) })
  }
}

function notesOf({ state, audit }: Draft, limitsOf: (agent: string) => StateLimits | undefined): AppendNotes {
  const wakeAt = nextDeadline(state, limitsOf(state.agent))
  return {
    status: statusOf(state),
    agent: state.agent,
    title: state.title,
    audit,
    ...(wakeAt !== undefined && { wakeAt }),
  }
}

/** The state of a snapshot, if it has the form of one: a cache may be damaged, and must not damage anything else. */
function parseSnapshot(data: string): SessionState | undefined {
  try {
    const state = JSON.parse(data) as SessionState
    const whole = Object.entries(emptyState).every(([name, empty]) => {
      const value = state[name as keyof SessionState]
      return typeof value === typeof empty && Array.isArray(value) === Array.isArray(empty)
    })
    return whole ? state : undefined
  } catch {
    return undefined
  }
}

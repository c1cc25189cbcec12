// A session in this process: the folded state, the only way to append, and those who follow.

import { setTimeout as delay } from 'node:timers/promises'
import { OxbowError } from '../errors.ts'
import type { Delta, Event, SessionItem } from '../events/types.ts'
import type { Journal, SessionKey } from '../ports.ts'
import type { SecretsOf } from '../state/audit.ts'
import type { StateLimits } from '../state/deadlines.ts'
import { evolveAll, foldFrom } from '../state/evolve.ts'
import { emptyState, type SessionState, STATE_VERSION } from '../state/state.ts'
import { appendNotes, type Build, Draft } from './draft.ts'
import { type Follower, type FollowerChoice, follower } from './follower.ts'
import type { LiveStep } from './live-step.ts'
import type { Hearing } from './remote-deltas.ts'
import { parseSnapshot } from './snapshot.ts'

export type FaultPoint = (name: string) => void

/** How long a writer that cannot simply fail keeps trying while the store is locked or full. */
const STORE_PATIENCE_MS = 30_000

/** A write that is folded into `ahead` and not yet stored. */
interface Pending {
  readonly build: Build<unknown>
  /** The result of the last run of `build`. */
  value: unknown
  /** Whether to try again after a storage error that may pass. */
  readonly patient: () => boolean
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A fragment that waits until the events before it are stored: readers see both in order. */
interface HeldFragment {
  readonly after: number
  readonly item: SessionItem
}

const SNAPSHOT_EVERY = 512
/** So many events are not folded twice: the next process begins with a snapshot. */
const MOST_LOADED = 8_192
/** A snapshot is read in one go: one with more would hold up everything else for longer than reading events does. */
const MOST_MESSAGES = 20_000
const MOST_TURNS = 200_000
/** Recent events kept in memory, so that followers of a running turn read nothing from storage. */
const RECENT = 16

export class SessionLog {
  readonly key: SessionKey
  /** The stored state. All readers except the turn's worker and writers in their `Build` use it. */
  state: SessionState = emptyState
  /** The answer that is being streamed, here or by the process that works on the session. */
  live: LiveStep | undefined
  /** Receives what followers are shown, while somebody in another process wants it. */
  outlet: ((item: SessionItem) => void) | undefined
  /** Called when the stored state has changed, before followers see it, and when `ahead` was rebuilt. */
  onChanged: (() => void) | undefined
  readonly #journal: Journal
  readonly #now: () => number
  readonly #faultPoint: FaultPoint | undefined
  readonly #secretsOf: SecretsOf
  readonly #limitsOf: (agent: string) => StateLimits | undefined
  readonly #hear: ((log: SessionLog) => Hearing) | undefined
  readonly #onConflict: () => void
  /** Fragments of other processes, while `#listeners` of the followers want them. */
  #hearing: Hearing | undefined
  #listeners = 0
  readonly #followers = new Set<Follower>()
  #recent: readonly Event[] = []
  /** The newest event that is folded, to notice when the journal is another one. */
  #last: Pick<Event, 'seq' | 'at'> | undefined
  /** Writes that are folded and wait for the store, in their order. */
  #pending: Pending[] = []
  /** Writes that are being stored. */
  #inFlight: Pending[] = []
  #draft: Draft
  #held: HeldFragment[] = []
  #flushing = false
  /** A model's answer, the calls in it and their results often come in one turn of the event loop: one write. */
  #flushSoon = false
  #storing = false
  #reading: Promise<void> | undefined
  #snapshotSeq = 0
  /** Events that had to be folded when this session was loaded. */
  #loaded = 0
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
      /** Brings what other processes stream; without it only their events are shown. */
      hear?: (log: SessionLog) => Hearing
      /** Called when another writer has appended first. */
      onConflict?: () => void
    },
  ) {
    this.key = key
    this.#journal = journal
    this.#now = options.now
    this.#faultPoint = options.faultPoint
    this.#secretsOf = options.secretsOf
    this.#limitsOf = options.limitsOf
    this.#hear = options.hear
    this.#onConflict = options.onConflict ?? (() => {})
    this.#draft = this.#newDraft(this.state)
  }

  /** The stored state with everything that waits to be stored: what the next event will be appended to. */
  get ahead(): SessionState {
    return this.#draft.state
  }

  #newDraft(state: SessionState): Draft {
    return new Draft(state, this.key, this.#now, this.#secretsOf)
  }

  /** Reads the session from storage. Rejects when it cannot be read: an unreadable session is never a fresh one. */
  async load(): Promise<void> {
    const snapshot = await coded(() => this.#journal.getSnapshot(this.key))
    let state = emptyState
    if (snapshot?.version === STATE_VERSION) {
      const parsed = parseSnapshot(snapshot.data)
      if (parsed?.seq === snapshot.seq && snapshot.seq <= (await coded(() => this.#journal.head(this.key))))
        state = parsed
    }
    this.#snapshotSeq = state.seq
    // Nobody sees the states between.
    const fold = foldFrom(state)
    // The event of the snapshot is read again: later it tells whether the journal is still this one.
    let from = Math.max(0, state.seq - 1)
    for await (const page of this.#pagesAfter(() => from)) {
      fold.add(page.filter((it) => it.seq > fold.seq))
      this.#recent = page.slice(-RECENT)
      this.#last = page.at(-1)
      from = this.#last!.seq
      if (page.length === 1 && from === state.seq) break
    }
    this.#loaded = fold.seq - state.seq
    this.state = fold.end()
    this.#draft = this.#newDraft(this.state)
  }

  /** Folds what others have appended. */
  catchUp(): Promise<void> {
    this.#reading ??= this.#readNew().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readNew(): Promise<void> {
    // With the event before, which must still be there.
    let known = this.#last
    for await (const page of this.#pagesAfter(() => (known === undefined ? this.state.seq : known.seq - 1))) {
      const isOther = known !== undefined && (page[0]!.seq !== known.seq || page[0]!.at !== known.at)
      if (known !== undefined && !isOther && page.length === 1) return
      known = undefined
      // What follows is read from its beginning.
      if (isOther) this.#forget()
      else this.#stored(page)
    }
    if (known !== undefined) this.#forget()
  }

  /** The session was erased, and perhaps begun anew: what is waiting here was meant for the old one. */
  #forget(): void {
    const error = new OxbowError('session_erased', `The session ${this.key.session} was erased.`)
    const waiting = [...this.#inFlight, ...this.#pending]
    this.#inFlight = []
    this.#pending = []
    this.#held = []
    this.#recent = []
    this.#last = undefined
    this.#snapshotSeq = 0
    this.live = undefined
    this.state = emptyState
    this.#draft = this.#newDraft(this.state)
    for (const it of waiting) it.reject(error)
    this.onChanged?.()
    this.fail(error)
  }

  /** A long session is read in many pages; others may have their turn between them. */
  async *#pagesAfter(seq: () => number): AsyncGenerator<Event[]> {
    for (;;) {
      const page = await coded(() => this.#journal.read(this.key, seq()))
      if (page.length === 0) return
      yield page
      if (page.length >= 500) await new Promise(setImmediate)
    }
  }

  /** Appends what `build` adds and resolves with what it returned, once that is durable. */
  async append<T>(build: Build<T>): Promise<T> {
    const { pending, stored } = this.#enqueue(build, () => false)
    if (!this.#flushing) void this.#flush()
    await stored
    return pending.value as T
  }

  /**
   * Folds what `build` adds into `ahead` at once and returns a promise of its durability. A storage error that may pass
   * is tried again for 30 seconds, unless `givenUp`. Throws what `build` throws; the promise rejects with what `build`
   * throws when it runs again because another writer was first.
   */
  appendAhead(build: Build<unknown>, givenUp: () => boolean): Promise<void> {
    const until = performance.now() + STORE_PATIENCE_MS
    const { stored } = this.#enqueue(build, () => !givenUp() && performance.now() < until)
    if (!this.#flushSoon)
      setImmediate(() => {
        this.#flushSoon = false
        if (!this.#flushing) void this.#flush()
      })
    this.#flushSoon = true
    return stored
  }

  #enqueue(build: Build<unknown>, patient: () => boolean): { pending: Pending; stored: Promise<void> } {
    const value = this.#draft.apply(build)
    const { promise: stored, resolve, reject } = Promise.withResolvers<void>()
    const pending: Pending = { build, value, patient, resolve, reject }
    this.#pending.push(pending)
    return { pending, stored }
  }

  /** Resolves when everything that was folded before is stored. Rejects if that fails. */
  async flushed(): Promise<void> {
    if (this.#flushing || this.#pending.length > 0) await this.append(() => {})
  }

  /** One append at a time; writes that are folded meanwhile go into the next one. */
  async #flush(): Promise<void> {
    this.#flushing = true
    for (let failures = 0; this.#pending.length > 0; ) {
      const draft = this.#draft
      this.#inFlight = this.#pending
      this.#pending = []
      this.#draft = this.#newDraft(draft.state)
      try {
        if (await this.#store(draft)) {
          for (const it of this.#inFlight) it.resolve()
          this.#inFlight = []
        } else {
          this.#onConflict()
          await this.catchUp()
          // The events of the other writer may have been read while our own write was under way.
          if (this.#inFlight.length > 0) this.#rebuild()
          this.onChanged?.()
        }
        failures = 0
      } catch (error) {
        failures += 1
        this.#keepTrying(error)
        if (this.#pending.length > 0) await delay(Math.min(100 * 2 ** (failures - 1), 2_000))
      }
    }
    this.#flushing = false
  }

  /** Resolves with whether the journal still ended where the draft begins. */
  async #store(draft: Draft): Promise<boolean> {
    if (draft.events.length === 0) return true
    this.#faultPoint?.('append.before')
    const notes = appendNotes(draft, this.#limitsOf)
    const expectedSeq = draft.events[0]!.seq - 1
    this.#storing = true
    try {
      const { ok } = await coded(() => this.#journal.append(this.key, expectedSeq, draft.events, notes))
      this.#faultPoint?.('append.after')
      if (ok) this.#stored(draft.events, draft.state)
      return ok
    } finally {
      this.#storing = false
    }
  }

  /** Folds everything that waits once more, on what is stored now. */
  #rebuild(): void {
    const before = this.ahead.seq
    const waiting = [...this.#inFlight, ...this.#pending]
    this.#inFlight = []
    this.#draft = this.#newDraft(this.state)
    this.#pending = waiting.filter((it) => {
      try {
        it.value = this.#draft.apply(it.build)
        return true
      } catch (error) {
        it.reject(error)
        return false
      }
    })
    const moved = this.ahead.seq - before
    if (moved !== 0) this.#held = this.#held.map(({ after, item }) => ({ after: after + moved, item }))
  }

  /** After a failed append: writes that may be retried are rebuilt on the stored state; all others are rejected. */
  #keepTrying(error: unknown): void {
    const mayPass = error instanceof OxbowError && error.retryable && error.code.startsWith('storage_')
    const waiting = [...this.#inFlight, ...this.#pending]
    const kept = mayPass ? waiting.filter((it) => it.patient()) : []
    for (const it of waiting) if (!kept.includes(it)) it.reject(error)
    this.#inFlight = []
    this.#pending = kept
    if (kept.length === 0) this.#held = []
    this.#rebuild()
    this.onChanged?.()
  }

  /** Folds and shows stored events, once each: our own may have been read back before their append has returned. */
  #stored(events: readonly Event[], folded?: SessionState): void {
    const fresh = events.filter((it) => it.seq > this.state.seq)
    if (fresh.length === 0) return
    this.state = folded !== undefined && fresh.length === events.length ? folded : evolveAll(this.state, fresh)
    // While a write is under way its outcome says whether these events are our own.
    if (!this.#storing) this.#rebuild()
    this.#recent = [...this.#recent, ...fresh].slice(-RECENT)
    this.#last = fresh.at(-1)
    this.onChanged?.()
    for (const event of fresh) {
      if (this.live !== undefined && endsLiveStep(event, this.live)) this.live = undefined
      this.#show(event)
      if (event.type === 'turn.claimed') this.#hearing?.ask()
      while (this.#held[0] !== undefined && this.#held[0].after <= event.seq) this.#show(this.#held.shift()!.item)
    }
  }

  /** Sends a fragment to all followers, after the events that were folded before it. */
  publish(item: SessionItem): void {
    if (this.ahead.seq > this.state.seq) this.#held.push({ after: this.ahead.seq, item })
    else this.#show(item)
  }

  /** Synchronous, and the whole cost of a fragment. */
  #show(item: SessionItem): void {
    for (const it of this.#followers) it.push(item)
    this.outlet?.(item)
  }

  /** The answer that is being streamed, without the fragments that are still held back. */
  soFar(): Delta[] {
    return this.live?.soFar(this.#held.map((it) => it.item)) ?? []
  }

  /** Events after `after`: the last few come from memory, older ones from storage. */
  async read(after: number): Promise<Event[]> {
    const first = this.#recent[0]
    if (first !== undefined && first.seq <= after + 1) return this.#recent.filter((it) => it.seq > after)
    return coded(() => this.#journal.read(this.key, after))
  }

  /** Everything after `after`, then new items, until the reader leaves. */
  follow(after = this.state.seq, only: FollowerChoice = {}): Follower {
    const reader = follower(
      {
        seq: () => this.state.seq,
        read: (seq) => this.read(seq),
        soFar: () => this.soFar(),
      },
      after,
      only,
      (self) => {
        if (!this.#followers.delete(self)) return
        if (only.fragments !== false) this.#listen(-1)
        this.release()
      },
    )
    this.#followers.add(reader)
    this.retain()
    if (only.fragments !== false) this.#listen(1)
    if (this.#failure !== undefined) reader.fail(this.#failure.error)
    return reader
  }

  #listen(more: 1 | -1): void {
    this.#listeners += more
    if (this.#listeners > 0) this.#hearing ??= this.#hear?.(this)
    else {
      this.#hearing?.stop()
      this.#hearing = undefined
    }
  }

  /** Ends every follower with an error: this process can no longer follow the session. */
  fail(error: unknown): void {
    for (const it of this.#followers) it.fail(error)
  }

  /** While there is a worker or reader here, appends of other processes are noticed. */
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
    return this.#users === 0 && !this.#flushing && this.#pending.length === 0
  }

  /** The session is awaited in this process. */
  get watched(): boolean {
    return this.#followers.size > 0
  }

  /** Like `fail`, for later followers too. */
  shutDown(error: unknown): void {
    this.#failure = { error }
    this.fail(error)
  }

  /**
   * Stores a snapshot when the journal has doubled since the last one, so that its cost stays constant per event, or
   * when loading took long.
   */
  async snapshotIfDue(): Promise<void> {
    const { state } = this
    const due = this.#loaded >= MOST_LOADED ? 1 : Math.max(SNAPSHOT_EVERY, this.#snapshotSeq)
    if (state.seq - this.#snapshotSeq < due) return
    if (state.messages.length > MOST_MESSAGES || state.finished.length > MOST_TURNS) return
    this.#loaded = 0
    this.#snapshotSeq = state.seq
    await this.#journal.putSnapshot(this.key, { seq: state.seq, version: STATE_VERSION, data: JSON.stringify(state) })
  }
}

/** The answer is in the journal, or comes from another worker. */
const endsLiveStep = (event: Event, live: LiveStep): boolean =>
  event.type === 'turn.claimed' ||
  (event.type === 'model.finished' && event.turnId === live.turnId && event.step === live.step)

/** A back end of somebody else may reject with anything: callers get a code, and the log has the cause. */
async function coded<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    if (cause instanceof OxbowError) throw cause
    throw new OxbowError('storage_error', 'The store failed; its own error is the cause of this one.', {
      cause,
      retryable: true,
    })
  }
}

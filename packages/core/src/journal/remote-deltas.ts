// Fragments between processes. The process that works on a session sends what it streams while followers elsewhere ask
// for it, and nothing otherwise. Messages may be lost: events are the truth, and offsets show what is missing.
import { type Delta, isEvent, type SessionItem } from '../events/types.ts'
import type { Bus, SessionKey } from '../ports.ts'
import type { SessionState, TurnState } from '../state/state.ts'
import { nameOfKey } from './ids.ts'
import { type BlockDelta, type LiveStep, liveStep } from './live-step.ts'

/** The part of a session's log that is needed here. */
interface StreamedLog {
  readonly key: SessionKey
  readonly state: SessionState
  live: LiveStep | undefined
  outlet: ((item: SessionItem) => void) | undefined
  soFar(): Delta[]
  publish(item: SessionItem): void
  catchUp(): Promise<void>
}

/** Sent while somebody follows. `fresh`: the step so far is wanted, too. */
interface Interest {
  readonly from: string
  readonly fresh: boolean
}

/** Fragments that follow the event `after`, of the worker whose claim has this epoch. */
interface Batch {
  readonly epoch: number
  readonly after: number
  readonly items: Delta[]
}

/** The least time between two messages: fragments gather for that long. */
const GATHER_MS = 20
const REPEAT_MS = 2_000
/** Interest that is not repeated ends: its process may have died. */
const LAPSE_MS = 5_000
/** An answer takes a moment; until then the next gap is the same one. */
const ASK_AGAIN_MS = 200

const topicsOf = (key: SessionKey) => {
  const name = nameOfKey(key)
  return { interest: `interest ${name}`, fragments: `fragments ${name}` }
}

/** While this process works on the session: sends its fragments to those who ask. Returns the way to stop. */
export function sendFragments(log: StreamedLog, bus: Bus, worker: string): () => void {
  const { interest, fragments } = topicsOf(log.key)
  let batch: Batch | undefined
  let timer: NodeJS.Timeout | undefined
  let until = 0
  let sentAt = -Infinity

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    sentAt = performance.now()
    if (batch !== undefined) bus.publish(fragments, JSON.stringify({ from: worker, ...batch }))
    batch = undefined
  }
  const send = (item: Delta): void => {
    const { seq, turn } = log.state
    if (turn?.claim?.worker !== worker) return
    if (batch !== undefined && batch.after !== seq) flush()
    batch ??= { epoch: turn.claim.epoch, after: seq, items: [] }
    gather(batch.items, item)
    timer ??= setTimeout(flush, Math.max(0, sentAt + GATHER_MS - performance.now()))
  }
  const outlet = (item: SessionItem): void => {
    if (performance.now() > until) log.outlet = undefined
    else if (!isEvent(item)) send(item)
  }
  const stop = bus.subscribe(interest, (message) => {
    const asked = parsed<Interest>(message)
    if (asked === undefined || asked.from === worker) return
    until = performance.now() + LAPSE_MS
    log.outlet = outlet
    if (!asked.fresh) return
    flush()
    for (const it of log.soFar()) send(it)
    flush()
  })
  return () => {
    stop()
    log.outlet = undefined
    flush()
  }
}

/** Adds a fragment; one that continues the last is joined with it. */
function gather(items: Delta[], item: Delta): void {
  const last = items.at(-1)
  if (last !== undefined && 'offset' in last && 'offset' in item && continues(last, item))
    items[items.length - 1] = { ...last, text: last.text + item.text }
  else items.push(item)
}

type TextDelta = Extract<Delta, { offset: number }>

const continues = (last: TextDelta, next: TextDelta): boolean =>
  next.type === last.type &&
  next.turnId === last.turnId &&
  next.step === last.step &&
  next.block === last.block &&
  next.offset === last.offset + last.text.length

/** While the session is followed here: shows what another process streams. */
export interface Hearing {
  /** Asks the worker elsewhere, if there is one, for its fragments. */
  ask(): void
  stop(): void
}

export function hearFragments(log: StreamedLog, bus: Bus, worker: string): Hearing {
  const { interest, fragments } = topicsOf(log.key)
  let stopped = false
  let askedAt = -Infinity
  let before = Promise.resolve()

  const elsewhere = (): boolean => {
    const holder = log.state.turn?.claim?.worker
    return holder !== undefined && holder !== worker
  }
  const show = (fresh: boolean): void => {
    if (elsewhere()) bus.publish(interest, JSON.stringify({ from: worker, fresh } satisfies Interest))
  }
  const ask = (): void => {
    askedAt = performance.now()
    show(true)
  }

  async function receive({ epoch, after, items }: Batch): Promise<void> {
    // Twice: a reading that is under way may have begun before the event was stored.
    for (let tries = 0; tries < 2 && log.state.seq < after; tries++) await log.catchUp()
    for (const item of items) {
      const { turn, seq } = log.state
      if (stopped || seq < after || turn?.claim?.epoch !== epoch || !elsewhere()) return
      const fresh = merged(log, turn, item)
      if (fresh === 'gap') {
        if (performance.now() - askedAt > ASK_AGAIN_MS) ask()
      } else if (fresh !== undefined) log.publish(fresh)
    }
  }

  const stop = bus.subscribe(
    fragments,
    (message) => {
      const batch = parsed<Batch & { from: string }>(message)
      if (batch === undefined || batch.from === worker) return
      // An item that cannot be read now is shown when it is stored.
      before = before.then(() => receive(batch)).catch(() => {})
    },
    ask,
  )
  const repeat = setInterval(() => show(false), REPEAT_MS).unref()
  ask()
  return {
    ask,
    stop() {
      stopped = true
      stop()
      clearInterval(repeat)
      // It would not grow any more.
      if (elsewhere()) log.live = undefined
    },
  }
}

/** The part of a fragment that readers have not seen, if it belongs to the current step. */
function merged(log: StreamedLog, turn: TurnState, item: Delta): Delta | 'gap' | undefined {
  if (item.turnId !== turn.turnId) return undefined
  if (!isOfBlock(item)) return item
  if (item.step !== turn.step || turn.reply !== undefined) return undefined
  if (log.live?.turnId !== item.turnId || log.live.step !== item.step)
    log.live = liveStep(log.key, item.turnId, item.step)
  return log.live.merge(item)
}

const isOfBlock = (item: Delta): item is BlockDelta => 'block' in item

/** Other versions of Oxbow may send what this one does not know. */
function parsed<T extends { readonly from: string }>(message: string): T | undefined {
  try {
    const value = JSON.parse(message) as T
    return typeof value.from === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

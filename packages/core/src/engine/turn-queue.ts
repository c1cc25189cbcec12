// Spreads turns over processes: a process without room enqueues its turns, and one with room takes them.
import type { SessionLog } from '../journal/session-log.ts'
import type { Job, Queue, SessionKey } from '../ports.ts'
import type { Places } from '../turn/places.ts'
import type { ReportOf } from './report.ts'
import { needsWork } from './turn-workers.ts'

export interface TurnQueue {
  /** Leaves an unclaimed turn to whichever process takes it from the queue. The sweep finds it if that fails. */
  handOn(log: SessionLog, reason?: string): Promise<void>
  /** Brings the session back when a wait of its turn is over. The sweep finds it if that fails. */
  wakeAt(log: SessionLog, at: number): Promise<void>
  /** Takes turns from the queue from now on. */
  start(): void
  /** Takes no further turns; resolves when those already taken have begun or are back in the queue. */
  stop(): Promise<void> | undefined
}

/** Jobs of the queue that are looked at together. */
const TAKING = 4

/**
 * `begin` starts the session's turn unless another worker has it, while a place is kept for it. `mayWork`: whether turns
 * may begin here at all.
 */
export function turnQueue(
  queue: Queue,
  places: Places,
  mayWork: boolean,
  begin: (key: SessionKey) => Promise<void>,
  reportOf: ReportOf,
): TurnQueue {
  let taker: { stop(): Promise<void> } | undefined
  let stopping = false

  /** A job is done once its turn has begun: from then on its lease shows whether somebody works on it. */
  async function take(job: Job): Promise<void> {
    if (stopping || !places.free) {
      await queue.enqueue(job)
      // Another process may have room; this one takes no job before it has.
      return places.whenFree()
    }
    const leave = places.enter()
    try {
      await begin(job.key)
    } finally {
      leave()
    }
  }

  const start = (): void => {
    if (mayWork && !stopping) taker ??= queue.work(take, TAKING)
  }

  return {
    async handOn(log, reason = mayWork ? 'no place was free' : 'accepted') {
      if (!needsWork(log.state) || log.state.turn?.claim?.worker !== undefined) return
      start()
      await queue.enqueue({ key: log.key, reason }).catch(reportOf(log))
    },
    async wakeAt(log, at) {
      start()
      await queue.enqueue({ key: log.key, reason: 'sleeps' }, at).catch(reportOf(log))
    },
    start,
    stop() {
      stopping = true
      return taker?.stop()
    },
  }
}

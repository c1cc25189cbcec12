// The leases of workers. A worker renews its lease with heartbeats; one whose process has ended loses it at once, one
// that is stopped or hangs when its lease runs out.
import type { WorkerStatus, Workers } from '@oxbow/core'
import { assertName } from '../../keys.ts'
import type { Context } from '../context.ts'
import { hostIdentity, processExists, processStart } from './process.ts'

/** How long a worker without heartbeats keeps its turns, unless the options set it. */
export const defaultLeaseMs = 5_000
const beatsPerLease = 4
const forgetAfterMs = 24 * 60 * 60 * 1_000

export interface SqliteWorkers extends Workers {
  /**
   * Ends the heartbeats. A worker that was not released is alive as long as this process: one of its tools may still
   * be running, and no other worker may reconcile its calls.
   */
  close(): Promise<void>
}

interface Row {
  readonly worker: string
  readonly host: string
  readonly pid: number
  readonly started: string
  readonly heartbeat: number
  readonly abandoned: number
}

export function sqliteWorkers({ db, writer, guard }: Context, leaseMs: number): SqliteWorkers {
  const findWorker = db.prepare('SELECT * FROM workers WHERE worker = ?')
  const allWorkers = db.prepare('SELECT worker, heartbeat FROM workers')
  const host = hostIdentity()
  const started = processStart(process.pid) ?? ''
  const announced = new Map<string, symbol>()
  const observed = observations(leaseMs)
  let timer: NodeJS.Timeout | undefined

  const announce = (worker: string, abandoned = false) =>
    writer.write(['announce', worker, host, process.pid, started, Date.now(), abandoned])

  function beat(): void {
    // The next heartbeat makes up for a failed one; appends report faults of the file.
    for (const worker of announced.keys()) announce(worker).catch(() => {})
    try {
      guard(() => observed.renew(allWorkers.all() as unknown as Row[]))
    } catch {
      // As above.
    }
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }

  function status(worker: string): WorkerStatus | undefined {
    const row = findWorker.get(worker) as Row | undefined
    if (row === undefined) return undefined
    const { pid } = row
    const silentMs = announced.has(worker) ? 0 : observed.silence(row)
    const near = row.host === host
    const exists = near && row.started !== '' ? processStart(pid) === row.started : !near || processExists(pid)
    const alive = exists && ((near && row.abandoned === 1) || silentMs < leaseMs)
    return { alive, host: row.host.split(' ')[0]!, pid, silentMs }
  }

  return {
    async announce(worker) {
      guard(() => assertName(worker, 'worker'))
      const announcement = Symbol()
      const announcing = announce(worker)
      // In the same transaction, so it costs no commit.
      const forgetting = writer.write(['forgetWorkers', Date.now() - forgetAfterMs])
      await Promise.all([announcing, forgetting])
      announced.set(worker, announcement)
      timer ??= setInterval(beat, leaseMs / beatsPerLease).unref()
      return {
        async release() {
          if (announced.get(worker) !== announcement) return
          announced.delete(worker)
          if (announced.size === 0) stop()
          await writer.write(['release', worker, host, process.pid, started])
        },
      }
    },
    async alive(worker) {
      return guard(() => status(worker)?.alive ?? false)
    },
    async status(worker) {
      return guard(() => status(worker))
    },
    async close() {
      stop()
      const left = [...announced.keys()]
      announced.clear()
      await Promise.all(left.map((worker) => announce(worker, true).catch(() => {})))
    },
  }
}

/**
 * How long a heartbeat has not changed, counted while this process runs: clock changes and suspended machines do not
 * end a lease. Only the age of a heartbeat that is seen for the first time comes from the wall clock.
 */
function observations(leaseMs: number) {
  const seen = new Map<string, { heartbeat: number; at: number }>()
  let clockMs = 0
  let lookedAt = performance.now()
  function look({ worker, heartbeat }: Pick<Row, 'worker' | 'heartbeat'>): number {
    const now = performance.now()
    // After a longer gap this process was suspended, and perhaps the others with it.
    clockMs += Math.min(now - lookedAt, leaseMs / 2)
    lookedAt = now
    const before = seen.get(worker)
    if (before?.heartbeat === heartbeat) return clockMs - before.at
    const age = before === undefined ? Math.max(0, Date.now() - heartbeat) : 0
    seen.set(worker, { heartbeat, at: clockMs - age })
    return age
  }
  return {
    silence: look,
    renew(rows: readonly Pick<Row, 'worker' | 'heartbeat'>[]): void {
      const present = new Set(rows.map(({ worker }) => worker))
      for (const worker of seen.keys()) if (!present.has(worker)) seen.delete(worker)
      rows.forEach(look)
    },
  }
}

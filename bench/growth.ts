// One session that grows: what do turn 1, 10, 100 and 1,000 cost? Runs in its own process.
import { readFileSync } from 'node:fs'
import { onSqlite, onSqliteWindowed } from './contenders/oxbow.ts'
import { percentile } from './statistics.ts'

export interface GrowthJob {
  readonly url: string
  readonly directory: string
  /** The model is sent the last ten turns instead of the whole conversation. */
  readonly windowed: boolean
}

export interface GrowthRow {
  /** The turns that were averaged: a few around the named one, because one turn is shorter than the clock's noise. */
  readonly turn: number
  readonly cpuMs: number
  readonly latencyMs: number
  readonly bytesWritten: number
}

const POINTS = [1, 10, 100, 1_000]
/** Turns measured around each point. */
const WINDOW = 20

async function measure({ url, directory, windowed }: GrowthJob): Promise<GrowthRow[]> {
  const contender = await (windowed ? onSqliteWindowed : onSqlite)({ url, directory })
  /** Bytes that all threads of this process have written to the disk. */
  const written = (): number => Number(/^write_bytes: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))![1])
  // Other sessions warm the code, so that turn 1 is not the compiler's bill.
  for (let n = 0; n < 100; n++) await contender.turn(1 + (n % 50))

  const rows: GrowthRow[] = []
  let done = 0
  for (const point of POINTS) {
    // Turn 1 is measured on twenty fresh sessions, the others in the one that grows.
    while (point > 1 && done < point - WINDOW / 2) {
      await contender.turn(0)
      done += 1
    }
    const latencies: number[] = []
    const before = written()
    const cpu = process.cpuUsage()
    for (let n = 0; n < WINDOW; n++) {
      const startedAt = performance.now()
      await contender.turn(point === 1 ? 1_000 + n : 0)
      latencies.push(performance.now() - startedAt)
      if (point > 1) done += 1
    }
    const used = process.cpuUsage(cpu)
    rows.push({
      turn: point,
      cpuMs: (used.user + used.system) / 1_000 / WINDOW,
      latencyMs: percentile(latencies, 50),
      bytesWritten: (written() - before) / WINDOW,
    })
  }
  await contender.close()
  return rows
}

process.once('message', async (job: GrowthJob) => {
  process.send!(await measure(job))
  process.disconnect()
})

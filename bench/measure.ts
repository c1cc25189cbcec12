// One contender in its own process: measures itself and reports to its parent.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { StartContender } from './contender.ts'
import { loadPeer } from './peers/peers.ts'
import { percentile } from './statistics.ts'

export interface Job {
  readonly contender: string
  readonly url: string
  readonly directory: string
  readonly turns: number
  readonly concurrency: number
}

export interface Figures {
  readonly cpuMsPerTurn: number
  readonly firstTextMsMedian: number
  readonly turnsPerSecond: number
  readonly lagMsP99: number
  readonly peakRssMb: number
}

/** Each process only loads its own contender, so that its memory does not include the others' code. */
const contenders: Readonly<Record<string, () => Promise<StartContender>>> = {
  bare: async () => (await import('./contenders/bare.ts')).start,
  'oxbow, memory': async () => (await import('./contenders/oxbow.ts')).onMemory,
  'oxbow, SQLite': async () => (await import('./contenders/oxbow.ts')).onSqlite,
}
export const names: readonly string[] = Object.keys(contenders)

async function measure(job: Job): Promise<Figures> {
  const start = await (contenders[job.contender]?.() ?? loadPeer(job.contender))
  const contender = await start({ url: job.url, directory: job.directory })
  let next = 0
  const run = async (turns: number): Promise<number[]> => {
    const first: number[] = []
    const end = next + turns
    const worker = async (): Promise<void> => {
      while (next < end) {
        const { firstTextMs, characters } = await contender.turn(next++)
        if (characters !== 1_200) throw new Error(`${job.contender} gave ${characters} characters instead of 1200`)
        first.push(firstTextMs)
      }
    }
    await Promise.all(Array.from({ length: job.concurrency }, worker))
    return first
  }

  await run(job.concurrency * 4)
  const lag = monitorEventLoopDelay({ resolution: 5 })
  lag.enable()
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  const first = await run(job.turns)
  const wallMs = performance.now() - startedAt
  const used = process.cpuUsage(cpu)
  lag.disable()
  await contender.close()
  return {
    cpuMsPerTurn: (used.user + used.system) / 1_000 / job.turns,
    firstTextMsMedian: percentile(first, 50),
    turnsPerSecond: (job.turns / wallMs) * 1_000,
    lagMsP99: lag.percentile(99) / 1e6,
    peakRssMb: process.resourceUsage().maxRSS / 1_024,
  }
}

if (process.send !== undefined)
  process.once('message', async (job: Job) => {
    process.send!(await measure(job))
    process.disconnect()
  })

// Heap of idle open sessions. Runs in its own process, with --expose-gc.
import { setTimeout as delay } from 'node:timers/promises'
import { onSqlite } from './contenders/oxbow.ts'

export interface IdleJob {
  readonly url: string
  readonly directory: string
  readonly sessions: number
}

/** Turns until the heap of the engine itself has stopped growing. */
const WARM_UP = 300

async function measure({ url, directory, sessions }: IdleJob): Promise<{ kilobytesPerSession: number }> {
  const contender = await onSqlite({ url, directory })
  const heap = async (): Promise<number> => {
    // Short-lived leftovers of a turn (timers, sockets, recompiled code) are gone after a while.
    for (let round = 0; round < 5; round++) {
      await delay(100)
      globalThis.gc!()
    }
    return process.memoryUsage().heapUsed
  }
  for (let n = 0; n < WARM_UP; n++) await contender.turn(n)
  const before = await heap()
  for (let n = 0; n < sessions; n++) await contender.turn(WARM_UP + n)
  const kilobytesPerSession = ((await heap()) - before) / sessions / 1_024
  await contender.close()
  return { kilobytesPerSession }
}

process.once('message', async (job: IdleJob) => {
  process.send!(await measure(job))
  process.disconnect()
})

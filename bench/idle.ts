// Heap of sessions that are open and do nothing. A process of its own, with --expose-gc.
import { onSqlite } from './contenders/oxbow.ts'

export interface IdleJob {
  readonly url: string
  readonly directory: string
  readonly sessions: number
}

async function measure({ url, directory, sessions }: IdleJob): Promise<{ kilobytesPerSession: number }> {
  const contender = await onSqlite({ url, directory })
  const heap = (): number => {
    globalThis.gc!()
    globalThis.gc!()
    return process.memoryUsage().heapUsed
  }
  for (let n = 0; n < 50; n++) await contender.turn(n)
  const before = heap()
  for (let n = 0; n < sessions; n++) await contender.turn(50 + n)
  const kilobytesPerSession = (heap() - before) / sessions / 1_024
  await contender.close()
  return { kilobytesPerSession }
}

process.once('message', async (job: IdleJob) => {
  process.send!(await measure(job))
  process.disconnect()
})

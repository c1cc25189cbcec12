// One way to read streamed answers, measured in its own process.
import { type Format, open } from './ways.ts'

export interface DriverJob {
  readonly format: Format
  readonly way: string
  readonly url: string
  readonly chunks: number
  readonly answers: number
}

async function measure({ format, way, url, chunks, answers }: DriverJob): Promise<{ msPerThousandChunks: number }> {
  const answer = await open(way, format, url)
  const run = async (): Promise<void> => {
    const characters = await answer()
    if (characters < 5 * chunks - 1) throw new Error(`${way} of ${format} received ${characters} characters`)
  }
  for (let n = 0; n < 5; n++) await run()
  const cpu = process.cpuUsage()
  for (let n = 0; n < answers; n++) await run()
  const { user, system } = process.cpuUsage(cpu)
  return { msPerThousandChunks: (user + system) / answers / chunks }
}

process.once('message', async (job: DriverJob) => {
  process.send!(await measure(job))
  process.disconnect()
})

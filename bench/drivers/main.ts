// `npm run bench -- --drivers`: what a streamed answer costs on the client's side, per 1,000 chunks that come one per
// turn of the event loop. Every way runs in a process of its own, in rounds, against one server process.
import { spawnScriptedModel } from '@oxbow/testing'
import { inProcess } from '../processes.ts'
import { percentile } from '../statistics.ts'
import type { DriverJob } from './measure.ts'
import { FORMATS, type Format, WAYS } from './ways.ts'

const CHUNKS = 2_000

/** Milliseconds of CPU per 1,000 chunks, by format and way. */
export type DriverFigures = Readonly<Record<Format, Readonly<Record<string, number>>>>

export async function drivers(rounds: number, answers: number): Promise<DriverFigures> {
  const server = await spawnScriptedModel({
    scripts: { '*': { always: { text: 'word '.repeat(CHUNKS) } } },
    oneWritePerTurn: true,
  })
  try {
    const samples = new Map<string, number[]>()
    for (let round = 0; round < rounds; round++)
      for (const format of FORMATS)
        for (const way of WAYS) {
          const job: DriverJob = { format, way, url: server.url, chunks: CHUNKS, answers }
          const { msPerThousandChunks } = await inProcess<{ msPerThousandChunks: number }>('./drivers/measure.ts', job)
          samples.set(`${format} ${way}`, [...(samples.get(`${format} ${way}`) ?? []), msPerThousandChunks])
        }
    const median = (format: Format) =>
      Object.fromEntries(WAYS.map((way) => [way, percentile(samples.get(`${format} ${way}`)!, 50)]))
    return Object.fromEntries(FORMATS.map((format) => [format, median(format)])) as DriverFigures
  } finally {
    await server.close()
  }
}

export function driversTable(figures: DriverFigures): void {
  console.log('\nA streamed answer, CPU ms per 1,000 chunks on the client’s side (ratio to the bare parser):\n')
  const row = (way: string) =>
    Object.fromEntries(
      FORMATS.map((format) => {
        const ms = figures[format][way]!
        return [format, `${ms.toFixed(1)} (${(ms / figures[format]['bare parser']!).toFixed(2)} ×)`]
      }),
    )
  console.table(Object.fromEntries(WAYS.map((way) => [way, row(way)])))
}

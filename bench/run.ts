import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Figures, Job } from './measure.ts'

const script = (name: string) => new URL(name, import.meta.url)
const server = fork(script('./server.ts'))
const { url } = await new Promise<{ url: string }>((r) => server.once('message', r as never))
const only = process.argv[2]
for (const contender of [
  'bare',
  'oxbow, memory',
  'oxbow, SQLite',
  'bare',
  'oxbow, memory',
  'oxbow, SQLite',
] as Job['contender'][]) {
  if (only && contender !== only) continue
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-bench-'))
  const child = fork(script('./measure.ts'), {
    execArgv: [...process.execArgv, ...(process.env.PROF ? ['--cpu-prof', '--cpu-prof-dir=/tmp/prof'] : [])],
  })
  child.send({ contender, url, directory, turns: 600, concurrency: 50 } satisfies Job)
  const figures = await new Promise<Figures>((r) => child.once('message', r as never))
  console.log(contender, figures)
  rmSync(directory, { recursive: true })
}
server.disconnect()

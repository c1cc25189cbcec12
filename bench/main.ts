// `npm run bench`: everything against one scripted server in one go. `--json` prints the figures, `--quick` fewer
// turns,
// `--peers` measures other harnesses in the same run, `--drivers` measures nothing but the drivers of models beside
// other clients,
// `--knowledge` nothing but an index of documents, `--readers` nothing but one burst with many readers.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { drivers, driversTable } from './drivers/main.ts'
import type { GateRow } from './gate.ts'
import type { GrowthRow } from './growth.ts'
import { knowledgeFigures } from './knowledge.ts'
import { type Figures, type Job, names } from './measure.ts'
import { installPeers, peerNames } from './peers/peers.ts'
import { inProcess, startModelServer } from './processes.ts'
import { manyReaders } from './readers/readers.ts'
import { startup } from './startup.ts'
import { percentile } from './statistics.ts'
import { approvalsPerSecond, fill, idleCpu, startWaiting } from './waiting/service.ts'

const quick = process.argv.includes('--quick')
const asJson = process.argv.includes('--json')
const withPeers = process.argv.includes('--peers')
const ROUNDS = quick ? 1 : 5
const TURNS = quick ? 200 : 1_000
const CONCURRENCY = 50

async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-bench-'))
  try {
    return await work(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** Rounds go through all contenders in turn, so that a slow minute of the machine hits them all. */
async function contenders(url: string): Promise<Record<string, Figures>> {
  const all = withPeers ? [...names, ...peerNames] : names
  const runs = new Map<string, Figures[]>(all.map((it) => [it, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const contender of all) {
      const job = (directory: string): Job => ({ contender, url, directory, turns: TURNS, concurrency: CONCURRENCY })
      runs.get(contender)!.push(await inDirectory((it) => inProcess<Figures>('./measure.ts', job(it))))
    }
  return Object.fromEntries([...runs].map(([name, all]) => [name, medians(all)]))
}

const medians = (all: readonly Figures[]): Figures =>
  Object.fromEntries(
    (Object.keys(all[0]!) as (keyof Figures)[]).map((key) => [
      key,
      percentile(
        all.map((it) => it[key]),
        50,
      ),
    ]),
  ) as unknown as Figures

if (process.argv.includes('--drivers')) {
  const figures = await drivers(ROUNDS, quick ? 10 : 50)
  if (asJson) console.log(JSON.stringify(figures, null, 2))
  else driversTable(figures)
  process.exit(0)
}

if (process.argv.includes('--knowledge')) {
  const rows = await knowledgeFigures(inDirectory, quick)
  if (asJson) console.log(JSON.stringify(rows, null, 2))
  else console.table(rows)
  process.exit(0)
}

if (process.argv.includes('--readers')) {
  const many = quick ? 200 : 1_000
  const rows = { full: await manyReaders(many, 2_000, 'full'), status: await manyReaders(many, 2_000, 'status') }
  if (asJson) console.log(JSON.stringify(rows, null, 2))
  else console.table(rows)
  process.exit(0)
}

const build = spawnSync('npx', ['--no-install', 'tsc', '-b', 'tsconfig.build.json'], { stdio: 'inherit' })
if (build.status !== 0) throw new Error('the build failed')
const peers = withPeers ? installPeers() : undefined

const load = loadavg()[0]!.toFixed(1)
const server = await startModelServer()
const figures = await contenders(server.url)
const grow = (windowed: boolean): Promise<GrowthRow[]> =>
  inDirectory((directory) => inProcess<GrowthRow[]>('./growth.ts', { url: server.url, directory, windowed }))
const growth = { windowed: await grow(true), whole: await grow(false) }
const idle = await inDirectory((directory) =>
  inProcess<{ kilobytesPerSession: number }>('./idle.ts', { url: server.url, directory, sessions: quick ? 100 : 500 }, [
    '--expose-gc',
  ]),
)
const gate = await inProcess<GateRow[]>('./gate.ts', { calls: quick ? 10_000 : 100_000 })
const waiting = await inDirectory((directory) => peopleToWaitFor(server.url, directory))
server.close()
const start = await startup()

const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.versions.node}, load average ${load} before`
if (asJson)
  console.log(JSON.stringify({ machine, peers, contenders: figures, growth, idle, gate, waiting, start }, null, 2))
else report()

interface Waiting {
  readonly tasks: number
  readonly idleMsPerSecond: { readonly without: number; readonly with: number }
  readonly approvalsPerSecond: number
}

/** Tasks that wait for an approval: what they cost while nothing comes, and how fast they are decided. */
async function peopleToWaitFor(url: string, directory: string): Promise<Waiting> {
  const tasks = quick ? 100 : 500
  const windowMs = quick ? 2_000 : 10_000
  const start = (name: string) => startWaiting({ file: join(directory, `${name}.db`), modelUrl: url })
  const [empty, filled] = [await start('empty'), await start('filled')]
  const ids = await fill(filled, tasks)
  await idleCpu(filled, 2_000)
  const [without, withTasks] = await Promise.all([idleCpu(empty, windowMs), idleCpu(filled, windowMs)])
  const rate = await approvalsPerSecond(filled, ids, CONCURRENCY)
  await Promise.all([empty.stop(), filled.stop()])
  return { tasks, idleMsPerSecond: { without, with: withTasks }, approvalsPerSecond: rate }
}

function report(): void {
  const bare = figures.bare!
  const ratio = (value: number, base: number): string => `${(value / base).toFixed(2)} ×`
  console.log(`\n${machine}`)
  console.log(
    `One turn: one tool call, then 200 fragments of text. ${CONCURRENCY} at once, median of ${ROUNDS} rounds of ${TURNS} turns.\n`,
  )
  console.table(
    Object.fromEntries(
      Object.entries(figures).map(([name, it]) => [
        name,
        {
          'CPU ms/turn': it.cpuMsPerTurn.toFixed(2),
          'CPU ratio': ratio(it.cpuMsPerTurn, bare.cpuMsPerTurn),
          'first text ms': it.firstTextMsMedian.toFixed(1),
          'first text ratio': ratio(it.firstTextMsMedian, bare.firstTextMsMedian),
          'turns/s': it.turnsPerSecond.toFixed(0),
          'lag p99 ms': it.lagMsP99.toFixed(1),
          'peak RSS MB': it.peakRssMb.toFixed(0),
        },
      ]),
    ),
  )
  if (peers !== undefined) console.log(Object.values(peers).join(', '))
  growthTable('the model is sent the last ten turns', growth.windowed)
  growthTable('the model is sent the whole conversation: 2.4 MB a turn at the end', growth.whole)
  console.log('\nThe permission gate, one call:\n')
  console.table(
    Object.fromEntries(gate.map((it) => [`${it.what}, ${it.rules} rules`, { µs: it.microseconds.toFixed(1) }])),
  )
  const { tasks, idleMsPerSecond } = waiting
  console.log(
    `\napprovals decided           ${waiting.approvalsPerSecond.toFixed(0)}/s (HTTP, SQLite, ${CONCURRENCY} at once; their turns run on)`,
  )
  console.log(
    `CPU with ${tasks} waiting tasks ${idleMsPerSecond.with.toFixed(1)} ms/s (without: ${idleMsPerSecond.without.toFixed(1)} ms/s)`,
  )
  console.log(`heap per idle session      ${idle.kilobytesPerSession.toFixed(1)} KB`)
  console.log(`cold start to /readyz      ${start.serveMs.toFixed(0)} ms`)
  console.log(`import of @oxbow/core      ${start.importCoreMs.toFixed(0)} ms`)
}

function growthTable(what: string, rows: readonly GrowthRow[]): void {
  console.log(`\nOne session that grows (SQLite, one turn at a time); ${what}:\n`)
  console.table(
    Object.fromEntries(
      rows.map((it) => [
        `turn ${it.turn}`,
        {
          'CPU ms': it.cpuMs.toFixed(2),
          'latency ms': it.latencyMs.toFixed(1),
          'bytes written': it.bytesWritten.toFixed(0),
        },
      ]),
    ),
  )
}

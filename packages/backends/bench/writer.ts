// Compares a writer in its own thread with one on the main thread.
//   node --conditions=oxbow-source packages/backends/bench/writer.ts
//   node --conditions=oxbow-source packages/backends/bench/writer.ts thread 50 30     (kind, sessions, ms between
// turns)
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import type { Event } from '@oxbow/core'
import { openFile } from '../src/sqlite/file/file.ts'
import { placeOf } from '../src/sqlite/file/place.ts'
import { connect } from '../src/sqlite/file/schema.ts'
import { sqliteJournal } from '../src/sqlite/reading/journal.ts'
import type { Write } from '../src/sqlite/writer/protocol.ts'
import { openWriterStore } from '../src/sqlite/writer/store.ts'
import { startWriter, type Writer } from '../src/sqlite/writer/writer.ts'

const durationMs = 3_000

/** The thread's work on the main thread: the same grouping, the same transactions. */
function inlineWriter(path: string): Writer {
  const db = connect(path)
  const store = openWriterStore(db)
  let queued: { write: Write; resolve(answer: number): void; reject(error: unknown): void }[] = []
  function flush(): void {
    const batch = queued
    queued = []
    const answers = store.apply(batch.map(({ write }) => write))
    for (const [index, { resolve, reject }] of batch.entries()) {
      const answer = answers[index]
      if (typeof answer === 'number') resolve(answer)
      else reject(answer)
    }
  }
  return {
    write: (write) =>
      new Promise((resolve, reject) => {
        if (queued.length === 0) setImmediate(flush)
        queued.push({ write, resolve, reject })
      }),
    watch: () => () => {},
    async close() {
      db.close()
    },
  }
}

async function measure(kind: string, concurrent: number, modelMs: number) {
  const dir = mkdtempSync(join(tmpdir(), 'oxbow-bench-'))
  const path = join(dir, 'oxbow.db')
  const db = openFile(path, false)
  const slow = Number(process.env.SLOW_COMMIT_MS ?? 0) > 0
  if (slow) await import('./slow-commit.ts')
  const writer =
    kind === 'thread'
      ? startWriter(path, placeOf(path), slow ? new URL('./slow-thread.ts', import.meta.url) : undefined)
      : inlineWriter(path)
  const journal = sqliteJournal({ db, writer, path, guard: (run) => run() })
  const lag = monitorEventLoopDelay({ resolution: 1 })
  let appends = 0
  let latencies: number[] = []
  let until = 0

  async function session(number: number): Promise<void> {
    const key = { tenant: 'acme', user: `user-${number % 10}`, session: `session-${number}` }
    for (let seq = await journal.head(key); performance.now() < until; ) {
      const events = Array.from({ length: 1 + (appends % 3) }, (_, index) => event(seq + 1 + index))
      const sent = performance.now()
      const answer = await journal.append(key, seq, events, { status: 'running', agent: 'assistant', title: 'A title' })
      if (!answer.ok) throw new Error('a lone appender met a conflict')
      latencies.push(performance.now() - sent)
      seq += events.length
      appends += 1
      if (modelMs > 0 && appends % 5 === 0) await setTimeout(modelMs)
    }
  }
  const load = (ms: number) => {
    appends = 0
    latencies = []
    until = performance.now() + ms
    return Promise.all(Array.from({ length: concurrent }, (_, number) => session(number)))
  }

  await load(500)
  const cpu = process.cpuUsage()
  const start = performance.now()
  await load(durationMs)
  const elapsed = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  const perSecond = Math.round((appends / elapsed) * 1000)
  const cpuPerAppend = (user + system) / appends
  const latencyMs = latencies.sort((a, b) => a - b).at(Math.floor(latencies.length / 2))!
  // Separate, because the probe has a timer that fires every millisecond.
  lag.enable()
  await load(1_000)
  lag.disable()
  db.close()
  await writer.close()
  rmSync(dir, { recursive: true })
  console.log(
    [
      kind.padEnd(7),
      `${concurrent} sessions`.padEnd(13),
      `model ${modelMs} ms`.padEnd(12),
      `fsync +${process.env.SLOW_COMMIT_MS ?? 0} ms`.padEnd(13),
      `${perSecond} appends/s`.padEnd(17),
      `${cpuPerAppend.toFixed(1)} µs CPU/append`.padEnd(22),
      `append p50 ${latencyMs.toFixed(1)} ms`.padEnd(19),
      `lag p50 ${(lag.percentile(50) / 1e6).toFixed(1)} p99 ${(lag.percentile(99) / 1e6).toFixed(1)} ms`,
    ].join(' '),
  )
}

const body = 'The quick brown fox jumps over the lazy dog. '.repeat(8)
const event = (seq: number) =>
  ({
    type: 'model.finished',
    turnId: 'turn-1',
    step: seq,
    message: { id: 'm', role: 'assistant', blocks: [{ type: 'text', text: body }] },
    seq,
    at: Date.now(),
  }) as unknown as Event

if (process.argv[2] !== undefined) {
  await measure(process.argv[2], Number(process.argv[3]), Number(process.argv[4]))
} else {
  for (const [delay, model] of [
    ['0', '0'],
    ['0', '30'],
    ['20', '0'],
  ]) {
    for (const concurrent of ['1', '50', '500']) {
      for (const kind of ['inline', 'thread']) {
        spawnSync(process.execPath, [...process.execArgv, import.meta.filename, kind, concurrent, model!], {
          stdio: 'inherit',
          env: { ...process.env, SLOW_COMMIT_MS: delay },
        })
      }
    }
  }
}

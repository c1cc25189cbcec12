import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Backend } from '@oxbow/core'
import {
  checkOf,
  event,
  eventsAfter,
  eventually,
  readAll,
  type Subject,
  someKey,
  summary,
  withDirectory,
} from './support.ts'

const childFile = new URL(import.meta.url.endsWith('.ts') ? './child.ts' : './child.js', import.meta.url)

/** What holds for back ends that outlive a process and can be shared by several. */
export function processConformance(subject: Subject, module: URL): void {
  const check = checkOf(subject)

  /** Starts a child (see child.ts) and waits until it is ready. Its lines come in `lines`, also after it has died. */
  async function start(directory: string, ...task: string[]) {
    const child = spawn(process.execPath, [
      ...process.execArgv,
      fileURLToPath(childFile),
      module.href,
      directory,
      ...task,
    ])
    child.stderr.pipe(process.stderr)
    const lines: string[] = []
    const reader = createInterface({ input: child.stdout })
    reader.on('line', (line) => lines.push(line))
    const closed = once(reader, 'close')
    await Promise.race([once(reader, 'line'), failed(child)])
    return { child, lines, closed }
  }

  check('what was acknowledged is there after closing and opening again', async (backend, directory) => {
    await backend.journal.append(someKey, 0, eventsAfter(0, 3), summary)
    await backend.files.put(someKey, 'a', Buffer.from('1'), 0)
    const rows = await backend.journal.list({})
    await backend.close()
    await reopened(directory, async (again) => {
      assert.deepEqual(await again.journal.read(someKey, 0), eventsAfter(0, 3))
      assert.deepEqual(await again.journal.list({}), rows)
      assert.equal(Buffer.from((await again.files.get(someKey, 'a'))!.data).toString(), '1')
      assert.deepEqual(await again.journal.append(someKey, 3, eventsAfter(3, 1), summary), { ok: true })
    })
  })

  for (const kills of [1, 2, 3]) {
    subject.test(
      `${subject.name}: every acknowledged append survives kill -9 of its writer, and nothing is torn (${kills})`,
      () =>
        withDirectory(async (directory) => {
          for (let kill = 0; kill < kills; kill += 1) {
            const { child, lines, closed } = await start(directory, 'append')
            const after = 1 + Math.floor(Math.random() * 200)
            await eventually(`${after} appends`, () => lines.length > after)
            child.kill('SIGKILL')
            await closed
            const acknowledged = new Map(lines.slice(1).map((line) => line.split(' ') as [string, string]))
            await reopened(directory, async ({ journal }) => {
              for (const [session, seq] of acknowledged) {
                const head = await journal.head({ ...someKey, session })
                assert.ok(head >= Number(seq), `${session}: acknowledged ${seq}, found ${head}`)
                const events = await readAll(journal, { ...someKey, session })
                assert.deepEqual(events, eventsAfter(0, head, session.repeat(500)))
              }
            })
          }
        }),
    )
  }

  check('of appenders in several processes exactly one wins each sequence number', async ({ journal }, directory) => {
    const wins = 60
    const racers = await Promise.all([1, 2, 3].map(() => start(directory, 'race', someKey.session, `${wins}`)))
    await Promise.all(racers.map((racer) => racer.closed))
    const winners = new Map<number, number>()
    for (const { child, lines } of racers) {
      for (const seq of lines.slice(1).map(Number)) {
        assert.ok(!winners.has(seq), `two processes won ${seq}`)
        winners.set(seq, child.pid!)
      }
    }
    assert.equal(winners.size, racers.length * wins)
    const events = await readAll(journal, someKey)
    assert.equal(events.length, winners.size)
    for (const stored of events) assert.deepEqual(stored, event(stored.seq, `process ${winners.get(stored.seq)}`))
  })

  check(
    'an append of another process wakes those who watch its session, and only those',
    async ({ journal }, directory) => {
      const { child, lines, closed } = await start(directory, 'hold', 'other')
      const woken: string[] = []
      const watch = (session: string) => journal.watch({ ...someKey, session }, () => woken.push(session))
      const stops = ['first', 'second', 'unborn'].map(watch)
      for (const session of ['first', 'second']) {
        await journal.append({ ...someKey, session }, 0, eventsAfter(0, 1), summary)
      }
      const append = async (session: string, wakes: string[]) => {
        const before = lines.length
        child.stdin.write(`${session}\n`)
        await eventually('the append', () => lines.length > before)
        // The port says 200 ms; the rest is for a machine that is busy with other tests.
        await eventually(`waking for ${session}`, () => woken.length >= wakes.length, 2_000)
        assert.deepEqual(woken, wakes)
      }
      await append('first', ['first'])
      assert.equal(await journal.head({ ...someKey, session: 'first' }), 2)
      await append('unborn', ['first', 'unborn'])
      await journal.append({ ...someKey, session: 'first' }, 2, eventsAfter(2, 1), summary)
      await append('second', ['first', 'unborn', 'second'])
      await append('first', ['first', 'unborn', 'second', 'first'])
      for (const stop of stops) stop()
      child.kill('SIGKILL')
      await closed
    },
  )

  check('a worker of another process is alive here', async ({ workers }, directory) => {
    const { child, closed } = await start(directory, 'hold', 'other')
    assert.equal(await workers.alive('other'), true)
    child.kill('SIGKILL')
    await closed
  })

  async function reopened(directory: string, run: (backend: Backend) => Promise<void>): Promise<void> {
    const backend = await subject.open(directory)
    try {
      await run(backend)
    } finally {
      await backend.close()
    }
  }
}

async function failed(child: ChildProcessWithoutNullStreams): Promise<never> {
  const [code] = await once(child, 'exit')
  throw new Error(`a child process of the suite ended with code ${code} before it was ready`)
}

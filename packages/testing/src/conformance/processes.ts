import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Backend } from '@oxbow/core'
import {
  checkOf,
  conformanceEvent,
  eventsAfter,
  eventually,
  readAll,
  type Subject,
  someKey,
  summary,
  withDirectory,
} from './support.ts'

const childFile = import.meta.url.endsWith('.ts')
  ? new URL('./child.ts', import.meta.url)
  : new URL('./child.js', import.meta.url)

interface Child {
  readonly pid: number
  /** Its output lines, the first being "ready". */
  readonly lines: readonly string[]
  /** Resolves when it is gone and `lines` is complete. */
  readonly closed: Promise<void>
  kill(): void
  tell(line: string): void
}

/** The suite for back ends that outlive a process and can be shared by several. */
export function processConformance(subject: Subject, module: URL): void {
  const check = checkOf(subject)

  /** Runs with a ready child process (see child.ts), and kills it afterwards if it still runs. */
  async function withChild(directory: string, task: string[], run: (child: Child) => Promise<void>): Promise<void> {
    const args = [...process.execArgv, fileURLToPath(childFile), module.href, directory, ...task]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines: string[] = []
    const reader = createInterface({ input: child.stdout })
    const closed = once(reader, 'close').then(() => {})
    reader.on('line', (line) => lines.push(line))
    try {
      await Promise.race([once(reader, 'line'), closed])
      assert.equal(lines[0], 'ready', 'a child process of the suite ended before it was ready')
      await run({
        pid: child.pid!,
        lines,
        closed,
        kill: () => child.kill('SIGKILL'),
        tell: (line) => child.stdin.write(`${line}\n`),
      })
    } finally {
      child.kill('SIGKILL')
      await closed
    }
  }

  async function reopened(directory: string, run: (backend: Backend) => Promise<void>): Promise<void> {
    const backend = await subject.open(directory)
    try {
      await run(backend)
    } finally {
      await backend.close()
    }
  }

  check('acknowledged events are present after closing and reopening', async (backend, directory) => {
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

  /** Kills a writer at a random moment; returns the last head that it acknowledged for each session. */
  async function killWriter(directory: string): Promise<Map<string, number>> {
    const acknowledged = new Map<string, number>()
    await withChild(directory, ['append'], async ({ lines, closed, kill }) => {
      const enough = 1 + Math.floor(Math.random() * 200)
      await eventually(`${enough} appends`, () => lines.length > enough)
      kill()
      await closed
      for (const line of lines.slice(1)) {
        const [session, seq] = line.split(' ')
        acknowledged.set(session!, Number(seq))
      }
    })
    return acknowledged
  }

  const title = 'every acknowledged append survives kill -9 of its writer, repeatedly, and nothing is torn'
  subject.test(`${subject.name}: ${title}`, () =>
    withDirectory(subject, async (directory) => {
      for (let kills = 0; kills < 5; kills += 1) {
        const acknowledged = await killWriter(directory)
        assert.ok(acknowledged.size > 0)
        await reopened(directory, async ({ journal }) => {
          for (const [session, seq] of acknowledged) {
            const head = await journal.head({ ...someKey, session })
            assert.ok(head >= seq, `${session}: acknowledged ${seq}, found ${head}`)
            const events = await readAll(journal, { ...someKey, session })
            assert.deepEqual(events, eventsAfter(0, head, session.repeat(500)))
          }
        })
      }
    }),
  )

  check('of appenders in several processes exactly one wins each sequence number', async ({ journal }, directory) => {
    const wins = 60
    const winners = new Map<number, number>()
    const race = () =>
      withChild(directory, ['race', someKey.session, `${wins}`], async ({ pid, lines, closed }) => {
        await closed
        for (const seq of lines.slice(1).map(Number)) {
          assert.ok(!winners.has(seq), `two processes won ${seq}`)
          winners.set(seq, pid)
        }
      })
    await Promise.all([race(), race(), race()])
    assert.equal(winners.size, 3 * wins)
    const events = await readAll(journal, someKey)
    assert.equal(events.length, winners.size)
    for (const stored of events)
      assert.deepEqual(stored, conformanceEvent(stored.seq, `process ${winners.get(stored.seq)}`))
  })

  check('an append of another process wakes only the watchers of its session', async (here, directory) => {
    const { journal } = here
    await withChild(directory, ['hold', 'other'], async ({ lines, tell }) => {
      const woken: string[] = []
      const own = (session: string) => ({ ...someKey, session })
      const watch = (session: string) => journal.watch(own(session), () => woken.push(session))
      const [stopFirst, ...stops] = ['first', 'second', 'unborn'].map(watch)
      const appendThere = async (session: string, wakes: string[]) => {
        const before = lines.length
        tell(session)
        await eventually('the append', () => lines.length > before)
        // The port says 200 ms; the rest is for a machine that is busy with other tests.
        await eventually(`waking for ${session}`, () => woken.length >= wakes.length, 2_000)
        assert.deepEqual(woken, wakes)
      }
      for (const session of ['first', 'second']) await journal.append(own(session), 0, eventsAfter(0, 1), summary)
      await appendThere('first', ['first'])
      assert.equal(await journal.head(own('first')), 2)
      await appendThere('unborn', ['first', 'unborn'])
      await journal.append(own('first'), 2, eventsAfter(2, 1), summary)
      await appendThere('second', ['first', 'unborn', 'second'])
      await appendThere('first', ['first', 'unborn', 'second', 'first'])
      stopFirst!()
      await appendThere('first', [...woken])
      await appendThere('second', ['first', 'unborn', 'second', 'first', 'second'])
      for (const stop of stops) stop()
    })
  })

  check('a worker of another process is alive here', async ({ workers }, directory) => {
    await withChild(directory, ['hold', 'other'], async () => {
      assert.equal(await workers.alive('other'), true)
    })
  })

  check('a worker that was never released outlives the closing of its back end', async ({ workers }, directory) => {
    const other = await subject.open(directory)
    const released = await other.workers.announce('released')
    await other.workers.announce('left')
    await released.release()
    await other.close()
    assert.equal(await workers.alive('released'), false)
    assert.equal(await workers.alive('left'), true)
    await withChild(directory, ['leave', 'elsewhere'], async () => {
      assert.equal(await workers.alive('elsewhere'), true)
    })
  })
}

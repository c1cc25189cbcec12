import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { freshPath, open, runModule, tamper } from '../helpers.fixture.ts'

const onLinux = process.platform === 'linux'

/** Announces a worker and returns its row. */
async function announced(path: string) {
  const { workers } = open(path)
  const { release } = await workers.announce('me')
  const db = new DatabaseSync(path, { readOnly: true })
  const row = db.prepare('SELECT * FROM workers').get() as Record<'host' | 'started', string> & { pid: number }
  db.close()
  return { workers, release, row }
}

const addWorker = (path: string, host: string, pid: number, started: string, heartbeat: number, worker = 'other') =>
  tamper(
    path,
    `INSERT INTO workers (worker, host, pid, started, heartbeat) VALUES ('${worker}', '${host}', ${pid}, '${started}', ${heartbeat})`,
  )

describe.runIf(onLinux)('on the same host the operating system knows', () => {
  test('a process that was killed is dead at once, even before its parent has reaped it', async () => {
    const path = freshPath()
    const backend = open(path)
    // The shell never waits for the process that announces the worker, so that one stays a zombie.
    const shell = spawn('sh', [
      '-c',
      '"$@" & echo $!; exec sleep 60',
      'sh',
      process.execPath,
      ...process.execArgv,
      '-e',
      `import(${JSON.stringify(new URL('../index.ts', import.meta.url).href)}).then(async ({ sqlite }) => {
         await sqlite({ path: ${JSON.stringify(path)} }).workers.announce('other')
         console.log('ready')
         setInterval(() => {}, 1000)
       })`,
    ])
    shell.stderr.pipe(process.stderr)
    let output = ''
    for await (const chunk of shell.stdout) {
      output += chunk
      if (output.includes('ready')) break
    }
    expect(await backend.workers.alive('other')).toBe(true)
    const pid = Number.parseInt(output, 10)
    process.kill(pid, 'SIGKILL')
    // The signal is sent; the process will not survive it, but this thread may be faster.
    await expect.poll(() => backend.workers.alive('other'), { interval: 1 }).toBe(false)
    expect(() => process.kill(pid, 0)).not.toThrow()
    shell.kill('SIGKILL')
    await once(shell, 'exit')
  })

  test('closing the back end leaves a worker that was not released alive as long as its process', async () => {
    const path = freshPath()
    const { workers } = open(path)
    const child = await runModule(
      path,
      `
      const released = await workers.announce('released')
      await workers.announce('left')
      await released.release()
      await backend.close()
      const again = sqlite({ path: ${JSON.stringify(path)} })
      console.log(await again.workers.alive('left'), await again.workers.alive('released'))`,
    )
    expect(child).toMatchObject({ stdout: 'true false\n', stderr: '' })
    expect(await workers.alive('left')).toBe(false)
  })

  test('another process with the same process id is not the worker', async () => {
    const path = freshPath()
    const { workers, row } = await announced(path)
    addWorker(path, row.host, process.pid, `${row.started}0`, Date.now())
    expect(await workers.alive('me')).toBe(true)
    expect(await workers.alive('other')).toBe(false)
  })

  test('a live process whose heartbeats have stopped loses its lease', async () => {
    const path = freshPath()
    const { workers, row } = await announced(path)
    addWorker(path, row.host, row.pid, row.started, Date.now() - 4_000)
    expect(await workers.alive('other')).toBe(true)
    expect(await workers.status('other')).toMatchObject({ alive: true, pid: process.pid, host: hostname() })
    addWorker(path, row.host, row.pid, row.started, Date.now() - 6_000, 'late')
    expect(await workers.alive('late')).toBe(false)
    expect(await workers.status('late')).toMatchObject({ alive: false, pid: process.pid, host: hostname() })
    expect((await workers.status('late'))!.silentMs).toBeGreaterThanOrEqual(6_000)
  })
})

test('on another host or in another container a worker is alive while its lease lasts', async () => {
  const path = freshPath()
  const { workers } = await announced(path)
  addWorker(path, 'elsewhere', 1, 'x', Date.now() - 4_000)
  addWorker(path, 'elsewhere', 1, 'x', Date.now() - 6_000, 'late')
  expect(await workers.alive('other')).toBe(true)
  expect(await workers.alive('late')).toBe(false)
})

test('a lease ends when a heartbeat has not changed for its time, regardless of the wall clock', async () => {
  const path = freshPath()
  const { workers } = open(path, { leaseMs: 1_000 })
  await workers.announce('me')
  addWorker(path, 'elsewhere', 1, 'x', Date.now() + 3_600_000)
  expect(await workers.alive('other')).toBe(true)
  await expect.poll(() => workers.alive('other'), { timeout: 5_000 }).toBe(false)
  tamper(path, `UPDATE workers SET heartbeat = 1 WHERE worker = 'other'`)
  expect(await workers.alive('other')).toBe(true)
  expect(await workers.alive('me')).toBe(true)
})

test.skipIf(process.platform === 'win32')(
  'a stopped process loses its lease, and has it again when it continues',
  async () => {
    const path = freshPath()
    const { workers } = open(path, { leaseMs: 1_000 })
    await workers.announce('me')
    const source = `import { sqlite } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)}
    await sqlite({ path: ${JSON.stringify(path)}, leaseMs: 1_000 }).workers.announce('other')
    console.log('ready')
    setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, [...process.execArgv, '--input-type=module', '-e', source])
    try {
      await once(child.stdout, 'data')
      expect(await workers.alive('other')).toBe(true)
      child.kill('SIGSTOP')
      await expect.poll(() => workers.alive('other'), { timeout: 10_000 }).toBe(false)
      child.kill('SIGCONT')
      await expect.poll(() => workers.alive('other'), { timeout: 10_000 }).toBe(true)
    } finally {
      child.kill('SIGKILL')
    }
  },
)

test.for([{ leaseMs: 10 }, { leaseMs: Number.NaN }, { leaseMs: '5s' as unknown as number }])(
  'a lease that is too short or not a number is refused: %o',
  (options) => {
    expect(() => open(freshPath(), options)).toThrow(/leaseMs must be a number of at least 1000: .* was given/)
  },
)

test('rows that were silent for a day are removed at the next announcement', async () => {
  const path = freshPath()
  const { workers } = await announced(path)
  addWorker(path, 'elsewhere', 1, 'x', Date.now() - 25 * 3_600_000)
  await workers.announce('next')
  const db = new DatabaseSync(path, { readOnly: true })
  expect(
    db
      .prepare('SELECT worker FROM workers ORDER BY worker')
      .all()
      .map((row) => row.worker),
  ).toEqual(['me', 'next'])
  db.close()
})

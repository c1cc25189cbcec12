// What a Redis server and its network do to a replica.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { conformanceEvent, eventsAfter, someKey, summary } from '@oxbow/testing/conformance'
import { afterEach, describe, expect, test } from 'vitest'
import { memory } from '../memory/index.ts'
import { proxyTo } from '../network.fixture.ts'
import { tiered } from '../tiered/index.ts'
import { redis } from './index.ts'
import { drop, missing, open, prefixOf, server } from './open.fixture.ts'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const it of cleanUp.splice(0).reverse()) await it()
})

async function opened() {
  const directory = randomUUID()
  cleanUp.push(() => drop(directory))
  const backend = await open(directory)
  cleanUp.push(() => backend.close())
  return { backend, prefix: prefixOf(directory) }
}

describe.skipIf(missing !== undefined)('B10: an append on Redis', () => {
  test('that the driver sends again because its answer was lost is stored once', async () => {
    const { backend, prefix } = await opened()
    const between = await proxyTo(server)
    cleanUp.push(() => between.close())
    const far = redis({ url: between.url, prefix })
    cleanUp.push(() => far.close())
    await far.check()
    await far.journal.append(someKey, 0, eventsAfter(0, 1), summary)
    const lost = between.loseAnswers()
    const appending = far.journal.append(someKey, 1, eventsAfter(1, 2), summary)
    await lost
    between.cut()
    expect(await appending).toEqual({ ok: true })
    expect(await backend.journal.read(someKey, 0)).toEqual(eventsAfter(0, 3))
  })

  test('that finds no server says so without the password, and can be tried again', async () => {
    const backend = redis({ url: 'redis://ann:hunter2@127.0.0.1:1/3' })
    cleanUp.push(() => backend.close())
    const error = await backend.journal.append(someKey, 0, eventsAfter(0, 1), summary).catch((it: unknown) => it)
    expect(error).toMatchObject({ code: 'storage_busy', retryable: true })
    expect(JSON.stringify([error, String(error), backend.name])).not.toContain('hunter2')
    expect(String(error)).toContain('127.0.0.1:1/3')
  })
})

const noServer = spawnSync('redis-server', ['--version']).error !== undefined

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  return port
}

async function startServer(port: number): Promise<ChildProcess> {
  const child = spawn('redis-server', ['--port', `${port}`, '--save', '', '--appendonly', 'no'], { stdio: 'pipe' })
  cleanUp.push(() => child.kill('SIGKILL'))
  for await (const chunk of child.stdout!) if (String(chunk).includes('Ready to accept connections')) break
  return child
}

describe.skipIf(noServer)('B10: a tiered back end whose hot store', () => {
  test('is away, and comes back empty, loses nothing and reports both', async () => {
    const warnings: string[] = []
    const listen = (it: Error) => warnings.push(it.message)
    process.on('warning', listen)
    cleanUp.push(() => process.off('warning', listen))
    const port = await freePort()
    const first = await startServer(port)
    const backend = tiered({ store: memory(), hot: redis({ url: `redis://127.0.0.1:${port}` }) })
    cleanUp.push(() => backend.close())
    await backend.check()
    await backend.journal.append(someKey, 0, eventsAfter(0, 2), summary)
    await backend.journal.putSnapshot(someKey, { seq: 2, version: 1, data: 'two' })
    first.kill('SIGKILL')
    await once(first, 'exit')
    expect(await backend.journal.append(someKey, 2, [conformanceEvent(3)], summary)).toEqual({ ok: true })
    expect(await backend.journal.getSnapshot(someKey)).toMatchObject({ seq: 2, data: 'two' })
    await backend.queue.enqueue({ key: someKey, reason: 'input' })
    let handed = 0
    const worker = backend.queue.work(async () => {
      handed += 1
    }, 1)
    await expect.poll(() => handed, { timeout: 5_000 }).toBe(1)
    await backend.check()
    await startServer(port)
    await expect
      .poll(
        async () => {
          await backend.journal.getSnapshot(someKey)
          return warnings.filter((it) => it.endsWith('is back.')).length
        },
        { timeout: 10_000 },
      )
      .toBe(1)
    expect(warnings.filter((it) => it.includes('is away'))).toHaveLength(1)
    expect(await backend.journal.getSnapshot(someKey)).toMatchObject({ seq: 2, data: 'two' })
    expect(await backend.journal.read(someKey, 0)).toEqual(eventsAfter(0, 3))
    await worker.stop()
  })
})

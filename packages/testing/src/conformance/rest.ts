import assert from 'node:assert/strict'
import { type ConformanceCheck, eventsAfter, someKey, summary } from './support.ts'

export function snapshotConformance(check: ConformanceCheck): void {
  check('a present snapshot is the one that was put', async ({ journal }) => {
    await journal.append(someKey, 0, eventsAfter(0, 3), summary)
    assert.equal(await journal.getSnapshot(someKey), undefined)
    for (const snapshot of [
      { seq: 1, version: 1, data: '' },
      { seq: 2, version: 1, data: `{"text":"\u2028 'é'"}` },
      { seq: 3, version: 2, data: 'x'.repeat(1_000_000) },
    ]) {
      await journal.putSnapshot(someKey, snapshot)
      const stored = await journal.getSnapshot(someKey)
      if (stored !== undefined) assert.deepEqual(stored, snapshot)
    }
  })

  check('a late snapshot does not replace a newer one of its version', async ({ journal }) => {
    await journal.append(someKey, 0, eventsAfter(0, 3), summary)
    await journal.putSnapshot(someKey, { seq: 3, version: 1, data: 'new' })
    await journal.putSnapshot(someKey, { seq: 2, version: 1, data: 'old' })
    assert.notEqual((await journal.getSnapshot(someKey))?.data, 'old')
  })
}

export function workerConformance(check: ConformanceCheck): void {
  check('a worker is alive from its announcement to its release', async ({ workers }) => {
    assert.equal(await workers.alive('worker-1'), false)
    const one = await workers.announce('worker-1')
    const two = await workers.announce('worker-2')
    assert.equal(await workers.alive('worker-1'), true)
    await one.release()
    assert.equal(await workers.alive('worker-1'), false)
    assert.equal(await workers.alive('worker-2'), true)
    await one.release()
    await two.release()
    assert.equal(await workers.alive('worker-2'), false)
    const again = await workers.announce('worker-1')
    assert.equal(await workers.alive('worker-1'), true)
    await again.release()
  })
}

export function lifeConformance(check: ConformanceCheck): void {
  check('an open back end has a name and passes its check', async (backend) => {
    assert.ok(backend.name.length > 0)
    await backend.check()
  })

  check('a closed back end refuses every call with backend_closed', async (backend) => {
    const { journal, files, workers } = backend
    const announced = await workers.announce('worker-1')
    await backend.close()
    await backend.close()
    const calls: [string, () => Promise<unknown>][] = [
      ['append', () => journal.append(someKey, 0, eventsAfter(0, 1), summary)],
      ['read', () => journal.read(someKey, 0)],
      ['head', () => journal.head(someKey)],
      ['list', () => journal.list({})],
      ['getSnapshot', () => journal.getSnapshot(someKey)],
      ['putSnapshot', () => journal.putSnapshot(someKey, { seq: 1, version: 1, data: '' })],
      ['files.get', () => files.get(someKey, 'a')],
      ['files.put', () => files.put(someKey, 'a', new Uint8Array())],
      ['files.list', () => files.list(someKey, '')],
      ['files.delete', () => files.delete(someKey, 'a')],
      ['announce', () => workers.announce('worker-2')],
      ['alive', () => workers.alive('worker-1')],
      ['enqueue', () => backend.queue.enqueue({ key: someKey, reason: 'late' })],
      ['depth', () => backend.queue.depth()],
      ['acquire', () => backend.locks.acquire('late', 1_000)],
      ['check', () => backend.check()],
    ]
    for (const [name, call] of calls) await assert.rejects(call(), { code: 'backend_closed' }, name)
    await announced.release()
  })

  check('closing waits for the appends that are under way', async (backend) => {
    const appending = Array.from({ length: 20 }, (_, number) =>
      backend.journal.append({ ...someKey, session: `s${number}` }, 0, eventsAfter(0, 1), summary),
    )
    await backend.close()
    assert.ok((await Promise.all(appending)).every((answer) => answer.ok))
  })
}

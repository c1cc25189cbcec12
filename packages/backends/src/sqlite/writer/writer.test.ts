import { DatabaseSync } from 'node:sqlite'
import { eventsAfter, someKey, summary } from '@oxbow/testing/conformance'
import { expect, test } from 'vitest'
import { placeOf } from '../file/place.ts'
import { freshPath, open, runModule } from '../helpers.fixture.ts'
import { startWriter } from './writer.ts'

test('an idle back end that was never closed does not keep its process alive', async () => {
  const path = freshPath()
  const child = await runModule(
    path,
    `
    await journal.append(someKey, 0, eventsAfter(0, 1), summary)
    await workers.announce('me')
    journal.watch(someKey, () => {})
    console.log('idle')`,
  )
  expect(child).toMatchObject({ status: 0, signal: null, stdout: 'idle\n', stderr: '' })
})

test('a back end that was only opened does not keep its process alive', async () => {
  expect(await runModule(freshPath(), '')).toMatchObject({ status: 0, signal: null, stderr: '' })
})

test('a process that ends by itself waits for appends in flight', async () => {
  const path = freshPath()
  const child = await runModule(
    path,
    `
    for (let number = 0; number < 50; number += 1) {
      journal.append({ ...someKey, session: 's' + number }, 0, eventsAfter(0, 2), summary)
    }`,
  )
  expect(child).toMatchObject({ status: 0, stderr: '' })
  const rows = await open(path).journal.list({})
  expect(rows).toHaveLength(50)
  expect(rows.every((row) => row.head === 2)).toBe(true)
})

test('when the thread dies, appends in flight and later ones are rejected, and none hangs', async () => {
  const path = freshPath()
  open(path)
  const dying = new URL(
    `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads'
    parentPort.once('message', () => process.exit(7))`)}`,
  )
  const writer = startWriter(path, placeOf(path), dying)
  const underWay = await Promise.allSettled([writer.write(['probe']), writer.write(['probe'])])
  for (const answer of underWay) {
    expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'storage_error' } })
  }
  await expect(writer.write(['probe'])).rejects.toThrow(/has ended \(exit code 7\)/)
  await writer.close()
})

test('when the thread cannot start, writes are rejected with the reason', async () => {
  const path = freshPath()
  open(path)
  const broken = new URL(`data:text/javascript,${encodeURIComponent(`throw new Error('no thread today')`)}`)
  const writer = startWriter(path, placeOf(path), broken)
  await expect(writer.write(['probe'])).rejects.toMatchObject({
    code: 'storage_error',
    message: expect.stringContaining('no thread today'),
  })
})

test.skipIf(process.platform === 'win32')(
  'a disk that refuses writes fails whole appends, and acknowledged events stay',
  async () => {
    const path = freshPath()
    // The signal of the file size limit is ignored, so that the write itself fails, as on a broken disk.
    const child = await runModule(
      path,
      `
    let seq = 0
    let code
    while (code === undefined) {
      await journal.append(someKey, seq, eventsAfter(seq, 3, 'x'.repeat(5000)), summary).then(
        () => { seq += 3 },
        (error) => { code = error.code },
      )
    }
    console.log(JSON.stringify({ seq, code, head: await journal.head(someKey) }))
    process.exit()`,
      `trap '' XFSZ; ulimit -f 1000`,
    )
    expect(child.stderr).toBe('')
    const { seq, code, head } = JSON.parse(child.stdout)
    expect({ code, head }).toEqual({ code: 'storage_error', head: seq })
    expect(seq).toBeGreaterThan(0)
    expect(await open(path).journal.read(someKey, 0)).toEqual(eventsAfter(0, seq, 'x'.repeat(5000)).slice(0, 500))
  },
)

test('while another process holds the lock, this one continues with everything but writing', async () => {
  const path = freshPath()
  const { journal } = open(path)
  await journal.append(someKey, 0, eventsAfter(0, 1), summary)
  const locked = new DatabaseSync(path)
  locked.exec('BEGIN IMMEDIATE')
  let settled = false
  const appending = journal.append(someKey, 1, eventsAfter(1, 1), summary).finally(() => {
    settled = true
  })
  for (let turn = 0; turn < 20; turn += 1) {
    expect(await journal.head(someKey)).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  expect(settled).toBe(false)
  locked.exec('COMMIT')
  locked.close()
  expect(await appending).toEqual({ ok: true })
})

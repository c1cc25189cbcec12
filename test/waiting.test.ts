// X5, B7: tasks that wait for people, in separate processes.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { fill, idleCpu, post, startWaiting, type WaitingService } from '../bench/waiting/service.ts'

async function setting() {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-waiting-'))
  const model = await scriptedModel({
    scripts: {
      '*': ({ messages }) => (messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : { calls: [{ name: 'pay' }] }),
    },
  })
  const running: WaitingService[] = []
  onTestFinished(async () => {
    await Promise.all(running.map((it) => it.stop()))
    await model.close()
    rmSync(directory, { recursive: true, force: true })
  })
  /** On a store of its own by this name, or on the one that all share. */
  return async (store = 'shared') => {
    const service = await startWaiting({ file: join(directory, `${store}.db`), modelUrl: model.url })
    running.push(service)
    return service
  }
}

/** Milliseconds of CPU per second beyond a service without tasks. Measured: less than 2, on a busy machine. */
const MORE_CPU = 15
/** Measured: 0.4 s on that machine, most of it the first use of the code. */
const START_MS = 5_000

test('500 tasks that wait for people cost no CPU, in the process that made them and in one that starts with them', async () => {
  const start = await setting()
  const without = await start('empty')
  const first = await start()
  const ids = await fill(first, 500)
  expect(new Set(ids).size).toBe(500)
  const second = await start()
  // The process cleans up first, so the first seconds are not idle.
  await idleCpu(first, 2_000)
  // All in the same window, whatever else the machine does in it.
  const [empty, filled, restarted] = await Promise.all([without, first, second].map((it) => idleCpu(it, 6_000)))
  console.log(`CPU in ms per second: ${JSON.stringify({ empty, filled, restarted, listenMs: second.listenMs })}`)
  expect(filled).toBeLessThan(empty! + MORE_CPU)
  expect(restarted).toBeLessThan(empty! + MORE_CPU)
  expect(second.listenMs).toBeLessThan(START_MS)
  // They do wait.
  const answer = await fetch(`${second.url}/metrics`)
  expect(await answer.text()).toContain('oxbow_sessions_open{status="waiting"} 500')
}, 120_000)

test('one approval decided by two processes at once is decided once; the other receives that decision', async () => {
  const start = await setting()
  const [left, right] = [await start(), await start()]
  const ids = await fill(left, 100)
  const winners = new Set<string>()
  for (const id of ids) {
    const [one, two] = await Promise.all([
      post(left.url, `/api/approvals/${id}`, { verdict: 'approved', reason: 'left' }),
      post(right.url, `/api/approvals/${id}`, { verdict: 'denied', reason: 'right' }),
    ])
    expect([one.status, two.status].toSorted()).toEqual([200, 409])
    const [won, lost] = one.status === 200 ? ([one, two] as const) : ([two, one] as const)
    const decided = { status: one.status === 200 ? 'approved' : 'denied', resolution: expect.anything() }
    expect(won.body).toMatchObject(decided)
    expect(lost.body).toMatchObject({ error: { code: 'approval_resolved' }, approval: decided })
    winners.add(one.status === 200 ? 'left' : 'right')
    // Both report the same afterwards.
    for (const { url } of [left, right])
      expect(await (await fetch(`${url}/api/approvals/${id}`)).json()).toMatchObject({ status: decided.status })
  }
  console.log(`won: ${[...winners].join(', ')}`)
}, 60_000)

// Sessions of many events, and many sessions: what is read for one of them is bounded, and nothing holds up the
// process.
import { memory } from '@oxbow/backends'
import { offline } from '@oxbow/models'
import { until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { agent, type Backend, createEngine, type Event, type SessionKey } from '../index.ts'

const helper = agent({ name: 'helper', model: offline(), instructions: '' })
const keyOf = (session: string): SessionKey => ({ tenant: 'default', user: 'ann', session })

/** Gives a session `turns` more turns of two events, each with one message. */
async function filled(backend: Backend, session: string, turns: number): Promise<void> {
  const key = keyOf(session)
  const named = { name: 'helper', version: '1' }
  const principal = { user: 'ann', tenant: 'default' }
  const head = await backend.journal.head(key)
  const bodies: object[] = head === 0 ? [{ type: 'session.opened', schemaVersion: 1, key, agent: named }] : []
  for (let turn = 1; turn <= turns; turn++) {
    const turnId = `t${head + turn}`
    const input = [{ type: 'text', text: 'Hi' }]
    bodies.push({ type: 'turn.started', turnId, input, surface: 'library', principal, agent: named, options: {} })
    bodies.push({ type: 'turn.cancelled', turnId, reason: 'over' })
  }
  const events = bodies.map((body, index) => ({ ...body, seq: head + index + 1, at: 1 }) as Event)
  await backend.journal.append(key, head, events, { status: 'idle', agent: 'helper', title: 'Hi' })
}

function counted(backend: Backend) {
  const reads: number[] = []
  const listed: number[] = []
  const journal: Backend['journal'] = {
    ...backend.journal,
    async read(...args) {
      const page = await backend.journal.read(...args)
      reads.push(page.length)
      return page
    },
    async list(query) {
      const page = await backend.journal.list(query)
      listed.push(page.length)
      return page
    },
  }
  const engine = createEngine({ backend: { ...backend, journal }, agents: [helper] })
  onTestFinished(() => engine.stop(0))
  return { engine, reads, listed }
}

describe('a session of many events', () => {
  test('lets others have their turn while it is read', async () => {
    const backend = memory()
    await filled(backend, 's', 2_500)
    const { engine } = counted(backend)
    let ticks = 0
    let reading = true
    const tick = () => {
      ticks += 1
      if (reading) setImmediate(tick)
    }
    setImmediate(tick)
    const { seq } = await engine.session({ user: 'ann', session: 's' }).state()
    reading = false
    expect(seq).toBe(5_001)
    expect(ticks).toBeGreaterThanOrEqual(10)
  })

  test('that was read in many pages begins with a snapshot in the next process', async () => {
    const backend = memory()
    await filled(backend, 's', 5_000)
    const first = counted(backend)
    const state = await first.engine.session({ user: 'ann', session: 's' }).state()
    await until(() => backend.journal.getSnapshot(keyOf('s')))
    const second = counted(backend)
    expect(await second.engine.session({ user: 'ann', session: 's' }).state()).toEqual(state)
    // One event is read again, to see that the journal is still the same.
    expect(first.reads.filter((it) => it > 1)).toHaveLength(20)
    expect(second.reads.filter((it) => it > 1)).toEqual([])
    // Not twice as many, and yet too many to fold again.
    await filled(backend, 's', 4_500)
    await counted(backend).engine.session({ user: 'ann', session: 's' }).state()
    await until(async () => (await backend.journal.getSnapshot(keyOf('s')))?.seq === 19_001)
  })

  test('and of more messages than are quickly parsed has no snapshot', async () => {
    const backend = memory()
    await filled(backend, 'long', 20_001)
    await filled(backend, 'later', 5_000)
    const { engine } = counted(backend)
    for (const session of ['long', 'later']) await engine.session({ user: 'ann', session }).state()
    await until(() => backend.journal.getSnapshot(keyOf('later')))
    expect(await backend.journal.getSnapshot(keyOf('long'))).toBeUndefined()
  })

  test('gives a page of its events without reading the others', async () => {
    const backend = memory()
    await filled(backend, 's', 1_000)
    const { engine, reads } = counted(backend)
    const page = await engine.session({ user: 'ann', session: 's' }).events(1_000)
    expect([page[0]?.seq, reads]).toEqual([1_001, [500]])
  })
})

test('an engine starts without reading the sessions in which nothing is to be done', async () => {
  const backend = memory()
  for (let session = 0; session < 300; session++) await filled(backend, `s${session}`, 1)
  const { engine, reads, listed } = counted(backend)
  await engine.start()
  expect(reads).toEqual([])
  expect(listed.filter((it) => it > 0)).toEqual([])
})

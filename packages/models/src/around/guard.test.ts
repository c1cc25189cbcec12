import { gate, type Reply } from '@oxbow/testing'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ask, askInVain, modelAt, serve, text } from '../asking.fixture.ts'
import { guardModel } from './guard.ts'
import { requestQueue } from './queue.ts'

const down: Reply = { status: 503 }
const failing = { minimum: 2 }

// The breaker reads the clock and sets no timer.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})
const tenMinutesLater = () => vi.setSystemTime(Date.now() + 600_000)

describe('B1, B17: a model that fails', () => {
  test('opens its breaker, is probed with one request, and recovers with its first word', async () => {
    const states: string[] = []
    const held = gate()
    const probed = gate()
    const server = await serve(
      down,
      down,
      { beforeHeaders: probed, text: 'one two', hold: { atChunk: 1, gate: held } },
      { text: 'more' },
    )
    const model = guardModel(modelAt(server), { breaker: failing, onBreaker: (_, state) => states.push(state) })
    await askInVain(model)
    await askInVain(model)
    expect(model.health()).toMatchObject({
      breaker: 'open',
      answered: 0,
      failed: 2,
      lastFailure: { code: 'overloaded' },
    })
    const refused = { code: 'overloaded', retryable: true, details: { breaker: 'open' } }
    const { error } = await askInVain(model)
    expect(error).toMatchObject(refused)
    expect(error.message).toMatch(/Try again in \d+ s\.$/)
    expect(error.retryAfterMs).toBeGreaterThan(0)
    expect(server.requests).toHaveLength(2)

    tenMinutesLater()
    const probe = ask(model)
    await expect.poll(() => server.requests.length).toBe(3)
    expect(model.health().breaker).toBe('half_open')
    expect((await askInVain(model)).error).toMatchObject(refused)
    probed.open()
    await expect.poll(() => model.health().breaker).toBe('closed')
    expect(text((await ask(model)).reply)).toBe('more')
    held.open()
    expect(text((await probe).reply)).toBe('one two')
    expect(states).toEqual(['open', 'half_open', 'closed'])
    expect(model.health()).toMatchObject({ answered: 2, failed: 2, running: 0, waiting: 0 })
  })

  test('stays behind its breaker when the probe fails or is cancelled', async () => {
    const never = gate()
    const server = await serve(down, down, down, { beforeHeaders: never })
    const model = guardModel(modelAt(server), { breaker: failing })
    await askInVain(model)
    await askInVain(model)
    tenMinutesLater()
    expect((await askInVain(model)).error.status).toBe(503)
    expect(model.health().breaker).toBe('open')
    tenMinutesLater()
    const stop = new AbortController()
    const cancelled = askInVain(model, {}, stop.signal)
    await expect.poll(() => server.requests.length).toBe(4)
    stop.abort()
    expect((await cancelled).error.code).toBe('cancelled')
    expect(model.health()).toMatchObject({ breaker: 'open', failed: 3 })
    never.open()
  })

  test.each([
    ['a wrong request', { status: 400 }],
    ['a wrong key', { status: 401 }],
    ['too many requests', { status: 429 }],
  ])('%s does not count against the model', async (_, reply) => {
    const server = await serve(reply, reply, reply, { text: 'hello' })
    const model = guardModel(modelAt(server), { breaker: failing })
    for (let i = 0; i < 3; i++) await askInVain(model)
    expect(text((await ask(model)).reply)).toBe('hello')
    expect(model.health()).toMatchObject({ breaker: 'closed', answered: 1, failed: 3 })
  })
})

test('a dead provider only delays its own requests', async () => {
  const held = gate()
  const dead = await serve({ beforeHeaders: held }, { beforeHeaders: held })
  const queue = requestQueue({ concurrency: 1 })
  const first = guardModel(modelAt(dead), { queue })
  const second = guardModel(modelAt(dead, { model: 'other' }), { queue })
  const healthy = guardModel(modelAt(await serve({ text: 'here' })))
  const waiting = [ask(first), ask(second)]
  await expect.poll(() => [second.health().running, second.health().waiting]).toEqual([1, 1])
  expect(text((await ask(healthy)).reply)).toBe('here')
  expect(dead.requests).toHaveLength(1)
  held.open()
  await Promise.all(waiting)
  expect([first.health().running, first.health().answered, second.health().answered]).toEqual([0, 1, 1])
})

describe('an open breaker and the queue of its provider', () => {
  test('a refused request does not queue or count against the rate limit', async () => {
    const held = gate()
    const server = await serve(down, down)
    const queue = requestQueue({ concurrency: 1, requestsPerMinute: 60 })
    const broken = guardModel(modelAt(server), { queue, breaker: failing })
    await askInVain(broken)
    await askInVain(broken)
    const busy = guardModel(modelAt(await serve({ beforeHeaders: held, text: 'slow' })), { queue })
    const slow = ask(busy)
    await expect.poll(() => busy.health().running).toBe(1)
    for (let n = 0; n < 100; n++) expect((await askInVain(broken)).error.details).toEqual({ breaker: 'open' })
    expect(broken.health()).toMatchObject({ failed: 2, waiting: 0 })
    held.open()
    await slow
    // A burst of three out of sixty is allowed, and three were made.
    expect(text((await ask(guardModel(modelAt(await serve({ text: 'next' })), { queue }))).reply)).toBe('next')
  })

  test('a request queued while it opens is refused in its turn, without a call to the model', async () => {
    const held = gate()
    const server = await serve({ beforeHeaders: held, status: 503 })
    const model = guardModel(modelAt(server), { queue: requestQueue({ concurrency: 1 }), breaker: { minimum: 1 } })
    const asked = Array.from({ length: 10 }, () => askInVain(model))
    await expect.poll(() => server.requests.length).toBe(1)
    held.open()
    const errors = (await Promise.all(asked)).map(({ error }) => error.details?.breaker)
    expect(errors).toEqual([undefined, ...Array.from({ length: 9 }, () => 'open')])
    expect(server.requests).toHaveLength(1)
    expect(model.health()).toMatchObject({ failed: 1, running: 0, waiting: 0 })
  })

  test('a full queue does not count against the model', async () => {
    const held = gate()
    const server = await serve({ beforeHeaders: held, text: 'hello' })
    const model = guardModel(modelAt(server), { queue: requestQueue({ concurrency: 1, waiting: 0 }), breaker: failing })
    const first = ask(model)
    await expect.poll(() => server.requests.length).toBe(1)
    for (let n = 0; n < 5; n++) expect((await askInVain(model)).error.details).toEqual({ queue: true })
    expect(model.health()).toMatchObject({ breaker: 'closed', failed: 0 })
    held.open()
    await first
  })
})

test('a cancelled probe does not lengthen the pause: the next request is a probe', async () => {
  const never = gate()
  const server = await serve(down, down, { beforeHeaders: never }, { beforeHeaders: never }, { text: 'back' })
  const model = guardModel(modelAt(server), { breaker: failing })
  await askInVain(model)
  await askInVain(model)
  tenMinutesLater()
  for (const requests of [3, 4]) {
    const stop = new AbortController()
    const probe = askInVain(model, {}, stop.signal)
    await expect.poll(() => server.requests.length).toBe(requests)
    stop.abort()
    expect((await probe).error.code).toBe('cancelled')
    expect(model.health()).toMatchObject({ breaker: 'open', failed: 2 })
  }
  expect(text((await ask(model)).reply)).toBe('back')
  expect(model.health().breaker).toBe('closed')
  never.open()
})

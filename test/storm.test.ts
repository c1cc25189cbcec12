// A provider with random failures, a fallback, and users of a third provider who must not notice.
import { memory } from '@oxbow/backends'
import { agent, createEngine, type Event } from '@oxbow/core'
import { type BreakerState, guardModel, openaiChat, requestQueue, withFallbacks } from '@oxbow/models'
import { gate, type Reply, scriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'

const SESSIONS = 50
const TURNS = 4
const MARK = /mark-\d+-\d+/

const key = (user: string, n: number) => ({ tenant: 't', user, session: `s${n}` })

const seeded = (seed: number) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

/** Every way to fail. The first six before any output, the others with a part of an answer shown. */
const FAULTS: readonly ((text: string) => Reply)[] = [
  () => ({ status: 500, body: 'oops' }),
  () => ({ status: 503 }),
  () => ({ status: 429, headers: { 'retry-after': '0.01' } }),
  () => ({ beforeFirstByte: 60_000 }),
  () => ({ cutAfterChunks: 0, text: 'never seen' }),
  () => ({ raw: '<html>gateway</html>' }),
  (text) => ({ text, finishReason: null, done: false }),
  (text) => ({ text, error: { message: 'broken', code: 500 } }),
  (text) => ({ text, silentAfterChunks: 1 }),
  (text) => ({ text, garbageAt: 1 }),
]

test('B1: 50 sessions in a storm: none stuck, none answered twice, the breaker opens and closes', {
  timeout: 60_000,
}, async () => {
  const random = seeded(7)
  let storm = true
  const markOf = (messages: readonly { role: string; content?: unknown }[]): string =>
    String(messages.findLast((it) => it.role === 'user')?.content).match(MARK)![0]
  const answer = (by: string, messages: readonly { role: string; content?: unknown }[]): string =>
    `${by} answers ${markOf(messages)} at length`

  const wild = await scriptedModel({
    scripts: {
      '*': ({ messages }) => {
        const text = answer('wild', messages)
        return storm && random() < 0.8 ? FAULTS[Math.floor(random() * FAULTS.length)]!(text) : { text }
      },
    },
  })
  const spare = await scriptedModel({ scripts: { '*': ({ messages }) => ({ text: answer('spare', messages) }) } })

  const states: BreakerState[] = []
  const at = (provider: string, { url }: { url: string }, timeouts = {}) =>
    openaiChat({ provider, model: 'm', baseUrl: url, timeouts })
  const wildGuarded = guardModel(at('wild', wild, { firstByteMs: 200, idleMs: 200 }), {
    queue: requestQueue({ concurrency: 20 }),
    breaker: { openMs: 100 },
    onBreaker: (_, state) => states.push(state),
  })
  const spareGuarded = guardModel(at('spare', spare), { queue: requestQueue({ concurrency: 20 }) })
  const stormy = agent({
    name: 'stormy',
    model: withFallbacks(wildGuarded, { fallbacks: [{ model: spareGuarded }], retry: { baseMs: 5 } }),
    instructions: 'Answer.',
  })
  const backend = memory()
  const engine = createEngine({ backend, agents: [stormy] })
  await engine.start()
  onTestFinished(async () => {
    await engine.stop(0)
    await backend.close()
    for (const server of [wild, spare]) await server.close()
  })

  const outcomes: string[] = []
  const inTheStorm = async (n: number): Promise<void> => {
    const session = engine.session(key('u', n), { agent: 'stormy' })
    for (let turn = 0; turn < TURNS; turn++) {
      const mark = `mark-${n}-${turn}`
      try {
        const { text } = await session.run(`Question ${mark}`, { turnId: mark })
        expect(text.match(MARK)?.[0] ?? mark).toBe(mark)
        outcomes.push('answered')
      } catch (error) {
        // Only an answer that had been shown in part is lost, and it is reported.
        expect(error).toMatchObject({ code: expect.stringMatching(/^(stream_cut|provider_error|idle_timeout)$/) })
        outcomes.push('broke off')
      }
    }
  }
  await Promise.all(Array.from({ length: SESSIONS }, (_, n) => inTheStorm(n)))
  expect(outcomes).toHaveLength(SESSIONS * TURNS)
  expect(outcomes.filter((it) => it === 'answered').length).toBeGreaterThan(SESSIONS)
  expect(states).toContain('open')

  let spareAnswers = 0
  let attempts = 0
  for (let n = 0; n < SESSIONS; n++) {
    const events: Event[] = await engine.session(key('u', n)).events()
    for (let turn = 0; turn < TURNS; turn++) {
      const mine = events.filter((it) => 'turnId' in it && it.turnId === `mark-${n}-${turn}`)
      expect(mine.filter((it) => /^turn\.(finished|failed|cancelled)$/.test(it.type))).toHaveLength(1)
      const answers = mine.filter((it) => it.type === 'model.finished')
      expect(answers).toHaveLength(1)
      if (answers[0]!.message.model === 'spare:m') spareAnswers++
      attempts += answers[0]!.attempts?.length ?? 0
    }
  }
  expect(spareAnswers).toBeGreaterThan(0)
  expect(attempts).toBeGreaterThan(SESSIONS)

  // The storm is over: the breaker finds out by itself.
  storm = false
  const after = engine.session(key('u', SESSIONS), { agent: 'stormy' })
  let turn = 0
  await expect
    .poll(async () => (await after.run(`Question mark-${SESSIONS}-${turn++}`)).text, { timeout: 20_000 })
    .toContain('wild answers')
  expect(wildGuarded.health().breaker).toBe('closed')
  expect(states.filter((it) => it === 'closed').length).toBeGreaterThan(0)
  expect([wildGuarded.health(), spareGuarded.health()]).toMatchObject([
    { running: 0, waiting: 0 },
    { running: 0, waiting: 0 },
  ])
})

test('while one provider is silent, sessions of another are answered', async () => {
  const held = gate()
  const dead = await scriptedModel({ scripts: { '*': { always: { beforeHeaders: held, text: 'late' } } } })
  const calm = await scriptedModel({ scripts: { '*': { always: { text: 'at once' } } } })
  const at = (provider: string, { url }: { url: string }) =>
    guardModel(openaiChat({ provider, model: 'm', baseUrl: url }), { queue: requestQueue({ concurrency: 10 }) })
  const backend = memory()
  const engine = createEngine({
    backend,
    agents: [
      agent({ name: 'stuck', model: at('dead', dead), instructions: 'x' }),
      agent({ name: 'free', model: at('calm', calm), instructions: 'x' }),
    ],
  })
  await engine.start()
  onTestFinished(async () => {
    held.open()
    await engine.stop(0)
    await backend.close()
    await Promise.all([dead.close(), calm.close()])
  })
  const run = (name: string, n: number) => engine.session(key(name, n), { agent: name }).run('Go.')
  const stuck = Array.from({ length: 50 }, (_, n) => run('stuck', n))
  await expect.poll(() => dead.requests.length).toBe(10)
  // All of these end while none of those has: nothing is shared between the two.
  const free = await Promise.all(Array.from({ length: 50 }, (_, n) => run('free', n)))
  expect(free.map(({ text }) => text)).toEqual(Array.from({ length: 50 }, () => 'at once'))
  expect(dead.requests).toHaveLength(10)
  held.open()
  expect((await Promise.all(stuck)).every(({ text }) => text === 'late')).toBe(true)
})

// Properties of the fold, over histories that the engine really made.
import { eventsOf } from '@oxbow/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assertWhole, bench, call, echo } from '../core.fixture.ts'
import { DEFAULT_LIMITS, type Event, externalTool, tool } from '../index.ts'
import { emptyState, evolve, statusOf } from '../internal.ts'
import { decide } from '../turn/decide.ts'

const write = tool({ name: 'write', description: 'w', effects: ['write'], input: {}, run: () => 'written' })
const fails = tool({
  name: 'fails',
  description: 'f',
  effects: ['read'],
  input: {},
  run: () => {
    throw new Error('no')
  },
})
const ask = externalTool({ name: 'ask', description: 'a', effects: ['read'], input: {} })

const reply = fc.oneof(
  { weight: 4, arbitrary: fc.record({ text: fc.constantFrom('hello', 'a b c', '') }) },
  {
    weight: 4,
    arbitrary: fc
      .array(
        fc.constantFrom<[string, unknown]>(
          ['echo', { text: 'x' }],
          ['echo', '{"te'],
          ['write', {}],
          ['fails', {}],
          ['ask', {}],
          ['missing', {}],
        ),
        { minLength: 1, maxLength: 4 },
      )
      .map((calls) => call(...calls.flat())),
  },
  { weight: 1, arbitrary: fc.constant({ text: 'cut off', finishReason: null, done: false }) },
  { weight: 1, arbitrary: fc.constant({ status: 500, body: {} }) },
)

const history = async (replies: readonly ReturnType<typeof call>[]): Promise<Event[]> => {
  const queue = [...replies]
  const { session } = await bench(() => queue.shift() ?? { text: 'end' }, {
    tools: [echo, write, fails, ask],
    allow: ['write'],
    limits: { maxSteps: 4 },
  })
  for (const input of ['one', 'two']) {
    const turnId = `t-${input}`
    for (;;) {
      const result = await session.run(input, { turnId }).catch(() => undefined)
      if (result?.status !== 'paused') break
      await session.resolve(result.pending[0]!.callId, { content: 'answer' })
    }
  }
  return eventsOf(session)
}

test('X1: every history has dense numbers, one end per turn and per call, and folds the same from any snapshot', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(reply, { minLength: 1, maxLength: 8 }), async (replies) => {
      const events = await history(replies)
      assertWhole(events)
      const whole = events.reduce(evolve, emptyState)
      expect(statusOf(whole)).toBe('idle')
      for (let cut = 0; cut <= events.length; cut += 3) {
        const half = events.slice(0, cut).reduce(evolve, emptyState)
        const restored = JSON.parse(JSON.stringify(half)) as typeof half
        expect(events.slice(cut).reduce(evolve, restored)).toEqual(whole)
      }
      // Calls and results stay paired, however a turn has ended.
      const blocks = whole.messages.flatMap((it) => it.blocks)
      const called = blocks.filter((it) => it.type === 'call').map((it) => it.callId)
      const answered = blocks.filter((it) => it.type === 'result').map((it) => it.callId)
      expect(answered).toEqual(called)
      expect(whole.messages.every((it) => it.blocks.length > 0)).toBe(true)
    }),
    { numRuns: 40 },
  )
})

test('the fold and the decision change nothing that they are given', async () => {
  const freeze = <T>(value: T): T => {
    if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
      Object.freeze(value)
      for (const it of Object.values(value)) freeze(it)
    }
    return value
  }
  const events = await history([call('echo', { text: 'x' }, 'ask', {}), call('fails', {}), { text: 'ok' }])
  let state = freeze(emptyState)
  for (const event of freeze(events)) {
    state = freeze(evolve(state, event))
    if (state.turn !== undefined) decide(state.turn, DEFAULT_LIMITS)
  }
  expect(state.finished).toHaveLength(2)
})

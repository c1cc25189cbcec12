import { eventsOf } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { assertWhole, bench, call, echo, ofType } from '../core.fixture.ts'
import type { Capability } from '../index.ts'

/** Finds each "wrong" in an answer. */
const strict: Capability = {
  name: 'strict',
  review: ({ text }) =>
    text.includes('wrong')
      ? { code: 'is_wrong', message: 'It is wrong.', items: ['wrong'], correction: 'Say it right.' }
      : undefined,
}
const capabilities = [strict]

describe('the last answer of a turn is reviewed', () => {
  test('nothing is stored of one that is right', async () => {
    const { session } = await bench([{ text: 'right' }], { capabilities })
    await session.run('Go.')
    expect((await eventsOf(session)).map((it) => it.type)).not.toContain('reply.reviewed')
  })

  test('a fault is reported to the model once; a remaining fault is stored and reported', async () => {
    const { session, server } = await bench([{ text: 'wrong' }, { text: 'wrong again' }], { capabilities })
    const { text, status } = await session.run('Go.')
    expect([text, status]).toEqual(['wrong again', 'finished'])
    expect(server.requests.map((it) => it.messages.at(-1)?.content)).toEqual(['Go.', 'Say it right.'])
    const events = await eventsOf(session)
    expect(ofType(events, 'reply.reviewed')).toMatchObject([
      { step: 1, code: 'is_wrong', items: ['wrong'], correction: 'Say it right.' },
      { step: 2, code: 'is_wrong' },
    ])
    expect(ofType(events, 'reply.reviewed')[1]).not.toHaveProperty('correction')
    assertWhole(events)
  })

  test('the next turn may correct again', async () => {
    const { session } = await bench([{ text: 'wrong' }, { text: 'right' }, { text: 'wrong' }, { text: 'right' }], {
      capabilities,
    })
    await session.run('Go.')
    expect((await session.run('Go on.')).text).toBe('right')
    expect(await eventsOf(session, 'reply.reviewed')).toHaveLength(2)
  })

  test('text before a call is not the last answer', async () => {
    const { session } = await bench([{ ...call('echo', { text: 'a' }), text: 'wrong' }, { text: 'right' }], {
      capabilities,
      tools: [echo],
    })
    await session.run('Go.')
    expect(await eventsOf(session, 'reply.reviewed')).toEqual([])
  })

  test('a turn without steps or budget for another request ends with what it has', async () => {
    for (const limits of [{ maxSteps: 1 }, { budget: { tokens: 1 } }]) {
      const replies = [{ ...call('echo', { text: 'a' }) }, { text: 'wrong' }]
      const steps = 'maxSteps' in limits
      const { session } = await bench(steps ? replies : [{ text: 'wrong' }], { capabilities, tools: [echo], limits })
      expect((await session.run('Go.')).status).toBe('finished')
      const [reviewed, ...more] = await eventsOf(session, 'reply.reviewed')
      expect([reviewed!.correction, more]).toEqual([undefined, []])
    }
  })

  test('a structured answer is refused and requested again', async () => {
    const { session, server } = await bench([{ text: '{"is":"wrong"}' }, { text: '{"is":"right"}' }], { capabilities })
    const { output } = await session.run('Go.', { output: z.object({ is: z.string() }) })
    expect(output).toEqual({ is: 'right' })
    expect(server.requests[1]?.messages.at(-1)?.content).toBe(
      'Say it right. Answer again with one JSON value and nothing else.',
    )
  })
})

import { eventsOf } from '@oxbow/testing'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { assertWhole, bench, call, echo } from '../core.fixture.ts'
import { externalTool, isEvent } from '../index.ts'

describe('H4: a structured answer', () => {
  const output = z.object({ total: z.number().int(), on: z.string() })

  test('is validated, typed, and stored', async () => {
    const { session, server } = await bench(
      [call('echo', { text: 'a' }), { text: '```json\n{"total":3,"on":"x"}\n```' }],
      {
        tools: [echo],
      },
    )
    const result = await session.run('Sum.', { output })
    expect(result.output?.total).toBe(3)
    expect(server.requests[0]?.body.response_format).toMatchObject({ type: 'json_schema' })
    expect((await session.result(result.turnId))?.output).toEqual({ total: 3, on: 'x' })
  })

  test('that is invalid is requested again, with the reason', async () => {
    const { session, server } = await bench([
      { text: 'three' },
      { text: '{"total":"3"}' },
      { text: '{"total":3,"on":"x"}' },
    ])
    const result = await session.run('Sum.', { output })
    expect(result.output).toEqual({ total: 3, on: 'x' })
    expect(server.requests[1]?.messages.at(-1)?.content).toContain('not valid JSON')
    expect(server.requests[2]?.messages.at(-1)?.content).toContain("must have required property 'on'")
    assertWhole(await eventsOf(session))
  })

  test('that stays wrong fails the turn after three attempts', async () => {
    const { session, server } = await bench(() => ({ text: 'no' }))
    await expect(session.run('Sum.', { output })).rejects.toMatchObject({ code: 'output_invalid' })
    expect(server.requests).toHaveLength(3)
    assertWhole(await eventsOf(session))
  })

  test("is turned into the caller's own type", async () => {
    const date = z.object({ at: z.iso.date().transform((it) => new Date(it)) })
    const { session } = await bench([{ text: '{"at":"2026-01-02"}' }])
    const { output: parsed } = await session.run('When?', { output: date })
    expect(parsed?.at.getUTCFullYear()).toBe(2026)
  })
})

test('H4: a turn that stops or pauses before its answer resolves without an output, and its type says so', async () => {
  const output = z.object({ total: z.number() })
  const stopped = await bench([call('echo', { text: 'a' })], { tools: [echo], stopWhen: () => true })
  const result = await stopped.session.run('Sum.', { output })
  expectTypeOf(result.output).toEqualTypeOf<{ total: number } | undefined>()
  expect(result).toMatchObject({ status: 'finished', reason: 'stopped', output: undefined })
  const asks = { ...echo, effects: ['write'] as const }
  const paused = await bench([call('echo', { text: 'a' })], { tools: [asks] })
  const stream = paused.session.stream('Sum.', { output })
  expectTypeOf((await stream.result).output).toEqualTypeOf<{ total: number } | undefined>()
  expect(await stream.result).toMatchObject({ status: 'paused', output: undefined })
})

describe('H4: an external tool', () => {
  const ask = externalTool({
    name: 'ask_client',
    description: 'Asks the client.',
    effects: ['read'],
    input: z.object({ question: z.string() }),
  })

  test('pauses the turn, and the result comes back by call id', async () => {
    const { session, server } = await bench([call('ask_client', { question: 'colour?' }), { text: 'Blue it is.' }], {
      tools: [ask],
    })
    const paused = await session.run('Go.', { turnId: 't1' })
    expect(paused).toMatchObject({ status: 'paused', reason: 'external' })
    const [pending] = paused.pending
    expect(pending).toMatchObject({ tool: 'ask_client', arguments: { question: 'colour?' } })
    await session.resolve(pending!.callId, { content: 'blue' })
    expect((await session.wait('t1')).text).toBe('Blue it is.')
    await expect(session.wait('t2')).rejects.toMatchObject({ code: 'unknown_turn' })
    expect(server.requests[1]?.messages.at(-1)?.content).toBe('blue')
    assertWhole(await eventsOf(session))
  })

  test('of which there are several waits for all of them, in any order', async () => {
    const { session, server } = await bench(
      [call('ask_client', { question: '1' }, 'echo', { text: 'e' }, 'ask_client', { question: '2' }), { text: 'ok' }],
      { tools: [ask, echo] },
    )
    const { pending } = await session.run('Go.', { turnId: 't1' })
    expect(pending).toHaveLength(2)
    await session.resolve(pending[1]!.callId, { content: 'two' })
    expect(await session.run('Go.', { turnId: 't1' })).toMatchObject({
      status: 'paused',
      pending: [{ callId: pending[0]!.callId }],
    })
    await session.resolve(pending[0]!.callId, { status: 'error', content: 'no idea' })
    expect((await session.run('Go.', { turnId: 't1' })).status).toBe('finished')
    const results = server.requests[1]!.messages.filter((it) => it.role === 'tool').map((it) => it.content)
    expect(results).toEqual(['no idea', 'echo e', 'two'])
  })

  test('takes one result only, and only for calls that wait', async () => {
    const { session } = await bench([call('ask_client', { question: '1' }), { text: 'ok' }], { tools: [ask] })
    const { pending } = await session.run('Go.')
    await session.resolve(pending[0]!.callId, { content: 'one' })
    await expect(session.resolve(pending[0]!.callId, { content: 'two' })).rejects.toMatchObject({
      code: expect.stringMatching(/call_resolved|unknown_call/),
    })
    await expect(session.resolve('call_nobody', { content: 'x' })).rejects.toMatchObject({ code: 'unknown_call' })
  })

  test('is resumed by another process', async () => {
    const { session, another } = await bench([call('ask_client', { question: '1' }), { text: 'ok' }], { tools: [ask] })
    const { pending } = await session.run('Go.', { turnId: 't1' })
    const other = another().session({ user: 'ann', session: 's1' })
    await other.resolve(pending[0]!.callId, { content: 'one' })
    expect((await other.run('Go.', { turnId: 't1' })).text).toBe('ok')
    assertWhole(await eventsOf(session))
  })

  test('can be interrupted while it waits', async () => {
    const { session } = await bench([call('ask_client', { question: '1' }), { text: 'next' }], { tools: [ask] })
    const { turnId } = await session.run('Go.')
    expect(await session.interrupt()).toBe(turnId)
    const items = await Array.fromAsync(session.stream('Go.', { turnId }))
    expect(items.filter(isEvent).at(-1)?.type).toBe('turn.cancelled')
    expect((await eventsOf(session, 'call.finished'))[0]?.status).toBe('cancelled')
    expect((await session.run('And now?')).text).toBe('next')
    assertWhole(await eventsOf(session))
  })
})

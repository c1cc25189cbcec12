// A turn that learns nothing, a turn that kills its process, and clocks that jump.
import { eventsOf, gate } from '@oxbow/testing'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { assertWhole, bench, call, echo, resultsSent } from '../core.fixture.ts'
import { needsApproval, tool } from '../index.ts'

describe('B11: the same call with the same result', () => {
  test('is reported to the model the third time, and after five the model has to answer', async () => {
    const { session, server } = await bench(
      (request) => (request.body.tools === undefined ? { text: 'I give up.' } : call('echo', { text: 'a' })),
      { tools: [echo], limits: { maxSteps: 60 } },
    )
    expect(await session.run('Go.')).toMatchObject({ reason: 'repetition', text: 'I give up.' })
    expect(server.requests).toHaveLength(6)
    const told = (await eventsOf(session, 'call.finished')).map((it) => it.content.length > 1)
    expect(told).toEqual([false, false, true, true, true])
    assertWhole(await eventsOf(session))
  })

  test('is no repetition while other calls bring something new', async () => {
    let n = 0
    const { session, server } = await bench(
      () => {
        n += 1
        return n > 12 ? { text: 'Done.' } : call('echo', { text: n % 2 === 0 ? `${n}` : 'same' })
      },
      { tools: [echo], limits: { maxSteps: 60 } },
    )
    expect(await session.run('Go.')).toMatchObject({ reason: 'completed' })
    expect(server.requests).toHaveLength(13)
  })

  test('of a tool that always fails also ends the turn, and the tool is not offered after three failures', async () => {
    const broken = tool({
      name: 'broken',
      description: 'Fails.',
      effects: ['read'],
      input: {},
      run: () => {
        throw new Error('no')
      },
    })
    const { session, server } = await bench(
      (request) => (request.body.tools === undefined ? { text: 'Sorry.' } : call('broken', {})),
      { tools: [broken, echo], limits: { maxSteps: 60 } },
    )
    await session.run('Go.')
    const offered = server.requests.map((it) =>
      ((it.body.tools ?? []) as { function: { name: string } }[]).map((one) => one.function.name),
    )
    expect(offered[2]).toContain('broken')
    expect(offered[3]).not.toContain('broken')
    expect(server.requests.length).toBeLessThan(10)
  })
})

describe('B12: numbers in arguments', () => {
  const seen: unknown[] = []
  const order = tool({
    name: 'order',
    description: 'Shows an order.',
    effects: ['read'],
    input: z.object({
      orderId: z.string(),
      count: z.number().optional(),
      more: z.record(z.string(), z.unknown()).optional(),
    }),
    run: (input) => {
      seen.push(input)
      return 'shown'
    },
  })

  test('that the schema takes as text keep their digits', async () => {
    seen.length = 0
    const { session } = await bench(
      [
        { calls: [{ name: 'order', arguments: '{"orderId":2064875200729235458}' }] },
        { calls: [{ name: 'order', arguments: '{"orderId":100.00}' }] },
        { text: 'ok' },
      ],
      { tools: [order] },
    )
    await session.run('Go.')
    expect(seen).toEqual([{ orderId: '2064875200729235458' }, { orderId: '100.00' }])
  })

  test.each(['{"orderId":"1","count":2064875200729235458}', '{"orderId":"1","more":{"id":2064875200729235458}}'])(
    'that would become other numbers are refused: %s',
    async (args) => {
      const { session, server } = await bench([{ calls: [{ name: 'order', arguments: args }] }, { text: 'ok' }], {
        tools: [order],
      })
      await session.run('Go.')
      expect(resultsSent(server.requests[1]!)[0]).toContain(
        'the number 2064875200729235458 cannot be held exactly. Write it as a string',
      )
    },
  )
})

describe('H4: a structured answer', () => {
  const output = z.object({ id: z.string(), note: z.string().optional() })
  test.each([
    ['a number for a text', '{"id":2064875200729235458}', { id: '2064875200729235458' }],
    ['null for an optional field', '{"id":"a","note":null}', { id: 'a' }],
    ['a byte order mark', '\ufeff{"id":"a"}', { id: 'a' }],
  ])('is converted like arguments: %s', async (_, text, expected) => {
    const { session } = await bench([{ text }])
    expect((await session.run('Go.', { output })).output).toEqual(expected)
  })
})

describe('a process that stops or dies', () => {
  test('in an orderly way yields its turns, and that does not count as an interrupted attempt', async () => {
    const held = gate()
    // A second attempt that counted would be one too many.
    const first = await bench([{ text: 'one two', hold: { atChunk: 1, gate: held } }, { text: 'done' }], {
      limits: { maxRecoveries: 1 },
    })
    const running = first.session.submit('Go.', { turnId: 't' })
    await running
    await held.reached
    await first.engine.stop(0)
    const events = await first.backend.journal.read({ tenant: 'default', user: 'ann', session: 's1' }, 0)
    expect(events.at(-1)).toMatchObject({ type: 'turn.yielded', turnId: 't', epoch: 1 })
    const second = first.another()
    await second.recover()
    expect(await second.session({ user: 'ann', session: 's1' }).wait('t')).toMatchObject({ text: 'done' })
    held.open()
  })

  test('again and again: the turns that may be the cause are retried one at a time', async () => {
    const { backend, another, server } = await bench(() => ({ text: 'ok' }))
    const suspects = ['a', 'b', 'c']
    for (const session of suspects) {
      const key = { tenant: 'default', user: 'ann', session }
      const claims = [1, 2].map((epoch) => ({ type: 'turn.claimed' as const, turnId: 't', worker: 'dead', epoch }))
      await backend.journal.append(
        key,
        0,
        [
          { type: 'session.opened' as const, schemaVersion: 1, key, agent: { name: 'helper', version: '1' } },
          {
            type: 'turn.started' as const,
            turnId: 't',
            input: [{ type: 'text' as const, text: 'Go.' }],
            surface: 'library',
            principal: { user: 'ann' },
            agent: { name: 'helper', version: '1' },
            options: {},
          },
          ...claims,
        ].map((it, index) => ({ ...it, seq: index + 1, at: Date.now() })),
        { status: 'running', agent: 'helper', title: '' },
      )
    }
    const engine = another()
    expect(await engine.recover()).toBe(1)
    for (const session of suspects)
      expect(await engine.session({ user: 'ann', session }).wait('t')).toMatchObject({ text: 'ok' })
    expect(server.requests).toHaveLength(3)
  })
})

test('a jump of the wall clock does not fail a running turn', async () => {
  const held = gate()
  const { session, engine } = await bench([{ text: 'one two', hold: { atChunk: 1, gate: held } }], {
    limits: { stateTimeoutsMs: { CREATED: 60_000, RUNNING: 60_000, WAITING_TOOL: 60_000, WAITING_USER: 60_000 } },
  })
  const running = session.run('Go.')
  await held.reached
  const now = Date.now()
  vi.spyOn(Date, 'now').mockImplementation(() => now + 15 * 60_000)
  try {
    await engine.recover()
    held.open()
    expect(await running).toMatchObject({ text: 'one two' })
  } finally {
    vi.restoreAllMocks()
  }
})

test('an interrupt right behind an input hits its turn', async () => {
  const { session } = await bench([{ text: 'one two three', silentAfterChunks: 1 }])
  const running = session.run('Go.', { turnId: 't' })
  expect(await session.interrupt({ turnId: 't' })).toBe('t')
  expect(await running).toMatchObject({ status: 'cancelled' })
})

test('needsApproval without arguments is refused: a person decides on exact arguments', () => {
  expect(() => needsApproval({ reason: 'x' } as never)).toThrow('arguments and reason are required')
})

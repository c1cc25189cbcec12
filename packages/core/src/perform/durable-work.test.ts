// Durable tools: steps run once whatever crashes, sleeps and signals pause the turn, and the tool goes on elsewhere.
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { bench } from '../core.fixture.ts'
import { type Engine, type ToolContext, type ToolDefinition, tool } from '../index.ts'

const call = { calls: [{ name: 'ship', arguments: '{"order":"o1"}' }] }
const replies = [call, { text: 'done' }]
type Run = (input: { order: string }, context: ToolContext) => unknown
const ship = (run: Run, more: Partial<ToolDefinition> = {}) =>
  tool({
    name: 'ship',
    description: 'Ships an order.',
    effects: ['write'],
    input: z.object({ order: z.string() }),
    durable: true,
    ...(more as object),
    run,
  })
const setup = (run: Run, more: Partial<ToolDefinition> = {}) =>
  bench(replies, { mode: 'bypass', tools: [ship(run, more)] })

describe('X14: a step', () => {
  test('returns what it did, and is stored with its operation id before and after it ran', async () => {
    const { session } = await setup(async (_, context) => {
      const first = await context.step('reserve', ({ operationId, attempt }) => ({ operationId, attempt }))
      const second = await context.step('bill', () => undefined)
      return { first, second: second === undefined }
    })
    const { calls, text } = await session.run('Ship o1.')
    expect(text).toBe('done')
    const { first, second } = JSON.parse((calls[0]!.content[0] as { text: string }).text)
    expect({ attempt: first.attempt, second }).toEqual({ attempt: 1, second: true })
    const events = await session.events(0)
    expect(events.flatMap((it) => (it.type.startsWith('work.') ? [it.type] : []))).toEqual([
      'work.started',
      'work.finished',
      'work.started',
      'work.finished',
    ])
    const started = events.find((it) => it.type === 'work.started')!
    expect(started).toMatchObject({ name: 'reserve', kind: 'step', position: 1, operationId: first.operationId })
    const callId = events.find((it) => it.type === 'call.started')!
    expect(first.operationId).toBe(`${callId.operationId}.1`)
  })

  test('that fails throws the same each time, and its own words go to the log only', async () => {
    const seen: string[] = []
    const { session, errors } = await setup(async (_, context) => {
      try {
        await context.step('bill', () => {
          throw new Error('secret words')
        })
      } catch (error) {
        seen.push((error as Error).message)
      }
      await context.sleep(0)
      return 'shipped'
    })
    const { turnId } = await session.run('Ship o1.')
    expect((await session.wait(turnId)).text).toBe('done')
    expect(seen).toHaveLength(2)
    expect(seen[1]).toBe(seen[0])
    expect(seen[0]).toMatch(/^The step "bill" failed. Reference: /)
    expect(errors).toMatchObject([{ message: 'secret words' }])
  })

  test('that is idempotent is tried again with the same operation id', async () => {
    const ids: string[] = []
    const { session } = await setup((_, context) =>
      context.step(
        'bill',
        ({ operationId, attempt }) => {
          ids.push(`${operationId} ${attempt}`)
          if (attempt < 3) throw new Error('busy')
          return 'billed'
        },
        { idempotent: true, retries: 3 },
      ),
    )
    expect((await session.run('Ship o1.')).calls[0]!.content).toEqual([{ type: 'text', text: 'billed' }])
    expect(new Set(ids.map((it) => it.split(' ')[0])).size).toBe(1)
    expect(ids.map((it) => it.split(' ')[1])).toEqual(['1', '2', '3'])
  })

  test('whose result JSON cannot hold has failed, and is not tried again', async () => {
    const run = vi.fn<() => Map<string, string>>(() => new Map())
    const { session } = await setup((_, context) => context.step('bill', run, { idempotent: true, retries: 3 }))
    const { calls } = await session.run('Ship o1.')
    expect(calls[0]!.status).toBe('error')
    expect(JSON.stringify(calls[0]!.content)).toContain('is a Map, which is not JSON')
    expect(run).toHaveBeenCalledTimes(1)
  })

  test('may run beside others', async () => {
    const { session } = await setup(async (_, { step }) =>
      (await Promise.all(['a', 'b', 'c'].map((it) => step(it, async () => it)))).join(''),
    )
    expect((await session.run('Ship o1.')).calls[0]!.content).toEqual([{ type: 'text', text: 'abc' }])
  })

  test.each([
    ['step', (context: ToolContext) => context.step('a', () => 1)],
    ['sleep', (context: ToolContext) => context.sleep(1)],
    ['waitFor', (context: ToolContext) => context.waitFor('a')],
  ])('needs a durable tool: %s', async (method, use) => {
    const { session } = await setup((_, context) => use(context), { durable: false })
    const { calls } = await session.run('Ship o1.')
    expect(calls[0]!.status).toBe('error')
    expect(JSON.stringify(calls[0]!.content)).toContain(`${method}() needs durable: true`)
  })

  test('cannot run beside a wait', async () => {
    const { session } = await setup((_, { step, sleep }) =>
      Promise.all([step('a', () => new Promise(() => {})), sleep(1)]),
    )
    expect(JSON.stringify((await session.run('Ship o1.')).calls[0]!.content)).toContain('must be awaited alone')
  })
})

describe('X14: after a crash', () => {
  test('finished steps are answered from the journal, and an interrupted one is not repeated silently', async () => {
    const ran: string[] = []
    const { session, another } = await setup(async (_, { step, waitFor }) => {
      await step('reserve', () => void ran.push('reserve'))
      await waitFor('go')
      await step('bill', () => void ran.push('bill'))
      return 'shipped'
    })
    const { turnId, reason } = await session.run('Ship o1.')
    expect(reason).toBe('signal')
    // Another process continues; the first one keeps nothing that it would need.
    const elsewhere = another().session(session.key)
    await elsewhere.signal('go', { by: 'the warehouse' })
    const { text, calls } = await elsewhere.wait(turnId)
    expect(text).toBe('done')
    expect(calls[0]).toMatchObject({ status: 'success', content: [{ text: 'shipped' }] })
    expect(ran).toEqual(['reserve', 'bill'])
  })

  test.each([
    ['neither', {}, 'unknown', 1],
    ['idempotent', { idempotent: true }, 'success', 2],
    ['reconcile: done', { reconcile: async () => ({ status: 'done' as const, result: 'was billed' }) }, 'success', 1],
    ['reconcile: not done', { reconcile: async () => ({ status: 'not_done' as const }) }, 'success', 2],
    ['reconcile: unknown', { reconcile: async () => ({ status: 'unknown' as const }) }, 'unknown', 1],
  ])('a step that was interrupted, with %s', async (_how, options, status, times) => {
    const ids: string[] = []
    // The first process hangs in the step and never comes back; its lease is released, as after a kill.
    let hang = true
    const { session, engine, another } = await setup((_, context) =>
      context.step(
        'bill',
        ({ operationId, signal }) => {
          ids.push(operationId)
          if (!hang) return 'billed'
          hang = false
          return new Promise<string>((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(new Error('killed')))
          })
        },
        options,
      ),
    )
    const { turnId } = await session.submit('Ship o1.')
    await expect.poll(() => ids.length).toBe(1)
    await engine.stop(0)
    const next: Engine = another()
    await next.start()
    const { calls } = await next.session(session.key).wait(turnId)
    expect(calls[0]!.status).toBe(status)
    expect(ids).toHaveLength(times)
    expect(new Set(ids).size).toBe(1)
  })

  test('a tool whose steps have changed ends as unknown, and nothing is repeated', async () => {
    const ran: string[] = []
    let name = 'reserve'
    const { session } = await setup(async (_, { step, sleep }) => {
      await step(name, () => void ran.push(name))
      name = 'hold'
      await sleep(0)
    })
    const { turnId } = await session.run('Ship o1.')
    const { calls } = await session.wait(turnId)
    expect(calls[0]!.status).toBe('unknown')
    expect(JSON.stringify(calls[0]!.content)).toContain(
      'at position 1 it had the step \\"reserve\\", now the step \\"hold\\"',
    )
    expect(ran).toEqual(['reserve'])
  })
})

describe('X14: a sleep', () => {
  test('pauses the turn without a worker, and the tool continues after it', async () => {
    const runs: number[] = []
    const { session, engine } = await setup(async (_, context) => {
      runs.push(context.attempt)
      await context.sleep(300)
      return 'slept'
    })
    const { status, reason, turnId } = await session.run('Ship o1.')
    expect({ status, reason }).toEqual({ status: 'paused', reason: 'sleep' })
    await expect.poll(() => engine.running).toBe(0)
    expect(runs).toEqual([1])
    const { calls } = await session.wait(turnId)
    expect(calls[0]).toMatchObject({ status: 'success', content: [{ text: 'slept' }] })
    expect(runs).toEqual([1, 2])
  })

  test('outlasts the limits of the turn and of its state', async () => {
    const { session } = await bench(replies, {
      mode: 'bypass',
      limits: { stateTimeoutsMs: { WAITING_TOOL: 20, WAITING_USER: 20 }, totalTimeoutMs: 1_000 },
      tools: [
        ship(async (_, { sleep }) => {
          await sleep(1_500)
          return 'slept'
        }),
      ],
    })
    const { turnId } = await session.run('Ship o1.')
    expect((await session.wait(turnId)).text).toBe('done')
  })

  test('is ended by an interrupt, and what had been done is told', async () => {
    const { session } = await setup(async (_, { step, sleep }) => {
      await step('reserve', () => 1)
      await sleep(3_600_000)
    })
    const { turnId } = await session.run('Ship o1.')
    await session.interrupt()
    const { status, calls } = await session.wait(turnId)
    expect(status).toBe('cancelled')
    expect(calls[0]).toMatchObject({
      status: 'cancelled',
      content: [{ text: 'Cancelled while it waited. These steps had taken effect: reserve.' }],
    })
  })

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '5' as never])('of %o is an error', async (ms) => {
    const { session } = await setup((_, { sleep }) => sleep(ms))
    expect((await session.run('Ship o1.')).calls[0]!.status).toBe('error')
  })
})

describe('X14: a signal', () => {
  test('that comes before its wait is kept, in order, and delivered once for each id', async () => {
    const { session } = await setup(async (_, { waitFor }) => {
      const start = await waitFor('start')
      return { start, a: await waitFor('part'), b: await waitFor('part') }
    })
    const { turnId } = await session.run('Ship o1.')
    await session.signal('part', 1)
    await session.signal('part', 2, { id: 'p2' })
    expect(await session.signal('part', 3, { id: 'p2' })).toMatchObject({ accepted: 'duplicate' })
    await session.signal('other')
    await session.signal('start', { go: true })
    const { calls } = await session.wait(turnId)
    expect(JSON.parse((calls[0]!.content[0] as { text: string }).text)).toEqual({ start: { go: true }, a: 1, b: 2 })
  })

  test('that does not come in time is undefined', async () => {
    const { session, engine } = await setup(async (_, { waitFor }) => String(await waitFor('go', { timeoutMs: 10 })))
    await engine.start()
    const { turnId } = await session.run('Ship o1.')
    await expect.poll(async () => (await session.result(turnId))?.status, { timeout: 10_000 }).toBe('finished')
    expect((await session.result(turnId))!.calls[0]!.content).toEqual([{ type: 'text', text: 'undefined' }])
  })

  test.each([['nobody waits', async () => {}, 'unknown_turn', 'No turn of this session is open']])(
    'is refused when %s',
    async (_when, _before, code, message) => {
      const { session } = await setup(() => 1)
      await session.run('Ship o1.')
      await expect(session.signal('go')).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
    },
  )

  test('of another user is refused, and of another tenant', async () => {
    const { session } = await setup((_, { waitFor }) => waitFor('go'))
    await session.run('Ship o1.')
    for (const principal of [{ user: 'bob' }, { tenant: 'other', user: 'ann' }])
      await expect(session.signal('go', 1, { principal })).rejects.toMatchObject({ code: 'signal_forbidden' })
    expect((await session.state()).turn!.paused!.reason).toBe('signal')
  })

  test.each([[new Map()], [Number.NaN], ['x'.repeat(100_001)]])(
    'with a value that JSON cannot hold, or too long, is refused',
    async (value) => {
      const { session } = await setup((_, { waitFor }) => waitFor('go'))
      await session.run('Ship o1.')
      await expect(session.signal('go', value)).rejects.toMatchObject({ code: 'invalid_option' })
    },
  )

  test('of which too many wait is refused', async () => {
    const { session } = await setup((_, { waitFor }) => waitFor('go'))
    await session.run('Ship o1.')
    for (let n = 0; n < 100; n++) await session.signal('other', n)
    await expect(session.signal('other')).rejects.toMatchObject({ code: 'signal_limit' })
  })
})

test('X14: a durable tool gives idempotent and reconcile to its steps', () => {
  expect(() => ship(() => 1, { idempotent: true })).toThrow(
    expect.objectContaining({ code: 'tool_invalid', message: expect.stringContaining('to its steps') }),
  )
})

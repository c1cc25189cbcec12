import { eventsOf, gate, until } from '@oxbow/testing'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { assertWhole, bench, call, echo, resultsSent } from '../core.fixture.ts'
import { type FinishReason, isEvent, type Model, noUsage, type ToolContext, ToolError, tool } from '../index.ts'

const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

describe('calls that only read', () => {
  test('run at most four at once; each result is published when it is ready, and the model reads them in call order', async () => {
    const gates = new Map('abcdef'.split('').map((it) => [it, gate()]))
    let running = 0
    let most = 0
    const slow = tool({
      name: 'slow',
      description: 'Waits.',
      effects: ['read'],
      input: z.object({ id: z.string() }),
      async run({ id }) {
        most = Math.max(most, ++running)
        await gates.get(id)!.pass()
        running -= 1
        return `result ${id}`
      },
    })
    const calls = [...gates.keys()].flatMap((id) => ['slow', { id }])
    const { session, server } = await bench([call(...calls), { text: 'ok' }], { tools: [slow] })
    const stream = session.stream('Go.')
    const order: string[] = []
    const opening = ['d', 'b', 'f', 'a', 'e', 'c']
    await Promise.all(['a', 'b', 'c', 'd'].map((it) => gates.get(it)!.reached))
    gates.get(opening[0]!)!.open()
    for await (const it of stream) {
      if (!isEvent(it) || it.type !== 'call.finished') continue
      order.push(it.content[0]?.type === 'text' ? it.content[0].text : '')
      const next = opening[order.length]
      if (next !== undefined) {
        await gates.get(next)!.reached
        gates.get(next)!.open()
      }
    }
    expect(most).toBe(4)
    expect(order).toEqual(opening.map((it) => `result ${it}`))
    expect(resultsSent(server.requests[1]!)).toEqual('abcdef'.split('').map((it) => `result ${it}`))
  })

  test('never overtake an earlier write', async () => {
    const log: string[] = []
    const make = (name: string, effects: ['read'] | ['write']) =>
      tool({
        name,
        description: name,
        effects,
        input: z.object({ id: z.string() }),
        async run({ id }) {
          log.push(`+${id}`)
          await new Promise(setImmediate)
          log.push(`-${id}`)
        },
      })
    const { session } = await bench(
      [
        call('look', { id: 'r1' }, 'change', { id: 'w1' }, 'change', { id: 'w2' }, 'look', { id: 'r2' }),
        { text: 'ok' },
      ],
      { tools: [make('look', ['read']), make('change', ['write'])], allow: ['change'] },
    )
    await session.run('Go.')
    expect(log).toEqual(['+r1', '-r1', '+w1', '-w1', '+w2', '-w2', '+r2', '-r2'])
  })
})

describe('B2: a time limit', () => {
  test('fires the signal, is recorded, and a late result is thrown away', async () => {
    const held = gate()
    let aborted: unknown
    const stubborn = tool({
      name: 'stubborn',
      description: 'Ignores everything.',
      effects: ['read'],
      timeoutMs: 20,
      input: {},
      async run(_, { signal }) {
        signal.addEventListener('abort', () => {
          aborted = signal.reason
        })
        await held.pass()
        return 'too late'
      },
    })
    const { session, server } = await bench([call('stubborn', {}), { text: 'ok' }], { tools: [stubborn] })
    expect((await session.run('Go.')).text).toBe('ok')
    held.open()
    expect(aborted).toMatchObject({ name: 'TimeoutError' })
    expect((await eventsOf(session, 'call.finished'))[0]).toMatchObject({ status: 'timed_out' })
    expect(resultsSent(server.requests[1]!)[0]).toContain('20 ms')
    expect(JSON.stringify(await eventsOf(session))).not.toContain('too late')
  })

  test('of a write warns the model that it may have taken effect', async () => {
    const slow = tool({
      name: 'slow',
      description: 'Slow.',
      effects: ['write'],
      timeoutMs: 10,
      input: {},
      run: (_, { signal }) => never(signal),
    })
    const { session, server } = await bench([call('slow', {}), { text: 'ok' }], { tools: [slow], allow: ['slow'] })
    await session.run('Go.')
    expect(resultsSent(server.requests[1]!)[0]).toContain('may have taken effect')
  })
})

describe('an interrupt while tools run', () => {
  const start = async (run: (input: unknown, context: ToolContext) => unknown, effects: ['read'] | ['write']) => {
    const held = gate()
    const work = tool({
      name: 'work',
      description: 'Works.',
      effects,
      input: {},
      run: (input, context) => {
        void held.pass()
        return run(input, context)
      },
    })
    const { session } = await bench([call('work', {}), { text: 'unused' }], { tools: [work], allow: ['work'] })
    const running = session.run('Go.')
    await held.reached
    await session.interrupt()
    const result = await running
    assertWhole(await eventsOf(session))
    return { result, call: (await eventsOf(session, 'call.finished'))[0] }
  }

  test('cancels a tool that confirms', async () => {
    const { result, call: it } = await start((_, { signal }) => never(signal), ['write'])
    expect(result.status).toBe('cancelled')
    expect(it?.status).toBe('cancelled')
  })

  test('does not wait for a reading tool', async () => {
    const { call: it } = await start(() => new Promise(() => {}), ['read'])
    expect(it?.status).toBe('cancelled')
  })

  test('says that the outcome is unknown when a writing tool does not confirm', async () => {
    const { call: it } = await start(() => new Promise(() => {}), ['write'])
    expect(it?.status).toBe('unknown')
  })

  test('keeps the result of a tool that finished all the same', async () => {
    const { call: it } = await start(
      (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('written'))),
      ['write'],
    )
    expect(it).toMatchObject({ status: 'success', content: [{ text: 'written' }] })
  })
})

describe('B12: arguments', () => {
  test('that are safely convertible are converted, and the stored judgement shows what ran', async () => {
    const add = tool({
      name: 'add',
      description: 'Adds.',
      effects: ['read'],
      input: z.object({ a: z.number(), b: z.number(), note: z.string().optional() }),
      run: ({ a, b }) => a + b,
    })
    const { session, server } = await bench([call('add', { a: '12', b: 30, note: null }), { text: 'ok' }], {
      tools: [add],
    })
    await session.run('Go.')
    expect(resultsSent(server.requests[1]!)).toEqual(['42'])
    expect((await eventsOf(session, 'call.decided'))[0]?.arguments).toEqual({ a: 12, b: 30 })
  })

  test('that are broken never run; the model receives the fault and the schema', async () => {
    let ran = 0
    const once = tool({
      name: 'once',
      description: 'Counts.',
      effects: ['read'],
      input: z.object({ n: z.number() }),
      run: () => ++ran,
    })
    const { session, server } = await bench([call('once', '{"n":'), call('once', '{"n":1}{"n":2}'), { text: 'ok' }], {
      tools: [once],
    })
    await session.run('Go.')
    expect(ran).toBe(0)
    const [first, second] = resultsSent(server.requests[2]!)
    expect(first).toContain('not valid JSON')
    expect(first).toContain('"required":["n"]')
    expect(second).toContain('not valid JSON')
  })

  test('three failures in a row end the use of a tool in this turn, not in the next', async () => {
    const broken = tool({
      name: 'broken',
      description: 'Fails.',
      effects: ['read'],
      input: {},
      run: () => {
        throw new Error('no luck')
      },
    })
    const { session, server } = await bench(
      [
        call('broken', {}),
        call('broken', {}, 'broken', {}),
        call('broken', {}),
        { text: 'It does not work.' },
        { text: 'next' },
      ],
      { tools: [broken, echo] },
    )
    await session.run('Go.')
    const results = resultsSent(server.requests[3]!)
    expect(results[2]).toMatch(/failed 3 times in a row.*Tell the user/)
    expect(results[3]).toContain('not available for the rest of this turn')
    const offered = (n: number) => server.requests[n]?.tools.map((it) => it.function.name).sort()
    expect(offered(2)).toEqual(['echo', 'read_artifact'])
    await session.run('Again.')
    expect(offered(4)).toEqual(['broken', 'echo', 'read_artifact'])
  })

  test('a valibot schema validates and transforms, and its JSON Schema reaches the model', async () => {
    const shout = tool({
      name: 'shout',
      description: 'Shouts.',
      effects: ['read'],
      input: toStandardJsonSchema(v.object({ text: v.pipe(v.string(), v.minLength(2)) })),
      run: ({ text }) => text.toUpperCase(),
    })
    const { session, server } = await bench(
      [call('shout', { text: 'a' }), call('shout', { text: 'hey' }), { text: '.' }],
      {
        tools: [shout],
      },
    )
    await session.run('Go.')
    expect(resultsSent(server.requests[2]!)).toEqual([expect.stringContaining('minLength'), 'HEY'].map((it) => it))
  })
})

describe('what a tool throws', () => {
  const failing = (run: () => unknown) =>
    tool({ name: 'failing', description: 'Fails.', effects: ['read'], input: {}, run })
  const secret = 'password authentication failed for app@10.0.0.1'

  test.each<[string, () => unknown]>([
    [
      'an error',
      () => {
        throw new TypeError(secret)
      },
    ],
    ['a rejected promise', () => Promise.reject(secret)],
    ['a returned error', () => new Error(secret)],
    [
      'an error of a getter of its result',
      () => ({
        get total() {
          throw new Error(secret)
        },
      }),
    ],
  ])('is logged under a reference, and shown to nobody: %s', async (_, run) => {
    const { session, server, errors } = await bench([call('failing', {}), { text: 'ok' }], { tools: [failing(run)] })
    await session.run('Go.')
    const [shown] = resultsSent(server.requests[1]!)
    expect(shown).toMatch(/^Error: failing failed\. Reference: [\da-f-]{36}$/)
    expect(JSON.stringify(await eventsOf(session))).not.toContain('10.0.0.1')
    expect(errors.map(String)).toEqual([expect.stringContaining(secret)])
  })

  test('in a ToolError is for the model', async () => {
    const run = () => {
      throw new ToolError('There is no order 7.')
    }
    const { session, server, errors } = await bench([call('failing', {}), { text: 'ok' }], { tools: [failing(run)] })
    await session.run('Go.')
    expect(resultsSent(server.requests[1]!)).toEqual(['Error: There is no order 7.'])
    expect(errors).toEqual([])
  })
})

describe('B2: retries', () => {
  test('are for idempotent tools, keep the operation id, and are stored before they run', async () => {
    const seen: [string, number][] = []
    const flaky = tool({
      name: 'flaky',
      description: 'Fails once.',
      effects: ['read'],
      input: {},
      retries: 2,
      run: (_, { operationId, attempt }) => {
        seen.push([operationId, attempt])
        if (attempt === 1) throw new Error('hiccup')
        return 'fine'
      },
    })
    const { session, server } = await bench([call('flaky', {}), { text: 'ok' }], { tools: [flaky] })
    await session.run('Go.')
    expect(seen.map(([, attempt]) => attempt)).toEqual([1, 2])
    expect(new Set(seen.map(([id]) => id)).size).toBe(1)
    expect((await eventsOf(session, 'call.started')).map((it) => it.attempt)).toEqual([1, 2])
    expect(resultsSent(server.requests[1]!)).toEqual(['fine'])
    const write = { name: 'w', description: 'w', effects: ['write'], input: {}, retries: 1, run: () => '' } as const
    expect(() => tool(write)).toThrow('only an idempotent tool')
  })

  test('stop when the turn is interrupted', async () => {
    const held = gate()
    let ran = 0
    const failing = tool({
      name: 'failing',
      description: 'Fails.',
      effects: ['read'],
      input: {},
      retries: 50,
      run: () => {
        ran += 1
        void held.pass()
        throw new Error('no')
      },
    })
    const { session } = await bench([call('failing', {})], { tools: [failing] })
    const running = session.run('Go.')
    await held.reached
    await session.interrupt()
    expect((await running).status).toBe('cancelled')
    expect(ran).toBeLessThan(4)
    assertWhole(await eventsOf(session))
  })
})

describe('results', () => {
  test('H7: a long result is kept whole, and the model reads head, tail and pages', async () => {
    const long = Array.from({ length: 5_000 }, (_, n) => `line ${n} 😀`).join('\n')
    const dump = tool({ name: 'dump', description: 'Dumps.', effects: ['read'], input: {}, run: () => long })
    const { session, server } = await bench(
      (request) => {
        const results = resultsSent(request)
        if (results.length === 0) return call('dump', {})
        const id = /"id":"([^"]+)"/.exec(results[0]!)![1]
        if (results.length === 1) return call('read_artifact', { id, offset: 40_000, length: 500 })
        if (results.length === 2) return call('read_artifact', { id: 'call_of_somebody_else' })
        return { text: 'read' }
      },
      { tools: [dump], limits: { maxResultLength: 2_000 } },
    )
    await session.run('Go.')
    const [shown, page, missing] = resultsSent(server.requests[3]!)
    expect(shown!.length).toBeLessThan(2_300)
    expect(shown).toMatch(/^line 0 /)
    expect(shown).toMatch(/line 4999 😀$/)
    expect(shown!.isWellFormed()).toBe(true)
    expect(page).toContain(long.slice(40_010, 40_400))
    expect(missing).toContain('No artifact')
    const finished = (await eventsOf(session, 'call.finished'))[0]
    expect(finished?.artifact?.bytes).toBe(Buffer.byteLength(long))
  })

  test('that break the tool’s own output schema are errors', async () => {
    const wrong = tool({
      name: 'wrong',
      description: 'Lies.',
      effects: ['read'],
      input: {},
      output: { type: 'object', required: ['ok'] },
      run: () => ({ no: 1 }),
    })
    const { session } = await bench([call('wrong', {}), { text: 'hm' }], { tools: [wrong] })
    await session.run('Go.')
    expect((await eventsOf(session, 'call.finished'))[0]).toMatchObject({ status: 'error' })
  })

  test('progress is shown while the tool runs, and is not stored', async () => {
    const held = gate()
    const steps = tool({
      name: 'steps',
      description: 'Reports.',
      effects: ['read'],
      input: {},
      async run(_, { progress }) {
        progress('half')
        await held.pass()
        return 'whole'
      },
    })
    const { session } = await bench([call('steps', {}), { text: 'ok' }], { tools: [steps] })
    const stream = session.stream('Go.')
    const seen: string[] = []
    for await (const it of stream)
      if (it.type === 'progress.delta') {
        seen.push(it.text)
        held.open()
      }
    expect(seen).toEqual(['half'])
    expect(JSON.stringify(await eventsOf(session))).not.toContain('half')
  })
})

test.each(['error', 'content-filter', undefined])(
  'an answer that ends with %j has failed, and its calls do not run',
  async (reason) => {
    let ran = 0
    const count = tool({ name: 'count', description: 'Counts.', effects: ['read'], input: {}, run: () => ++ran })
    const model: Model = {
      id: 'own:model',
      generate: async () => ({
        blocks: [{ type: 'call', callId: '', tool: 'count', arguments: '{}' }],
        finishReason: reason as FinishReason,
        usage: noUsage,
        model: 'model',
      }),
    }
    const { session } = await bench([], { tools: [count], model })
    await expect(session.run('Go.')).rejects.toMatchObject({ code: 'provider_error' })
    expect(ran).toBe(0)
  },
)

test('operation ids are stable for the place of a call and differ between calls', async () => {
  const ids: string[] = []
  const note = tool({
    name: 'note',
    description: 'Notes.',
    effects: ['read'],
    input: {},
    run: (_, { operationId }) => ids.push(operationId),
  })
  const run = async (): Promise<void> => {
    const { session } = await bench([call('note', {}, 'note', {}), call('note', {}), { text: 'ok' }], { tools: [note] })
    await session.run('Go.', { turnId: 't1' })
  }
  await run()
  await run()
  expect(new Set(ids).size).toBe(3)
  expect(ids.slice(0, 3).sort()).toEqual(ids.slice(3).sort())
})

test('an unread stream does not block the turn', async () => {
  const { session } = await bench([{ text: 'x '.repeat(2_000) }])
  const stream = session.stream('Go.')
  await stream.result
  const items = await Array.fromAsync(stream)
  expect(items.filter(isEvent).at(-1)?.type).toBe('turn.finished')
  await until(async () => (await session.state()).turn === undefined)
})

// Regression tests, each named after the fault.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { memory } from '@oxbow/backends'
import { eventsOf, gate, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { assertWhole, bench, call, echo, resultsSent } from '../core.fixture.ts'
import { agent, createEngine, type Event, type SessionKey, tool } from '../index.ts'
import { emptyState, evolve } from '../internal.ts'
import { evolveAll } from '../state/evolve.ts'
import { STATE_VERSION } from '../state/state.ts'

const counting = (name: string, count: string[], more: Partial<Parameters<typeof tool>[0]> = {}) =>
  tool({ name, description: name, effects: ['write'], input: {}, run: () => count.push(name), ...more } as Parameters<
    typeof tool
  >[0])
const key: SessionKey = { tenant: 'default', user: 'ann', session: 's1' }
const notes = { status: 'running', agent: 'helper', title: '' } as const

/** A session whose call had started when its process died. */
const died = (name: string, more: Partial<Event<'session.opened'>> = {}): Event[] => {
  const turnId = 't1'
  const callId = 'call_1'
  const bodies: object[] = [
    { type: 'session.opened', schemaVersion: 1, key, agent: { name: 'helper', version: '1' }, ...more },
    {
      type: 'turn.started',
      turnId,
      input: [{ type: 'text', text: 'Go.' }],
      surface: 'library',
      principal: { user: 'ann' },
      agent: { name: 'helper', version: '1' },
      options: {},
    },
    { type: 'turn.claimed', turnId, worker: 'dead', epoch: 1 },
    { type: 'step.started', turnId, step: 1, toolsOffered: true },
    {
      type: 'model.finished',
      turnId,
      step: 1,
      message: { id: 'm', role: 'assistant', blocks: [{ type: 'call', callId, tool: name, arguments: '{}' }] },
      finishReason: 'calls',
      usage: emptyState.usage,
      model: 'm',
      timing: { totalMs: 1 },
    },
    { type: 'call.decided', turnId, callId, decision: 'allow', rule: 'r', reason: 'r', arguments: {} },
    { type: 'call.started', turnId, callId, operationId: 'op_1', attempt: 1 },
  ]
  return bodies.map((it, index) => ({ ...it, seq: index + 1, at: 0 }) as Event)
}

describe('what must not run', () => {
  test.each(['length', 'content_filter'])('a call of an answer that ended with %s', async (finishReason) => {
    const count: string[] = []
    const { session, server } = await bench(
      [{ calls: [{ name: 'wipe', arguments: '' }], finishReason }, { text: 'I was cut off.' }],
      { tools: [counting('wipe', count)], allow: ['wipe'] },
    )
    await session.run('Go.')
    expect(count).toEqual([])
    if (finishReason === 'length') expect(resultsSent(server.requests[1]!)[0]).toContain('cut off before it was whole')
    assertWhole(await eventsOf(session))
  })

  test('a started call of a removed tool has an unknown outcome', async () => {
    const { session, backend, engine } = await bench([{ text: 'ok' }], { tools: [echo] })
    await backend.journal.append(key, 0, died('removed'), notes)
    await engine.start()
    await session.wait('t1')
    expect((await eventsOf(session, 'call.finished'))[0]?.status).toBe('unknown')
  })

  test('a call that had started, of an idempotent tool that is denied by now', async () => {
    const count: string[] = []
    const { session, backend, engine } = await bench([{ text: 'ok' }], {
      tools: [counting('put', count, { idempotent: true })],
      deny: ['put'],
    })
    await backend.journal.append(key, 0, died('put'), notes)
    await engine.start()
    await session.wait('t1')
    expect(count).toEqual([])
    expect((await eventsOf(session, 'call.finished'))[0]?.status).toBe('unknown')
  })

  test('the same steering input twice, whenever it is sent again', async () => {
    const held = gate()
    const { session } = await bench([{ text: 'one', hold: { atChunk: 0, gate: held } }, { text: 'two' }])
    const running = session.run('Go.', { turnId: 't1' })
    await held.reached
    const steer = () => session.submit('Five pizzas.', { whenBusy: 'steer', turnId: 'in1' })
    expect((await steer()).accepted).toBe('steered')
    held.open()
    await running
    expect(await steer()).toMatchObject({ accepted: 'duplicate', turnId: 't1' })
    expect(JSON.stringify((await session.state()).messages).match(/pizzas/g)).toHaveLength(1)
  })

  test('a write twice because a middleware calls next twice', async () => {
    const count: string[] = []
    const { session } = await bench([call('put', {}), { text: 'ok' }], {
      tools: [counting('put', count)],
      allow: ['put'],
      middleware: [
        {
          name: 'twice',
          onActing: async (_, next) => {
            await next()
            return next()
          },
        },
      ],
    })
    await expect(session.run('Go.')).rejects.toMatchObject({ code: 'middleware_invalid' })
    expect(count).toHaveLength(1)
    assertWhole(await eventsOf(session))
  })
})

test('a worker looks alive for as long as a write that it left behind may still act', async () => {
  const held = gate()
  const began = gate()
  const stubborn = tool({
    name: 'stubborn',
    description: 'Ignores its signal.',
    effects: ['write'],
    input: {},
    async run() {
      void began.pass()
      await held.pass()
    },
  })
  const { session, engine, backend } = await bench([call('stubborn', {})], { tools: [stubborn], allow: ['stubborn'] })
  session.run('Go.').catch(() => {})
  await began.reached
  const [claimed] = await eventsOf(session, 'turn.claimed')
  await engine.stop(0)
  expect(engine.leftBehind).toBe(1)
  expect(await backend.workers.alive(claimed!.worker)).toBe(true)
  held.open()
  await until(async () => !(await backend.workers.alive(claimed!.worker)))
  expect(engine.leftBehind).toBe(0)
})

describe('what must be said honestly', () => {
  test('a write that acted before it noticed the interrupt may have taken effect', async () => {
    const held = gate()
    const write = tool({
      name: 'write',
      description: 'w',
      effects: ['write'],
      input: {},
      async run(_, { signal }) {
        void held.pass()
        await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const { session } = await bench([call('write', {})], { tools: [write], allow: ['write'] })
    const running = session.run('Go.')
    await held.reached
    await session.interrupt()
    await running
    const [finished] = await eventsOf(session, 'call.finished')
    expect(finished?.content[0]).toMatchObject({ text: expect.stringContaining('may have taken effect') })
  })

  test('a turn that ran out of time was not stopped by the user', async () => {
    const { session } = await bench([call('wait', {})], {
      tools: [
        tool({
          name: 'wait',
          description: 'w',
          effects: ['read'],
          input: {},
          run: () => new Promise(() => {}),
        }),
      ],
    })
    await expect(session.run('Go.', { totalTimeoutMs: 50 })).rejects.toMatchObject({ code: 'total_timeout' })
    const [finished] = await eventsOf(session, 'call.finished')
    expect(JSON.stringify(finished?.content)).not.toContain('user')
  })

  test('a journal of a newer version is refused and left unchanged', async () => {
    const { session, backend } = await bench([{ text: 'ok' }])
    const unknown = { type: 'call.applauded', turnId: 't1', seq: 8, at: 0 } as unknown as Event
    await backend.journal.append(key, 0, [...died('x'), unknown], notes)
    await expect(session.run('Go.')).rejects.toMatchObject({ code: 'journal_newer' })
    expect(await backend.journal.head(key)).toBe(8)
    const other = { ...key, session: 's2' }
    const newer = died('x', { schemaVersion: 99 }).slice(0, 1)
    await backend.journal.append(other, 0, newer, notes)
    expect(() => newer.reduce(evolve, emptyState)).toThrow('newer Oxbow')
  })

  test('an invalid snapshot is ignored', async () => {
    const { session, backend, another } = await bench([{ text: 'ok' }])
    await session.run('Go.')
    const state = await session.state()
    await backend.journal.putSnapshot(key, {
      seq: state.seq,
      version: STATE_VERSION,
      data: JSON.stringify({ seq: state.seq }),
    })
    expect(await another().session({ user: 'ann', session: 's1' }).state()).toEqual(state)
  })
})

describe('what must not hang, leak or run away', () => {
  test('a turn of an agent that this engine does not have is left to others', async () => {
    const { backend, engine, errors } = await bench([])
    await backend.journal.append(key, 0, died('x', { agent: { name: 'stranger', version: '1' } }), notes)
    await engine.start()
    await engine.recover()
    await until(() => engine.running === 0)
    expect(await backend.journal.head(key)).toBe(7)
    expect(errors).toHaveLength(1)
  })

  test('a middleware that never calls next, or never comes back', async () => {
    const silent = await bench([{ text: 'ok' }], { middleware: [{ name: 'silent', onAgent: async () => {} }] })
    await expect(silent.session.run('Go.')).rejects.toMatchObject({ code: 'middleware_invalid' })
    expect((await silent.session.state()).turn).toBeUndefined()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const never = gate()
    const deaf = await bench([{ text: 'ok' }], {
      middleware: [{ name: 'deaf', onModelCall: () => never.pass() as Promise<never> }],
    })
    void never.reached.then(() => vi.advanceTimersByTimeAsync(60_000))
    await expect(deaf.session.run('Go.', { totalTimeoutMs: 20 })).rejects.toMatchObject({ code: 'total_timeout' })
  })

  test('a run requested while the engine stops is refused as such', async () => {
    const { session, engine } = await bench([{ text: 'never', silentAfterChunks: 0 }])
    const running = session.run('Go.')
    const stopping = engine.stop(0)
    await expect(running).rejects.toMatchObject({ code: 'shutting_down' })
    await stopping
  })

  test('limits beyond the range of timers mean no limit, not an immediate timeout', async () => {
    const { session } = await bench([call('slow', {}), { text: 'ok' }], {
      tools: [
        tool({
          name: 'slow',
          description: 's',
          effects: ['read'],
          timeoutMs: 30 * 24 * 3_600_000,
          input: {},
          run: () => 'done',
        }),
      ],
    })
    expect((await session.run('Go.', { totalTimeoutMs: Number.POSITIVE_INFINITY })).text).toBe('ok')
    await expect(session.run('Go.', { maxSteps: Number.NaN })).rejects.toMatchObject({ code: 'invalid_option' })
    await expect(session.run('Go.', { idleTimeoutMs: -1 })).rejects.toMatchObject({ code: 'invalid_option' })
  })

  test('a tool may work longer than the idle limit of its turn', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const working = gate()
    const slow = tool({
      name: 'slow',
      description: 's',
      effects: ['read'],
      input: {},
      run: async () => {
        await working.pass()
        return 'done'
      },
    })
    const { session } = await bench([call('slow', {}), { text: 'ok' }], { tools: [slow] })
    const running = session.run('Go.', { idleTimeoutMs: 1_000 })
    await working.reached
    vi.advanceTimersByTime(10_000)
    working.open()
    expect((await running).text).toBe('ok')
  })

  test('arguments of white space without end are read in linear time', async () => {
    const { session } = await bench(
      [{ calls: [{ name: 'echo', arguments: `{"text":"x"}${' '.repeat(400_000)}!` }] }, { text: 'ok' }],
      { tools: [echo] },
    )
    // Quadratic reading would take minutes and exceed the test's time limit.
    await session.run('Go.')
    expect((await eventsOf(session, 'call.finished'))[0]?.error?.code).toBe('invalid_arguments')
  })

  test('names of Object’s own are names like others', async () => {
    const { session, server } = await bench([call('constructor', {}), { text: 'ok' }], {
      tools: [tool({ name: 'constructor', description: 'c', effects: ['read'], input: {}, run: () => 'built' })],
    })
    await session.run('Go.')
    expect(resultsSent(server.requests[1]!)).toEqual(['built'])
  })

  test('the turn continues whatever a tool throws or returns', async () => {
    const wild: Record<string, () => unknown> = {
      a: () => {
        throw {
          toString: () => {
            throw new Error('no')
          },
        }
      },
      b: () => {
        throw null
      },
      c: () => {
        const cycle: Record<string, unknown> = {}
        cycle.self = cycle
        return [{ type: 'text', text: 'block', cycle }]
      },
      d: () => 10n,
      e: () => null,
    }
    const tools = Object.entries(wild).map(([name, run]) =>
      tool({ name, description: name, effects: ['read'], input: {}, run }),
    )
    const { session, server } = await bench([call(...Object.keys(wild).flatMap((it) => [it, {}])), { text: 'ok' }], {
      tools,
    })
    expect((await session.run('Go.')).text).toBe('ok')
    const results = resultsSent(server.requests[1]!)
    expect(results[2]).toBe('block')
    expect(results[3]).toBe('10')
    expect(results[4]).toBe('null')
    assertWhole(await eventsOf(session))
  })

  test('an image of many megabytes is named, not sent', async () => {
    const data = 'A'.repeat(8_000_000)
    const { session, backend } = await bench([call('draw', {}), { text: 'ok' }], {
      tools: [
        tool({
          name: 'draw',
          description: 'd',
          effects: ['read'],
          input: {},
          run: () => [{ type: 'data', mediaType: 'image/png', data }],
        }),
      ],
    })
    await session.run('Go.')
    expect(JSON.stringify(await eventsOf(session)).length).toBeLessThan(100_000)
    expect(await backend.files.list(session.key, 'artifacts/')).toHaveLength(1)
  })

  test('a tool that changes its input does not change what was judged', async () => {
    const { session } = await bench([call('messy', { list: [1] }), { text: 'ok' }], {
      tools: [
        tool({
          name: 'messy',
          description: 'm',
          effects: ['read'],
          input: { type: 'object', properties: { list: { type: 'array' } } },
          run: (input) => {
            ;(input.list as number[]).push(2)
          },
        }),
      ],
    })
    await session.run('Go.')
    expect((await eventsOf(session, 'call.decided'))[0]?.arguments).toEqual({ list: [1] })
  })

  test('five hundred inputs of one session are answered in reasonable time', { timeout: 60_000 }, async () => {
    const { session } = await bench(() => ({ text: 'ok' }))
    const results = await Promise.all(Array.from({ length: 500 }, (_, n) => session.run(`${n}`)))
    expect(results.every((it) => it.text === 'ok')).toBe(true)
  })

  test('folding at once and one by one is the same', async () => {
    const { session } = await bench(() => ({ text: 'ok' }))
    for (let n = 0; n < 30; n++) await session.run('Go.')
    const events = await eventsOf(session)
    expect(events.length).toBeGreaterThan(100)
    expect(evolveAll(emptyState, events)).toEqual(events.reduce(evolve, emptyState))
  })

  test('a process that waits for a turn of another one stays alive', async () => {
    // Nothing but the wait holds this process: it must end by its own end, not by running out of things to do.
    const script = `
      import { agent, createEngine } from '@oxbow/core'
      import { memory } from '@oxbow/backends'
      const backend = memory()
      const model = { id: 'm', generate: () => new Promise(() => {}) }
      const engine = createEngine({ backend, agents: [agent({ name: 'a', model, instructions: '' })] })
      const session = engine.session({ user: 'u', session: 's' })
      const key = { tenant: 'default', user: 'u', session: 's' }
      const bodies = [
        { type: 'session.opened', schemaVersion: 1, key, agent: { name: 'a', version: '1' } },
        { type: 'turn.started', turnId: 't', input: [{ type: 'text', text: 'x' }], surface: 's', principal: { user: 'u' }, agent: { name: 'a', version: '1' }, options: {} },
        { type: 'turn.claimed', turnId: 't', worker: 'other', epoch: 1 },
      ]
      await backend.workers.announce('other')
      await backend.journal.append(key, 0, bodies.map((it, i) => ({ ...it, seq: i + 1, at: 0 })), { status: 'running', agent: 'a', title: '' })
      setTimeout(() => { console.log('still here'); process.exit(0) }, 1500).unref()
      await session.wait('t')`
    const run = promisify(execFile)
    const args = ['--conditions=oxbow-source', '--input-type=module', '-e', script]
    const { stdout } = await run(process.execPath, args, { timeout: 15_000 })
    expect(stdout).toContain('still here')
  })
})

describe('mistakes in plain JavaScript are reported at once', () => {
  const fine = { name: 't', description: 't', effects: ['read'], input: {}, run: () => '' }
  test.each([
    [{ ...fine, effects: 'read' }, 'effects must list what the tool can do'],
    [{ ...fine, effects: undefined }, 'effects must list what the tool can do'],
    [{ ...fine, effects: ['fly'] }, 'unknown effect "fly"'],
    [{ ...fine, description: undefined }, 'describe for the model'],
    [{ ...fine, input: undefined }, 'input must be a schema'],
    [{ ...fine, run: undefined }, 'externalTool()'],
    [{ ...fine, timeoutMs: 0 }, 'timeoutMs'],
  ])('tool %j', (definition, message) => {
    expect(() => tool(definition as never)).toThrow(message)
  })

  const model = { id: 'm', generate: async () => ({}) }
  test.each([
    [{ name: 'a', model: 'openai:gpt-5', instructions: '' }, 'nothing here opens models by name'],
    [{ name: 'a', instructions: '' }, 'model must be a Model'],
    [{ name: 'a', model }, 'instructions must be a text'],
    [{ name: 'a', model, instructions: '', tools: [fine] }, 'made with tool()'],
    [{ name: 'a', model, instructions: '', mode: 'wild' }, 'mode must be one of'],
  ])('agent %j', (definition, message) => {
    expect(() => agent(definition as never)).toThrow(message)
  })

  test('engine', () => {
    expect(() => createEngine({ agents: [] } as never)).toThrow('needs a backend')
    expect(() => createEngine({ backend: memory(), agents: [] })).toThrow('at least one agent')
  })
})

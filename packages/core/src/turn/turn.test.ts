import { eventsOf, gate, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { assertWhole, bench, call, echo, ofType } from '../core.fixture.ts'
import { isEvent } from '../index.ts'

describe('a turn', () => {
  test('H1: answers a question with a tool, and its events fold to the conversation', async () => {
    const { session, server } = await bench([call('echo', { text: 'hi' }), { text: 'It says hi.' }], { tools: [echo] })
    const result = await session.run('Say hi.')
    expect(result).toMatchObject({ status: 'finished', reason: 'completed', text: 'It says hi.', steps: 2 })
    const { messages } = await session.state()
    expect(messages.map((it) => it.role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    assertWhole(await eventsOf(session))
    server.assertDrained()
  })

  test('the fragments of a stream join to the stored message', async () => {
    const { session } = await bench([{ thinking: 'hm hm', text: 'one two three' }])
    const items = await Array.fromAsync(session.stream('Count.'))
    const joined = (type: string) => items.map((it) => (it.type === type && 'text' in it ? it.text : '')).join('')
    expect(joined('text.delta')).toBe('one two three')
    expect(joined('thinking.delta')).toBe('hm hm')
    const [finished] = ofType(items, 'model.finished')
    expect(finished?.message.blocks).toEqual([
      { type: 'thinking', text: 'hm hm' },
      { type: 'text', text: 'one two three' },
    ])
    expect(items.filter(isEvent).at(-1)?.type).toBe('turn.finished')
  })

  test('the same turn id is the same turn, while it runs and after it', async () => {
    const held = gate()
    const { session, server } = await bench([{ text: 'once only', hold: { atChunk: 1, gate: held } }])
    const first = session.run('Go.', { turnId: 't1' })
    await held.reached
    const second = session.run('Go.', { turnId: 't1' })
    held.open()
    expect((await first).text).toBe('once only')
    expect((await second).text).toBe('once only')
    expect((await session.run('Go.', { turnId: 't1' })).text).toBe('once only')
    expect(server.requests).toHaveLength(1)
    expect(await eventsOf(session, 'turn.started')).toHaveLength(1)
  })

  test('Y9: an input for a busy session runs after the turn that is running', async () => {
    const held = gate()
    const { session, server } = await bench([{ text: 'first', hold: { atChunk: 0, gate: held } }, { text: 'second' }])
    const first = session.run('One.')
    await held.reached
    const submitted = await session.submit('Two.', { turnId: 't2' })
    expect(submitted.accepted).toBe('queued')
    expect(server.requests).toHaveLength(1)
    held.open()
    expect((await first).text).toBe('first')
    expect((await session.run('Two.', { turnId: 't2' })).text).toBe('second')
    const { messages } = await session.state()
    expect(messages.map((it) => it.blocks[0])).toMatchObject([
      { text: 'One.' },
      { text: 'first' },
      { text: 'Two.' },
      { text: 'second' },
    ])
    assertWhole(await eventsOf(session))
  })

  test('an id that was used for another input is refused, while it runs and when it has ended', async () => {
    const { session } = await bench([{ text: 'Paid.' }])
    const running = session.run('Pay the first.', { turnId: 't1' })
    const ask = (input: Parameters<typeof session.run>[0]) => session.run(input, { turnId: 't1' })
    await expect(ask('Pay the second.')).rejects.toMatchObject({ code: 'turn_conflict' })
    expect((await running).text).toBe('Paid.')
    await expect(ask('Pay the second.')).rejects.toMatchObject({ code: 'turn_conflict' })
    expect((await ask([{ type: 'text', text: 'Pay the first.' }])).text).toBe('Paid.')
  })

  test('a steering input joins at the next step of the running turn', async () => {
    const held = gate()
    const { session, server } = await bench(
      [{ ...call('echo', { text: 'a' }), hold: { atChunk: 0, gate: held } }, { text: 'Blue, then.' }],
      { tools: [echo] },
    )
    const running = session.run('Paint it.')
    await held.reached
    const steered = await session.submit('Make it blue.', { whenBusy: 'steer', turnId: 'in1' })
    expect(steered.accepted).toBe('steered')
    expect((await session.submit('Make it blue.', { whenBusy: 'steer', turnId: 'in1' })).accepted).toBe('duplicate')
    const other = session.submit('Make it red.', { whenBusy: 'steer', turnId: 'in1' })
    await expect(other).rejects.toMatchObject({ code: 'turn_conflict' })
    held.open()
    expect((await running).text).toBe('Blue, then.')
    expect(server.requests[1]?.messages.at(-1)).toMatchObject({ role: 'user', content: 'Make it blue.' })
    expect(await eventsOf(session, 'turn.steered')).toHaveLength(1)
  })

  test('a steering input during the last answer gets a separate answer', async () => {
    const held = gate()
    const { session } = await bench([{ text: 'done', hold: { atChunk: 0, gate: held } }, { text: 'done again' }])
    const running = session.run('Go.')
    await held.reached
    await session.submit('And again.', { whenBusy: 'steer' })
    held.open()
    expect((await running).text).toBe('done again')
  })

  test('a busy session refuses when asked to', async () => {
    const held = gate()
    const { session } = await bench([{ text: 'first', hold: { atChunk: 0, gate: held } }])
    const running = session.run('One.')
    await held.reached
    await expect(session.submit('Two.', { whenBusy: 'refuse' })).rejects.toMatchObject({ code: 'session_busy' })
    held.open()
    await running
  })

  test('B11: after the step limit one last call without tools ends the turn with max_steps', async () => {
    const { session, server } = await bench(
      (request) => (request.tools.length > 0 ? call('echo', { text: 'again' }) : { text: 'That is all I found.' }),
      { tools: [echo], limits: { maxSteps: 3 } },
    )
    const result = await session.run('Loop.')
    expect(result).toMatchObject({ status: 'finished', reason: 'max_steps', text: 'That is all I found.', steps: 4 })
    expect(server.requests.map((it) => it.tools.length)).toEqual([2, 2, 2, 0])
  })

  test('calls that the model makes after the step limit are answered and not run', async () => {
    const { session } = await bench(() => call('echo', { text: 'again' }), { tools: [echo], limits: { maxSteps: 1 } })
    expect(await session.run('Loop.')).toMatchObject({ status: 'finished', reason: 'max_steps' })
    const finished = await eventsOf(session, 'call.finished')
    expect(finished.map((it) => it.error?.code)).toEqual([undefined, 'tools_not_offered'])
    assertWhole(await eventsOf(session))
  })

  test('an empty answer is requested once more, and then reported as empty', async () => {
    const { session } = await bench([{ text: '' }, { text: 'now' }, { text: '' }, { text: ' ' }])
    expect((await session.run('One.')).text).toBe('now')
    await expect(session.run('Two.')).rejects.toMatchObject({ code: 'empty_reply' })
    const { messages } = await session.state()
    expect(messages.every((it) => it.blocks.length > 0)).toBe(true)
    assertWhole(await eventsOf(session))
  })

  test('a provider failure ends the turn with its code, and the session continues', async () => {
    const { session, errors } = await bench([
      { status: 401, body: { error: { message: 'bad key' } } },
      { text: 'half an ', finishReason: null, done: false },
      { text: 'fine' },
    ])
    await expect(session.run('One.')).rejects.toMatchObject({ code: 'auth' })
    await expect(session.run('Two.')).rejects.toMatchObject({ code: 'stream_cut' })
    const cut = (await eventsOf(session, 'model.finished')).at(-1)
    expect(cut?.message).toMatchObject({ partial: true, blocks: [{ type: 'text', text: 'half an ' }] })
    expect((await session.run('Three.')).text).toBe('fine')
    expect(errors).toHaveLength(2)
    assertWhole(await eventsOf(session))
  })

  test('a third-party model may throw anything and ignore the signal', async () => {
    const { session, server } = await bench([], {
      model: {
        id: 'own:model',
        async generate(request, { onDelta }) {
          onDelta({ type: 'text', block: 0, text: 'as far as' })
          if (request.messages.length === 1) throw new TypeError('x is not a function')
          return new Promise(() => {})
        },
      },
    })
    await expect(session.run('One.')).rejects.toMatchObject({ code: 'provider_error' })
    const stream = session.stream('Two.')
    for await (const it of stream) if (it.type === 'text.delta') break
    await session.interrupt()
    expect(await stream.result).toMatchObject({ status: 'cancelled', text: 'as far as' })
    expect(server.requests).toHaveLength(0)
    assertWhole(await eventsOf(session))
  })

  test('the total limit ends the turn', async () => {
    const { session, server } = await bench([{ text: 'never', silentAfterChunks: 0 }])
    await expect(session.run('Go.', { totalTimeoutMs: 30 })).rejects.toMatchObject({ code: 'total_timeout' })
    await server.requests[0]?.waitForAbort()
    assertWhole(await eventsOf(session))
  })

  test('the idle limit ends a turn that makes no progress, and keeps what was shown', async () => {
    const { session } = await bench([{ text: 'some words came', silentAfterChunks: 2 }])
    await expect(session.run('Go.', { idleTimeoutMs: 40 })).rejects.toMatchObject({ code: 'idle_timeout' })
    const [finished] = await eventsOf(session, 'model.finished')
    expect(finished).toMatchObject({ finishReason: 'cancelled', message: { partial: true } })
    assertWhole(await eventsOf(session))
  })
})

describe('an interrupt', () => {
  test('H4: stops the model, keeps what was shown, and leaves one terminal event', async () => {
    const { session, server } = await bench([{ text: 'one two three', silentAfterChunks: 2 }, { text: 'hello' }])
    const stream = session.stream('Count.')
    for await (const it of stream) if (it.type === 'text.delta' && it.text.includes('two')) break
    expect(await session.interrupt({ reason: 'enough' })).toBe(stream.turnId)
    expect(await stream.result).toMatchObject({ status: 'cancelled', reason: 'enough', text: 'one two' })
    await server.requests[0]?.waitForAbort()
    expect((await session.run('Hello?')).text).toBe('hello')
    assertWhole(await eventsOf(session))
  })

  test('arrives from another process', async () => {
    const { session, another, server } = await bench([{ text: 'one two', silentAfterChunks: 1 }])
    const stream = session.stream('Count.')
    await (await server.nextRequest()).headers
    const other = another().session({ user: 'ann', session: 's1' })
    expect(await other.interrupt()).toBe(stream.turnId)
    // The memory back end sends no wake-ups; reading the state reads the journal.
    await session.state()
    expect(await stream.result).toMatchObject({ status: 'cancelled' })
    assertWhole(await eventsOf(session))
  })

  test('hits nothing when nothing runs, and says so', async () => {
    const { session } = await bench([{ text: 'x' }])
    expect(await session.interrupt()).toBeUndefined()
    await session.run('Go.', { turnId: 't1' })
    expect(await session.interrupt({ turnId: 't1' })).toBeUndefined()
    expect(await eventsOf(session, 'interrupt.requested')).toHaveLength(0)
  })

  test('of a queued turn cancels that turn only', async () => {
    const held = gate()
    const { session, server } = await bench([{ text: 'first', hold: { atChunk: 0, gate: held } }])
    const first = session.run('One.')
    await held.reached
    const second = session.run('Two.', { turnId: 't2' })
    await until(async () => (await session.state()).queue.length === 1)
    expect(await session.interrupt({ turnId: 't2' })).toBe('t2')
    held.open()
    expect((await first).text).toBe('first')
    expect((await second).status).toBe('cancelled')
    expect(server.requests).toHaveLength(1)
    assertWhole(await eventsOf(session))
  })

  test('by an aborted signal is the same', async () => {
    const { session, server } = await bench([{ text: 'one', silentAfterChunks: 0 }])
    const controller = new AbortController()
    const running = session.run('Go.', { signal: controller.signal })
    await server.nextRequest()
    controller.abort()
    expect((await running).status).toBe('cancelled')
  })
})

describe('two workers', () => {
  test('a turn is worked on by one of them, and both see it', async () => {
    const held = gate()
    const { session, another, server } = await bench([{ text: 'mine', hold: { atChunk: 0, gate: held } }])
    const mine = session.run('Go.', { turnId: 't1' })
    await held.reached
    const engine = another()
    await engine.start()
    expect(engine.running).toBe(0)
    held.open()
    expect((await mine).text).toBe('mine')
    expect((await engine.session({ user: 'ann', session: 's1' }).result('t1'))?.text).toBe('mine')
    expect(server.requests).toHaveLength(1)
  })

  test('a stale worker stops at its next append and writes nothing', async () => {
    const held = gate()
    const { session, backend, server } = await bench([
      { text: 'stale', hold: { atChunk: 0, gate: held } },
      { text: 'unused' },
    ])
    const { turnId } = session.stream('Go.')
    await held.reached
    const head = await backend.journal.head(session.key)
    await backend.journal.append(
      session.key,
      head,
      [{ type: 'turn.claimed', turnId, worker: 'somebody_else', epoch: 2, seq: head + 1, at: 0 }],
      { status: 'running', agent: 'helper', title: 'Go.' },
    )
    held.open()
    await server.requests[0]?.closed
    await until(async () => (await session.state()).turn?.claim?.epoch === 2)
    expect(await eventsOf(session, 'model.finished')).toHaveLength(0)
  })

  test('a turn that is claimed again and again without progress is parked, and can be released', async () => {
    const { session, backend, engine } = await bench([{ text: 'at last' }])
    const { key } = session
    const at = { at: 0 }
    const principal = { user: 'ann' }
    const agent = { name: 'helper', version: '1' }
    await backend.journal.append(
      key,
      0,
      [
        { type: 'session.opened', schemaVersion: 1, key: { ...key }, agent, seq: 1, ...at },
        {
          type: 'turn.started',
          turnId: 't1',
          input: [{ type: 'text', text: 'Go.' }],
          surface: 'library',
          principal,
          agent,
          options: {},
          seq: 2,
          ...at,
        },
        ...[3, 4, 5, 6, 7].map((seq) => ({
          type: 'turn.claimed' as const,
          turnId: 't1',
          worker: 'dead',
          epoch: seq - 2,
          seq,
          ...at,
        })),
      ],
      { status: 'running', agent: 'helper', title: 'Go.' },
    )
    await engine.start()
    expect(await session.run('Go.', { turnId: 't1' })).toMatchObject({ status: 'paused', reason: 'recovery_limit' })
    expect(await engine.sessions({ status: 'parked' })).toHaveLength(1)
    await session.release()
    expect(await session.run('Go.', { turnId: 't1' })).toMatchObject({ status: 'finished', text: 'at last' })
  })

  test('shutdown leaves an open turn for the next start', async () => {
    const { session, engine, another } = await bench((request) =>
      request.number === 0 ? { text: 'never', silentAfterChunks: 0 } : { text: 'resumed' },
    )
    const running = session.run('Go.', { turnId: 't1' })
    running.catch(() => {})
    await until(() => engine.running === 1)
    await engine.stop(0)
    await expect(running).rejects.toMatchObject({ code: 'shutting_down', retryable: true })
    const next = another()
    await next.start()
    const resumed = await next.session({ user: 'ann', session: 's1' }).run('Go.', { turnId: 't1' })
    expect(resumed.text).toBe('resumed')
    assertWhole(await eventsOf(next.session({ user: 'ann', session: 's1' })))
  })
})

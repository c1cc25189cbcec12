import { eventsOf, gate } from '@oxbow/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { bench, call, echo } from '../core.fixture.ts'
import { externalTool, tool } from '../index.ts'
import { dwellTimes, taskOf } from '../internal.ts'

afterEach(() => vi.useRealTimers())

/** Only the clock of events and deadlines: timers are unaffected. */
function setClock(at: number): void {
  if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ['Date'] })
  vi.setSystemTime(at)
}

describe('B7: a turn as a task', () => {
  test('goes through its states, and the fold of the journal is the same as the state', async () => {
    const held = gate()
    const slow = tool({ ...echo, name: 'slow', run: () => held.pass(), input: { type: 'object' } } as never)
    const { session } = await bench([call('slow', {}), { text: 'Done.' }], { tools: [slow] })
    const running = session.run('Go.', { turnId: 't1' })
    await held.reached
    await expect.poll(async () => (await session.state()).turn?.task.state).toBe('WAITING_TOOL')
    held.open()
    await running
    const events = await eventsOf(session)
    const states = events.map((_, index) => taskOf('t1', events.slice(0, index + 1))?.state)
    expect(states.filter((it, index) => it !== undefined && it !== states[index - 1])).toEqual([
      'CREATED',
      'RUNNING',
      'WAITING_TOOL',
      'RUNNING',
      'COMPLETED',
    ])
  })

  test('that fails, and one that is stopped', async () => {
    const held = gate()
    const { session } = await bench([
      { status: 401, body: {} },
      { text: 'one two', hold: { atChunk: 1, gate: held } },
    ])
    await session.run('Go.', { turnId: 't1' }).catch(() => {})
    const running = session.run('Go.', { turnId: 't2' })
    await held.reached
    await session.interrupt({ turnId: 't2' })
    await running
    const events = await eventsOf(session)
    expect([taskOf('t1', events)?.state, taskOf('t2', events)?.state]).toEqual(['FAILED', 'CANCELLED'])
  })

  test('waits for a person or for a tool, and knows for how long', async () => {
    const form = externalTool({ name: 'form', description: 'Asks.', effects: ['read'], input: { type: 'object' } })
    const save = tool({
      ...echo,
      name: 'save',
      effects: ['write'],
      input: { type: 'object' },
      run: () => 'ok',
    } as never)
    const { session } = await bench([call('save', {}), call('form', {}), { text: 'Done.' }], { tools: [form, save] })
    const start = Date.now()
    setClock(start)
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    expect((await session.state()).turn?.task.state).toBe('WAITING_USER')
    setClock(start + 5_000)
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved' })
    const { pending } = await session.wait('t1')
    expect((await session.state()).turn?.task.state).toBe('WAITING_TOOL')
    setClock(start + 7_000)
    await session.resolve(pending[0]!.callId, { content: 'filled' })
    await session.wait('t1')
    const task = taskOf('t1', await eventsOf(session))!
    expect(task.state).toBe('COMPLETED')
    expect(dwellTimes(task, start + 99_000)).toEqual({
      CREATED: 0,
      RUNNING: 0,
      WAITING_TOOL: 2_000,
      WAITING_USER: 5_000,
    })
  })
})

describe('B7: a state that lasts too long', () => {
  test('of a tool that is stuck ends the turn with what has been shown, and alerts', async () => {
    const held = gate()
    const stuck = tool({
      ...echo,
      name: 'stuck',
      timeoutMs: 1e8,
      input: { type: 'object' },
      run: () => held.pass(),
    } as never)
    const { session, engine, errors } = await bench([{ text: 'I try.', ...call('stuck', {}) }], {
      tools: [stuck],
      limits: { stateTimeoutsMs: { WAITING_TOOL: 1_000 } },
    })
    const running = session.run('Go.', { turnId: 't1' })
    await held.reached
    await expect.poll(async () => (await session.state()).turn?.task.state).toBe('WAITING_TOOL')
    await engine.recover()
    expect((await session.result('t1'))?.status).toBe('running')
    setClock(Date.now() + 2_000)
    await engine.recover()
    await expect(running).rejects.toMatchObject({ code: 'state_timeout' })
    expect(errors).toMatchObject([{ code: 'state_timeout', details: { state: 'WAITING_TOOL' } }])
    expect(await eventsOf(session, 'call.finished')).toHaveLength(1)
    held.open()
  })

  test('of a worker that does not even stop loses it the turn', async () => {
    const held = gate()
    const { session, engine, server } = await bench([{ text: 'late' }], {
      middleware: [
        {
          name: 'hangs',
          async onAgent(_context, next) {
            await held.pass()
            await next()
          },
        },
      ],
      limits: { stateTimeoutsMs: { RUNNING: 1_000 } },
    })
    const running = session.run('Go.', { turnId: 't1' })
    await held.reached
    setClock(Date.now() + 2_000)
    await engine.recover()
    await engine.recover()
    await expect(running).rejects.toMatchObject({ code: 'state_timeout' })
    held.open()
    expect(server.requests).toHaveLength(0)
  })

  test('waits longer for people, and ends abandoned turns', async () => {
    const form = externalTool({ name: 'form', description: 'Asks.', effects: ['read'], input: { type: 'object' } })
    const { session, engine } = await bench([call('form', {})], { tools: [form] })
    await session.run('Go.', { turnId: 't1' })
    const day = 24 * 3_600_000
    setClock(Date.now() + 29 * day)
    await engine.recover()
    expect((await session.result('t1'))?.status).toBe('paused')
    setClock(Date.now() + 2 * day)
    await engine.recover()
    expect(await session.result('t1')).toMatchObject({ status: 'failed', reason: 'state_timeout' })
  })

  test('does not count against a turn whose process died: it is resumed', async () => {
    const held = gate()
    const { session, engine, another } = await bench(
      [{ text: 'one two', hold: { atChunk: 1, gate: held } }, { text: 'Done.' }],
      { limits: { stateTimeoutsMs: { RUNNING: 1_000, CREATED: 1_000 } } },
    )
    await session.submit('Go.', { turnId: 't1' })
    await held.reached
    await engine.stop(0)
    held.open()
    setClock(Date.now() + 3_600_000)
    const other = another()
    await other.start()
    expect(await other.session({ user: 'ann', session: 's1' }).wait('t1')).toMatchObject({ text: 'Done.' })
  })
})

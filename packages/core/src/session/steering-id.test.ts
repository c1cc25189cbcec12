import { eventsOf } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { bench, call } from '../core.fixture.ts'
import { externalTool } from '../index.ts'

const lookup = externalTool({
  name: 'lookup',
  description: 'Looks something up elsewhere.',
  input: { type: 'object' },
  effects: ['read'],
})

/** The turn `t` waits for an external call, and the input `i` has joined it. */
async function steered() {
  const it = await bench([call('lookup', {}), { text: 'done' }], { tools: [lookup] })
  await it.session.run('one', { turnId: 't' })
  const submitted = await it.session.submit('two', { turnId: 'i', whenBusy: 'steer' })
  expect(submitted).toMatchObject({ turnId: 't', accepted: 'steered' })
  const [requested] = await eventsOf(it.session, 'external.requested')
  return { ...it, finish: () => it.session.resolve(requested!.callId, { content: 'found' }) }
}

describe('the id of a steering input names the turn that it joined', () => {
  test('wait() ends with that turn', async () => {
    const { session, finish } = await steered()
    await finish()
    expect(await session.wait('t')).toMatchObject({ turnId: 't', status: 'finished' })
    expect(await session.wait('i')).toMatchObject({ turnId: 't', status: 'finished', text: 'done' })
  })

  test('result() is the result of that turn', async () => {
    const { session, finish } = await steered()
    expect(await session.result('i')).toMatchObject({ turnId: 't', status: 'paused' })
    await finish()
    await session.wait('t')
    expect(await session.result('i')).toEqual(await session.result('t'))
  })

  test('interrupt() stops that turn, and answers with its id', async () => {
    const { session } = await steered()
    expect(await session.interrupt({ turnId: 'i' })).toBe('t')
    expect(await session.wait('t')).toMatchObject({ status: 'cancelled' })
    const [requested] = await eventsOf(session, 'interrupt.requested')
    expect(requested!.turnId).toBe('t')
    expect(await session.interrupt({ turnId: 'i' })).toBeUndefined()
  })

  test('pause() and fail() act on that turn', async () => {
    const paused = await steered()
    expect(await paused.session.pause({ turnId: 'i' })).toBe('t')
    const failed = await steered()
    expect(await failed.session.fail('i', { code: 'internal_error', message: 'no' })).toBe(true)
    expect(await failed.session.result('t')).toMatchObject({ status: 'failed' })
  })
})

// Turns that another user starts in a session: they run with that user's rights.
import { eventsOf, gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { bench, call } from '../core.fixture.ts'
import { externalTool, type Principal, type Tool, tool } from '../index.ts'

const root: Principal = { user: 'root', permissions: ['oxbow:admin', 'files:delete'] }
const ann: Principal = { user: 'ann', permissions: [] }

function deleting(ran: unknown[]): Tool {
  return tool({
    name: 'delete',
    description: 'Deletes.',
    effects: ['write'],
    permission: 'files:delete',
    input: { type: 'object', properties: { id: { type: 'string' } } },
    run: (input, { principal }) => {
      ran.push([principal.user, input])
      return 'deleted'
    },
  })
}

describe('another user’s turn in a session', () => {
  test('is for them to decide on, and not for me', async () => {
    const ran: unknown[] = []
    const { session } = await bench([call('delete', { id: 'one' }), { text: 'ok' }], { tools: [deleting(ran)] })
    const { approvals } = await session.run('Tidy up.', { turnId: 't', principal: root })
    const { approvalId } = approvals[0]!
    const everything = { verdict: 'approved', arguments: { id: 'EVERYTHING' } } as const
    for (const options of [{ principal: ann }, {}])
      await expect(session.decide(approvalId, everything, options)).rejects.toMatchObject({
        code: 'approval_forbidden',
      })
    await session.decide(approvalId, { verdict: 'approved' }, { principal: root })
    await session.wait('t')
    expect(ran).toEqual([['root', { id: 'one' }]])
  })

  test('does not use the rules that I have accepted, in this session or for myself', async () => {
    for (const scope of ['session', 'user'] as const) {
      const ran: unknown[] = []
      const { session } = await bench(
        [call('delete', { id: 'mine' }), { text: 'ok' }, call('delete', { id: 'theirs' }), { text: 'ok' }],
        { tools: [deleting(ran)] },
      )
      const able = { ...ann, permissions: ['files:delete'] }
      const { approvals } = await session.run('Tidy up.', { turnId: 't', principal: able })
      await session.decide(approvals[0]!.approvalId, { verdict: 'approved', remember: { rule: 'delete', scope } })
      await session.wait('t')
      expect(await session.run('Tidy up.', { principal: root })).toMatchObject({ status: 'paused', reason: 'approval' })
      expect(ran).toEqual([['ann', { id: 'mine' }]])
    }
  })

  test('is not joined by what I say meanwhile: that becomes a turn of my own', async () => {
    const open = gate()
    const wait = tool({ name: 'wait', description: 'w', effects: ['read'], input: {}, run: () => open.pass() })
    const { session } = await bench([call('wait', {}), { text: 'for root' }, { text: 'for ann' }], { tools: [wait] })
    const running = session.run('Go.', { turnId: 't', principal: root })
    await open.reached
    const mine = await session.submit('Read me the payroll.', { turnId: 'mine', principal: ann, whenBusy: 'steer' })
    expect(mine).toMatchObject({ turnId: 'mine', accepted: 'queued' })
    open.open()
    expect((await running).text).toBe('for root')
    expect((await session.wait('mine')).text).toBe('for ann')
    expect((await eventsOf(session, 'turn.started')).map((it) => it.principal.user)).toEqual(['root', 'ann'])
  })

  test('gets the results of its calls from them, and not from me', async () => {
    const look = externalTool({ name: 'look', description: 'Looks.', effects: ['read'], input: {} })
    const { session } = await bench([call('look', {}), { text: 'ok' }], { tools: [look] })
    const { callId } = (await session.run('Go.', { turnId: 't', principal: root })).pending[0]!
    await expect(session.resolve(callId, { content: 'x' }, { principal: ann })).rejects.toMatchObject({
      code: 'result_forbidden',
    })
    await session.resolve(callId, { content: 'x' }, { principal: root })
    expect((await session.wait('t')).text).toBe('ok')
  })
})

import { describe, expect, test } from 'vitest'
import { bench, call } from '../core.fixture.ts'
import { agent, createEngine, externalTool, tool } from '../index.ts'

const schema = (properties: object, required: string[] = []) => ({ type: 'object', properties, required })

const dropTool = tool({
  name: 'drop',
  description: 'Drops.',
  effects: ['write'],
  secrets: ['password'],
  input: schema({ id: { type: 'number' }, password: { type: 'string' } }, ['id']),
  run: () => 'dropped',
})
const listTool = tool({
  name: 'list',
  description: 'Lists.',
  effects: ['write'],
  input: schema({ id: { type: 'number' } }, ['id']),
  run: () => 'listed',
})
const elsewhere = externalTool({ name: 'elsewhere', description: 'Done by others.', effects: ['write'], input: {} })

describe('B4: the audit log', () => {
  test('also records a call that was refused before the gate, with the model’s arguments but no secrets', async () => {
    const { session, backend } = await bench(
      [
        {
          calls: [
            { name: 'drop', arguments: { id: 'all', password: 'hunter2' } },
            { name: 'drop', arguments: '{"password": "hunter2' },
            { name: 'list', arguments: { id: 'all' } },
            { name: 'list', arguments: '[1, 2]' },
          ],
        },
        { text: 'Done.' },
      ],
      { tools: [dropTool, listTool], allow: ['drop', 'list'] },
    )
    await session.run('Go.')
    const { records } = await backend.journal.audit({})
    expect(records.map((it) => [it.event, it.tool, it.status, it.arguments])).toEqual([
      ['call.finished', 'drop', 'error', { id: 'all', password: '[redacted]' }],
      ['call.finished', 'drop', 'error', { unreadable: '[redacted]' }],
      ['call.finished', 'list', 'error', { id: 'all' }],
      ['call.finished', 'list', 'error', { unreadable: '[1, 2]' }],
    ])
  })

  test('records who delivered an external result, without their credentials', async () => {
    const { session, backend } = await bench([call('elsewhere', { order: 7 }), { text: 'Done.' }], {
      tools: [elsewhere],
      allow: ['elsewhere'],
    })
    const principal = { user: 'ann', credential: 'key-1' }
    const { pending } = await session.run('Go.', { turnId: 't1', principal })
    await session.resolve(
      pending[0]!.callId,
      { content: 'shipped' },
      { principal: { ...principal, credential: 'key-2' } },
    )
    await session.wait('t1')
    const { records } = await backend.journal.audit({})
    expect(records.map((it) => [it.event, it.broughtBy, it.status])).toEqual([
      ['call.decided', undefined, undefined],
      ['external.resolved', 'ann', undefined],
      ['call.finished', undefined, 'success'],
    ])
    expect(records[1]).toMatchObject({ tool: 'elsewhere', arguments: { order: 7 }, principal: { user: 'ann' } })
    expect(JSON.stringify(records)).not.toContain('key-')
  })

  test('hides secret fields at any depth, and all arguments of an unknown tool', async () => {
    const login = tool({
      name: 'login',
      description: 'Signs in.',
      effects: ['write'],
      secrets: ['password'],
      input: schema({ account: {}, password: {} }),
      run: () => 'in',
    })
    const deep = { account: { name: 'ann', password: 'hunter1' } }
    const {
      session,
      engine,
      backend,
      agent: helper,
    } = await bench(
      [call('login', deep, 'login', { password: 'hunter2' }, 'no_such_tool', { password: 'hunter3' }), { text: 'ok' }],
      { tools: [login] },
    )
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await engine.stop(0)
    const stranger = createEngine({
      backend,
      agents: [agent({ name: 'other', model: helper.model, instructions: 'x' })],
    })
    const there = stranger.session({ user: 'ann', session: 's1' })
    await there.decide(approvals[0]!.approvalId, { verdict: 'denied' })
    await stranger.stop(0)
    const { records } = await backend.journal.audit({})
    expect(records.map((it) => [it.event, it.arguments])).toEqual([
      ['call.decided', { account: { name: 'ann', password: '[redacted]' } }],
      ['call.decided', { password: '[redacted]' }],
      ['call.finished', { hidden: '[redacted]' }],
      ['approval.resolved', { hidden: '[redacted]' }],
    ])
    expect(JSON.stringify(records)).not.toContain('hunter')
  })
})

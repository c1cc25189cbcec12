// B17: what tells that something is stuck.
import { tool } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { json, type Rig, rigs } from './test.fixture.ts'

const start = rigs()
const pay = tool({ name: 'pay', description: 'Pays.', effects: ['write'], input: {}, run: () => 'paid' })
const replies = [{ calls: [{ name: 'pay' }] }, { text: 'Done.' }]

async function figures({ get }: Pick<Rig, 'get'>): Promise<Record<string, number>> {
  const answer = await get('/metrics')
  expect(answer.status).toBe(200)
  const lines = (await answer.text()).split('\n').filter((it) => !it.startsWith('#') && it !== '')
  return Object.fromEntries(
    lines.map((it) => [it.slice(0, it.lastIndexOf(' ')), Number(it.slice(it.lastIndexOf(' ')))]),
  )
}

describe('B17 /metrics', () => {
  test('counts open sessions by status, tells the longest standstill, and how long ended turns were in each state', async () => {
    const rig = await start({ agent: { tools: [pay] }, replies })
    const asked = await json(rig.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Pay.' }))
    const waiting = await figures(rig)
    expect(waiting).toMatchObject({
      'oxbow_sessions_open{status="waiting"}': 1,
      'oxbow_sessions_open{status="running"}': 0,
      'oxbow_sessions_open{status="parked"}': 0,
      oxbow_turns_overdue: 0,
    })
    expect(waiting['oxbow_session_longest_still_seconds{status="waiting"}']).toBeGreaterThan(0)
    await rig.post(`/api/approvals/${asked.approvals[0].id}`, { verdict: 'approved' })
    await rig.engine.session({ user: 'default', session: 's' }).wait('t')
    const over = await figures(rig)
    expect(over['oxbow_sessions_open{status="waiting"}']).toBe(0)
    for (const state of ['RUNNING', 'WAITING_TOOL', 'WAITING_USER'])
      expect(over[`oxbow_turn_state_seconds_count{state="${state}"}`]).toBe(1)
    expect(over['oxbow_turn_state_seconds_sum{state="WAITING_USER"}']).toBeGreaterThan(0)
  })

  test('counts turns that are over their time limit, until somebody has ended them', async () => {
    const rig = await start({ agent: { tools: [pay], limits: { approvalTimeoutMs: 1 } }, replies })
    await rig.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Pay.' })
    expect((await figures(rig)).oxbow_turns_overdue).toBe(1)
    await rig.engine.recover()
    await rig.engine.session({ user: 'default', session: 's' }).wait('t')
    expect((await figures(rig)).oxbow_turns_overdue).toBe(0)
  })

  test('tells what it knows also when the store cannot be read', async () => {
    const rig = await start({ replies })
    await rig.engine.backend.close()
    const all = await figures(rig)
    expect(all.oxbow_turns_running).toBe(0)
    expect(all.oxbow_turns_overdue).toBeNaN()
    expect(Object.keys(all).filter((it) => it.startsWith('oxbow_sessions_open'))).toEqual([])
  })
})

import { eventsOf } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { assertWhole, bench, call, resultsSent } from '../core.fixture.ts'
import { needsApproval, type ToolContext, type ToolDecision, tool, turnResult } from '../index.ts'

type Seen = Pick<ToolContext, 'operationId' | 'attempt' | 'decision' | 'denyRules'>

/** Requests an approval at its first attempt, and returns the decision at the next. */
function askingTool(seen: Seen[], more: object = {}) {
  return tool({
    name: 'research',
    description: 'Researches.',
    effects: ['delegate'],
    input: { type: 'object', properties: {} },
    run(_input, { operationId, attempt, decision, denyRules }) {
      seen.push({ operationId, attempt, denyRules, ...(decision && { decision }) })
      return decision?.verdict ?? needsApproval({ arguments: { calls: ['bash'] }, reason: 'It waits for bash.' })
    },
    ...more,
  })
}

const replies = [call('research', {}), { text: 'Done.' }]
const settings = (seen: Seen[], more: object = {}) => ({ tools: [askingTool(seen, more)], allow: ['research'] })

describe('a tool that asks while it works', () => {
  test('waits in the journal, and runs again with the decision and the same operation id', async () => {
    const seen: Seen[] = []
    const { session, server, engine, another } = await bench(replies, settings(seen))
    const paused = await session.run('Go.', { turnId: 't1', deny: ['bash'] })
    expect(paused).toMatchObject({ status: 'paused', reason: 'approval' })
    expect(paused.approvals).toMatchObject([
      { tool: 'research', arguments: { calls: ['bash'] }, reason: 'It waits for bash.', suggestions: [] },
    ])
    expect((await session.state()).turn?.task).toMatchObject({ state: 'WAITING_USER', running: [] })
    await engine.stop(0)
    const there = another().session({ user: 'ann', session: 's1' })
    await there.decide(paused.approvals[0]!.approvalId, { verdict: 'approved', reason: 'fine' })
    expect((await there.wait('t1')).text).toBe('Done.')
    const decision: ToolDecision = { verdict: 'approved', reason: 'fine', arguments: { calls: ['bash'] } }
    const { operationId } = seen[0]!
    expect(seen).toEqual([
      { operationId, attempt: 1, denyRules: ['bash'] },
      { operationId, attempt: 2, denyRules: ['bash'], decision },
    ])
    expect(resultsSent(server.requests[1]!)).toEqual(['[Approved by ann. Reason: fine]\napproved'])
    const events = await eventsOf(there)
    assertWhole(events)
    // A decision ends the pause, even before a worker reacts to it.
    const upTo = events.findIndex((it) => it.type === 'approval.resolved') + 1
    expect(turnResult('t1', events.slice(0, upTo))).toMatchObject({ status: 'running', reason: '', approvals: [] })
  })

  test('may ask again, and each question has its own answer', async () => {
    const asked: (ToolDecision | undefined)[] = []
    const twice = tool({
      name: 'research',
      description: 'Researches.',
      effects: ['delegate'],
      input: { type: 'object', properties: {} },
      run(_input, { decision, attempt }) {
        asked.push(decision)
        return attempt < 3 ? needsApproval({ arguments: { attempt }, reason: 'More.' }) : 'enough'
      },
    })
    const { session } = await bench(replies, { tools: [twice], allow: ['research'] })
    const first = await session.run('Go.', { turnId: 't1' })
    await session.decide(first.approvals[0]!.approvalId, { verdict: 'approved' })
    const second = await session.wait('t1')
    expect(second.approvals.map((it) => it.approvalId)).not.toEqual(first.approvals.map((it) => it.approvalId))
    await session.decide(second.approvals[0]!.approvalId, { verdict: 'denied' })
    await session.wait('t1')
    expect(asked).toEqual([
      undefined,
      { verdict: 'approved', arguments: { attempt: 1 } },
      { verdict: 'denied', arguments: { attempt: 2 } },
    ])
    assertWhole(await eventsOf(session))
  })

  test('is denied at once where approvals are disabled', async () => {
    const seen: Seen[] = []
    const { session, server } = await bench(replies, settings(seen))
    expect((await session.run('Go.', { mode: 'dont-ask' })).status).toBe('finished')
    expect(seen.map((it) => it.attempt)).toEqual([1, 2])
    expect(resultsSent(server.requests[1]!)).toEqual(['denied'])
  })

  test('ends where approvals are disabled and it keeps asking', async () => {
    let runs = 0
    const stubborn = tool({
      name: 'research',
      description: 'Asks and asks.',
      effects: ['write'],
      input: {},
      run() {
        runs += 1
        return needsApproval({ arguments: {}, reason: 'Really?' })
      },
    })
    const { session, server } = await bench(replies, { tools: [stubborn], allow: ['research'] })
    expect((await session.run('Go.', { mode: 'dont-ask' })).status).toBe('finished')
    expect(runs).toBe(4)
    expect(resultsSent(server.requests[1]!)[0]).toContain('keeps asking for approval, but approvals')
    assertWhole(await eventsOf(session))
  })

  test('takes nothing but a verdict', async () => {
    const { session } = await bench(replies, settings([]))
    const { approvals } = await session.run('Go.')
    const { approvalId } = approvals[0]!
    const invalid = { code: 'decision_invalid' }
    await expect(session.decide(approvalId, { verdict: 'approved', arguments: {} })).rejects.toMatchObject(invalid)
    const remember = { rule: 'research', scope: 'session' as const }
    await expect(session.decide(approvalId, { verdict: 'approved', remember })).rejects.toMatchObject(invalid)
  })

  test('is notified when its turn is stopped meanwhile', async () => {
    const seen: Seen[] = []
    const withdrawn: string[] = []
    const { session } = await bench(replies, settings(seen, { withdraw: (id: string) => void withdrawn.push(id) }))
    await session.run('Go.', { turnId: 't1' })
    await session.interrupt({ turnId: 't1' })
    expect(await session.wait('t1')).toMatchObject({ status: 'cancelled' })
    expect(withdrawn).toEqual([seen[0]!.operationId])
    expect((await eventsOf(session, 'call.finished')).map((it) => it.status)).toEqual(['unknown'])
    assertWhole(await eventsOf(session))
  })
})

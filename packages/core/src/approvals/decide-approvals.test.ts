import { eventsOf } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { bench, call } from '../core.fixture.ts'
import { type ToolDefinition, tool } from '../index.ts'

describe('several decisions', () => {
  async function waiting(more: Partial<ToolDefinition> = {}, limits = {}) {
    const ran: string[] = []
    const writing = (name: string, its: Partial<ToolDefinition> = {}) =>
      tool({
        name,
        description: 'Writes.',
        effects: ['write'],
        input: {},
        run: () => {
          ran.push(name)
          return 'written'
        },
        ...its,
      })
    const it = await bench([call('one', {}, 'other', {}), { text: 'Done.' }], {
      tools: [writing('one'), writing('other', more)],
      limits,
    })
    const { approvals } = await it.session.run('Go.', { turnId: 't1' })
    const [one, other] = approvals.map(({ approvalId }) => approvalId) as [string, string]
    const resolved = () => eventsOf(it.session, 'approval.resolved')
    return { ...it, ran, one, other, resolved }
  }
  const approved = (approvalId: string) => ({ approvalId, decision: { verdict: 'approved' as const } })
  const denied = (approvalId: string) => ({ approvalId, decision: { verdict: 'denied' as const } })

  test('are stored in one append', async () => {
    const { session, backend, one, other, ran, resolved } = await waiting()
    const before = (await session.state()).seq
    expect(await session.decideAll([approved(one), denied(other)])).toMatchObject({ turnId: 't1', after: before })
    expect((await resolved()).map((it) => [it.seq - before, it.verdict])).toEqual([
      [1, 'approved'],
      [2, 'denied'],
    ])
    await session.wait('t1')
    expect(ran).toEqual(['one'])
    expect((await backend.journal.audit({})).records.filter((it) => it.event === 'approval.resolved')).toHaveLength(2)
  })

  test('are none when one of them may not be', async () => {
    const { session, one, other, ran, resolved } = await waiting({ approver: 'boss:ok' })
    for (const [all, code] of [
      [[approved(one), approved(other)], 'approval_forbidden'],
      [[approved(one), approved('approval_unknown')], 'unknown_approval'],
      [[approved(one), denied(one)], 'decision_invalid'],
      [[approved(one), { approvalId: other, decision: { verdict: 'yes' as never } }], 'decision_invalid'],
      [[], 'decision_invalid'],
    ] as const)
      await expect(session.decideAll(all)).rejects.toMatchObject({ code })
    expect(await resolved()).toEqual([])
    expect((await session.result('t1'))?.approvals).toHaveLength(2)
    expect(ran).toEqual([])
  })

  test('of two people at the same time are of one of them', async () => {
    const { session, another, one, other, resolved } = await waiting()
    const elsewhere = another().session({ user: 'ann', session: 's1' })
    const results = await Promise.allSettled([
      session.decideAll([approved(one), approved(other)]),
      elsewhere.decideAll([denied(other), denied(one)]),
    ])
    expect(results.map((it) => it.status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(new Set((await resolved()).map((it) => it.verdict)).size).toBe(1)
    expect(await resolved()).toHaveLength(2)
  })
})

import { memory } from '@oxbow/backends'
import { eventsOf, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { assertWhole, bench, call, echo, resultsSent } from '../core.fixture.ts'
import { type Principal, type Tool, ToolError, tool } from '../index.ts'

const manager: Principal = { user: 'mia', permissions: ['tickets:approve'] }

function submitTool(done: unknown[], more: Partial<Parameters<typeof tool>[0]> = {}): Tool {
  return tool({
    name: 'submit',
    description: 'Submits a ticket.',
    effects: ['write'],
    input: z.object({ system: z.string(), days: z.number() }),
    run: (input, { operationId }) => {
      done.push([input, operationId])
      return 'submitted'
    },
    ...more,
  } as Parameters<typeof tool>[0])
}

const replies = [call('submit', { system: 'crm', days: '30' }), { text: 'Done.' }]

describe('H2: a call that nothing allows', () => {
  test('pauses the turn with an approval of its exact arguments, and runs once when it is approved', async () => {
    const done: unknown[] = []
    const { session, server } = await bench(replies, { tools: [submitTool(done)] })
    const paused = await session.run('Get me access.', { turnId: 't1' })
    expect(paused).toMatchObject({ status: 'paused', reason: 'approval' })
    const [approval] = paused.approvals
    expect(approval).toMatchObject({
      tool: 'submit',
      arguments: { system: 'crm', days: 30 },
      rule: 'default:ask',
      suggestions: ['submit'],
    })
    expect(approval!.expiresAt).toBeGreaterThan(Date.now())
    expect(done).toEqual([])
    await session.decide(approval!.approvalId, { verdict: 'approved', reason: 'fine' })
    expect((await session.wait('t1')).text).toBe('Done.')
    expect(done).toHaveLength(1)
    expect(resultsSent(server.requests[1]!)).toEqual(['[Approved by ann. Reason: fine]\nsubmitted'])
    const decisions = await eventsOf(session, 'call.decided')
    expect(decisions.map((it) => it.rule)).toEqual(['default:ask', `approval:${approval!.approvalId}`])
    assertWhole(await eventsOf(session))
  })

  test('never runs when denied, and the model receives the reason', async () => {
    const done: unknown[] = []
    const { session, server } = await bench(replies, { tools: [submitTool(done)] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await session.decide(approvals[0]!.approvalId, { verdict: 'denied', reason: 'not this month' })
    await session.wait('t1')
    expect(done).toEqual([])
    expect(resultsSent(server.requests[1]!)).toEqual(['Refused by ann: not this month'])
    assertWhole(await eventsOf(session))
  })

  test('can be set to stop the turn when everything was refused', async () => {
    const { session } = await bench(replies, { tools: [submitTool([])], limits: { whenDenied: 'stop' } })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await session.decide(approvals[0]!.approvalId, { verdict: 'denied' })
    expect(await session.wait('t1')).toMatchObject({ status: 'cancelled' })
    assertWhole(await eventsOf(session))
  })

  test('is decided exactly once, even by two processes at the same moment', async () => {
    const done: unknown[] = []
    const { session, another } = await bench(replies, { tools: [submitTool(done)] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const id = approvals[0]!.approvalId
    const other = another().session({ user: 'ann', session: 's1' })
    const outcomes = await Promise.allSettled([
      session.decide(id, { verdict: 'approved' }),
      other.decide(id, { verdict: 'denied' }),
      session.decide(id, { verdict: 'approved' }),
    ])
    expect(outcomes.filter((it) => it.status === 'fulfilled')).toHaveLength(1)
    const refused = outcomes.flatMap((it) => (it.status === 'rejected' ? [it.reason.code] : []))
    expect(refused.every((it) => it === 'approval_resolved' || it === 'unknown_approval')).toBe(true)
    await session.state()
    await session.wait('t1')
    const [resolved, ...more] = await eventsOf(session, 'approval.resolved')
    expect(more).toEqual([])
    expect(done).toHaveLength(resolved!.verdict === 'approved' ? 1 : 0)
  })

  test('waits in the store: another process decides and continues', async () => {
    const done: unknown[] = []
    const { session, engine, another } = await bench(replies, { tools: [submitTool(done)] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await engine.stop(0)
    const other = another()
    await other.start()
    const there = other.session({ user: 'ann', session: 's1' })
    await there.decide(approvals[0]!.approvalId, { verdict: 'approved' })
    expect((await there.wait('t1')).text).toBe('Done.')
    expect(done).toHaveLength(1)
  })

  test('runs with edited arguments, coerced when they are brought; invalid ones are refused there, naming the field', async () => {
    const done: [unknown, string][] = []
    const { session } = await bench(replies, { tools: [submitTool(done)] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const id = approvals[0]!.approvalId
    const { seq } = await session.state()
    for (const [edited, where] of [
      [{ system: 'crm' }, 'days'],
      [{ system: 'crm', days: 'soon' }, 'days must be number'],
      [{ days: 3 }, 'system'],
    ] as const) {
      const refused = { code: 'arguments_invalid', message: expect.stringContaining(where) }
      const decision = { verdict: 'approved', arguments: edited } as const
      await expect(session.checkDecision(id, decision)).rejects.toMatchObject(refused)
      await expect(session.decide(id, decision)).rejects.toMatchObject(refused)
    }
    const state = await session.state()
    expect([state.seq, state.turn?.paused?.reason, done]).toEqual([seq, 'approval', []])
    await session.checkDecision(id, { verdict: 'approved', arguments: { system: 'crm', days: 7 } })
    expect((await session.state()).seq).toBe(seq)
    await session.decide(id, { verdict: 'approved', arguments: { system: 'crm', days: '7' } })
    await session.wait('t1')
    expect(done.map(([input]) => input)).toEqual([{ system: 'crm', days: 7 }])
    expect((await eventsOf(session, 'approval.resolved'))[0]?.arguments).toEqual({ system: 'crm', days: 7 })
    assertWhole(await eventsOf(session))
  })

  test('is not approved with edited arguments that a rule denies; the approval stays open', async () => {
    const done: unknown[] = []
    const matches = (pattern: string, input: Readonly<Record<string, unknown>>) => input.system === pattern
    const { session } = await bench(replies, { tools: [submitTool(done, { matches })], deny: ['submit(payroll)'] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const id = approvals[0]!.approvalId
    const decide = (system: string) => session.decide(id, { verdict: 'approved', arguments: { system, days: 1 } })
    await expect(decide('payroll')).rejects.toMatchObject({
      code: 'arguments_denied',
      message: expect.stringContaining('deny:submit(payroll)'),
    })
    expect(await session.result('t1')).toMatchObject({ status: 'paused', approvals: [{ approvalId: id }] })
    await decide('wiki')
    await session.wait('t1')
    expect(done).toHaveLength(1)
  })

  test('of several in one step each has its own approval, and what needs none runs meanwhile', async () => {
    const done: unknown[] = []
    const { session, server } = await bench(
      [
        call('submit', { system: 'a', days: 1 }, 'echo', { text: 'x' }, 'submit', { system: 'b', days: 2 }),
        { text: 'Done.' },
      ],
      { tools: [submitTool(done), echo] },
    )
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    expect(approvals.map((it) => it.arguments.system)).toEqual(['a', 'b'])
    expect(await eventsOf(session, 'call.finished')).toHaveLength(1)
    await session.decide(approvals[1]!.approvalId, { verdict: 'approved' })
    expect(await session.wait('t1')).toMatchObject({ status: 'paused', approvals: [{ arguments: { system: 'a' } }] })
    await session.decide(approvals[0]!.approvalId, { verdict: 'denied' })
    await session.wait('t1')
    expect(done).toHaveLength(1)
    expect(resultsSent(server.requests[1]!)).toEqual(['Refused by ann.', 'echo x', 'submitted'])
  })
})

describe('H2: an invalid decision has no effect:', () => {
  const wrong: [object, string, string][] = [
    [{ verdict: 'deny' }, 'decision_invalid', 'got "deny"'],
    [{ verdict: 'rejected' }, 'decision_invalid', 'verdict must be "approved" or "denied"'],
    [{ verdict: undefined }, 'decision_invalid', 'got nothing'],
    [{}, 'decision_invalid', 'got nothing'],
    [{ verdict: 'approved', argumentz: { days: 1 } }, 'decision_invalid', 'Did you mean "arguments"?'],
    [{ verdict: 'approved', arguments: 'days' }, 'decision_invalid', 'arguments must be an object'],
    [{ verdict: 'approved', arguments: [1] }, 'decision_invalid', 'arguments must be an object'],
    [{ verdict: 'denied', reason: 5 }, 'decision_invalid', 'reason must be a text'],
    [{ verdict: 'denied', arguments: { days: 1 } }, 'decision_invalid', 'a refusal has no arguments'],
    [{ verdict: 'denied', remember: { rule: 'submit', scope: 'session' } }, 'decision_invalid', 'a refusal remembers'],
    [{ verdict: 'approved', remember: { rule: 'submit' } }, 'decision_invalid', 'a rule and a scope'],
    [{ verdict: 'approved', remember: { rule: 'submit', scope: 'everybody' } }, 'decision_invalid', 'remember.scope'],
    ...[Date.now() - 1, 1_700_000_000, '2020-01-01', 'tomorrow', '31.12.2099', Number.NaN].map(
      (expiresAt): [object, string, string] => [
        { verdict: 'approved', remember: { rule: 'submit', scope: 'session', expiresAt } },
        'rule_invalid',
        'a time to come',
      ],
    ),
  ]
  test.each(wrong)('%j', async (decision, code, message) => {
    const done: unknown[] = []
    const { session } = await bench(replies, { tools: [submitTool(done)] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const { seq } = await session.state()
    const refused = { code, message: expect.stringContaining(message) }
    for (const decide of [session.checkDecision, session.decide])
      await expect(decide(approvals[0]!.approvalId, decision as never)).rejects.toMatchObject(refused)
    expect((await session.state()).seq).toBe(seq)
    expect(await session.result('t1')).toMatchObject({ status: 'paused', reason: 'approval' })
    expect(done).toEqual([])
  })
})

describe('H2: what an approver changed', () => {
  test('is reported to the model before the result, with approver and reason, without secrets, and stays in the conversation', async () => {
    const { session, server } = await bench(replies, { tools: [submitTool([], { secrets: ['system'] })] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const edited = { system: 'hr-9', days: 7 }
    const decision = { verdict: 'approved', reason: 'a week is enough', arguments: edited } as const
    await session.decide(approvals[0]!.approvalId, decision)
    await session.wait('t1')
    expect(resultsSent(server.requests[1]!)).toEqual([
      '[Approved by ann, with other arguments than yours: {"system":"[redacted]","days":7}. Reason: a week is enough]\nsubmitted',
    ])
    const results = (await session.state()).messages.flatMap((it) =>
      it.blocks.filter((block) => block.type === 'result'),
    )
    expect(results).toMatchObject([{ approval: { by: 'ann', reason: 'a week is enough', arguments: edited } }])
  })

  test('is also reported for a call that then failed; a plain yes is not reported', async () => {
    let runs = 0
    const run = () => {
      runs += 1
      if (runs === 1) throw new ToolError('closed')
      return 'submitted'
    }
    const { session, server } = await bench([replies[0]!, replies[0]!, { text: 'Done.' }], {
      tools: [submitTool([], { run })],
    })
    const first = await session.run('Go.', { turnId: 't1' })
    const edited = { system: 'crm', days: 7 }
    await session.decide(first.approvals[0]!.approvalId, { verdict: 'approved', arguments: edited })
    const { approvals } = await session.wait('t1')
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved' })
    await session.wait('t1')
    expect(resultsSent(server.requests[2]!)).toEqual([
      '[Approved by ann, with other arguments than yours: {"system":"crm","days":7}.]\nError: closed',
      'submitted',
    ])
  })
})

describe('H2: who decides', () => {
  test('a tool may ask for a permission that the user does not have', async () => {
    const { session } = await bench(replies, { tools: [submitTool([], { approver: 'tickets:approve' })] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const id = approvals[0]!.approvalId
    await expect(session.decide(id, { verdict: 'approved' })).rejects.toMatchObject({ code: 'approval_forbidden' })
    await expect(
      session.decide(id, { verdict: 'approved' }, { principal: { ...manager, tenant: 'other' } }),
    ).rejects.toMatchObject({ code: 'approval_forbidden' })
    await session.decide(id, { verdict: 'approved' }, { principal: manager })
    expect((await session.wait('t1')).status).toBe('finished')
  })

  test('only the user decides on their own approvals', async () => {
    const { session } = await bench(replies, { tools: [submitTool([])] })
    const { approvals } = await session.run('Go.')
    await expect(
      session.decide(approvals[0]!.approvalId, { verdict: 'approved' }, { principal: manager }),
    ).rejects.toMatchObject({ code: 'approval_forbidden' })
  })
})

describe('H2: an accepted rule', () => {
  const again = [...replies, replies[0]!, { text: 'Again.' }]

  test('holds for the rest of the session', async () => {
    const done: unknown[] = []
    const { session } = await bench(again, { tools: [submitTool(done)] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await session.decide(approvals[0]!.approvalId, {
      verdict: 'approved',
      remember: { rule: 'submit', scope: 'session' },
    })
    await session.wait('t1')
    expect((await session.run('Once more.')).status).toBe('finished')
    expect(done).toHaveLength(2)
  })

  test('for a user applies in their other sessions and in no other user’s; an expired one does not apply', async () => {
    const done: unknown[] = []
    const { session, engine } = await bench((request) => replies[request.messages.at(-1)?.role === 'tool' ? 1 : 0], {
      tools: [submitTool(done)],
    })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved', remember: { rule: 'submit', scope: 'user' } })
    await session.wait('t1')
    expect((await engine.session({ user: 'ann' }).run('Go.')).status).toBe('finished')
    const ben = engine.session({ user: 'ben', session: 's1' })
    const waiting = await ben.run('Go.', { turnId: 't1' })
    const expiresAt = Date.now() + 1_000
    expect(waiting.status).toBe('paused')
    await ben.decide(waiting.approvals[0]!.approvalId, {
      verdict: 'approved',
      remember: { rule: 'submit', scope: 'user', expiresAt },
    })
    await ben.wait('t1')
    await until(() => Date.now() > expiresAt)
    expect((await ben.run('Go.')).status).toBe('paused')
  })

  test('must cover the call, names one tool, and cannot replace a mandatory approval', async () => {
    const { session } = await bench(again, { tools: [submitTool([], { approval: 'always' }), echo] })
    const { approvals } = await session.run('Go.')
    expect(approvals[0]!.suggestions).toEqual([])
    const id = approvals[0]!.approvalId
    for (const rule of ['*', 'echo', 'sub*', 'submit', 'submit(x)', 'not a rule'])
      await expect(
        session.decide(id, { verdict: 'approved', remember: { rule, scope: 'session' } }),
      ).rejects.toMatchObject({ code: 'rule_invalid' })
  })
})

describe('H2: a rule that could do nothing', () => {
  test.each([
    ['where a rule asks', { ask: ['submit'] }, {}],
    ['where the tool always asks', {}, { approval: 'always' as const }],
    ['where the check of the tool asks', {}, { check: () => ({ decision: 'ask' as const, reason: 'big' }) }],
  ])('is not suggested %s, and refused', async (_, rules, more) => {
    const { session } = await bench(replies, { tools: [submitTool([], more)], ...rules })
    const { approvals } = await session.run('Go.')
    expect(approvals[0]!.suggestions).toEqual([])
    for (const scope of ['session', 'user', 'project'] as const)
      await expect(
        session.decide(approvals[0]!.approvalId, { verdict: 'approved', remember: { rule: 'submit', scope } }),
      ).rejects.toMatchObject({ code: 'rule_invalid', message: expect.stringContaining('is stronger') })
  })

  const matches = (pattern: string, input: Readonly<Record<string, unknown>>) => input.system === pattern
  test('because it does not cover the call is not suggested either; a whole rule is understood as one', async () => {
    const suggest = () => ['crm', 'submit(crm)', 'wiki']
    const { session } = await bench(replies, { tools: [submitTool([], { matches, suggest })] })
    const { approvals } = await session.run('Go.')
    expect(approvals[0]!.suggestions).toEqual(['submit(crm)', 'submit(crm)'])
  })

  test('is compared with the arguments that are approved, not with those of the model', async () => {
    const { session } = await bench(replies, { tools: [submitTool([], { matches })] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const decide = (system: string, rule: string) =>
      session.decide(approvals[0]!.approvalId, {
        verdict: 'approved',
        arguments: { system, days: 1 },
        remember: { rule, scope: 'session' },
      })
    await expect(decide('wiki', 'submit(crm)')).rejects.toMatchObject({ code: 'rule_invalid' })
    await decide('wiki', 'submit(wiki)')
    await session.wait('t1')
    expect((await session.state()).rules).toMatchObject([{ rule: 'submit(wiki)' }])
  })

  test('for the whole project needs oxbow:admin of whom permissions are known; a time may be ISO 8601', async () => {
    const { session } = await bench(replies, { tools: [submitTool([])] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const remember = { rule: 'submit', scope: 'project', expiresAt: '2999-01-31T12:00:00Z' } as const
    const decide = (permissions: string[]) =>
      session.decide(
        approvals[0]!.approvalId,
        { verdict: 'approved', remember },
        { principal: { user: 'ann', permissions } },
      )
    await expect(decide(['tickets:*'])).rejects.toMatchObject({ code: 'approval_forbidden' })
    await decide(['oxbow:*'])
    await session.wait('t1')
    const [resolved] = await eventsOf(session, 'approval.resolved')
    expect(resolved?.remember?.expiresAt).toBe(Date.parse('2999-01-31T12:00:00Z'))
  })
})

describe('H2: the mode explore', () => {
  test('denies anything but reading, even where a rule or the tool would ask', async () => {
    const done: unknown[] = []
    const { session } = await bench(replies, { tools: [submitTool(done, { approval: 'always' })], ask: ['submit'] })
    expect((await session.run('Go.', { mode: 'explore' })).status).toBe('finished')
    const [decided] = await eventsOf(session, 'call.decided')
    expect(decided).toMatchObject({ decision: 'deny', rule: 'mode:explore' })
    expect(done).toEqual([])
  })
})

describe('an input to a session that waits', () => {
  test('is refused with what it waits for, and queued behind it otherwise', async () => {
    const { session } = await bench([...replies, { text: 'Second.' }], { tools: [submitTool([])] })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    const { approvalId } = approvals[0]!
    await expect(session.run('Hello?', { whenBusy: 'refuse' })).rejects.toMatchObject({
      code: 'session_busy',
      retryable: false,
      message: expect.stringMatching(`^Turn t1 of this session waits for the approval ${approvalId} of submit`),
    })
    const second = session.run('Hello?')
    await session.decide(approvalId, { verdict: 'approved' })
    expect((await second).text).toBe('Second.')
  })
})

describe('H2: the moment of use', () => {
  test('a person who lost the right in between is refused', async () => {
    const done: unknown[] = []
    let rights: Principal | undefined = { user: 'ann', permissions: ['tickets:submit'] }
    const { session } = await bench(
      [...replies, replies[0]!, { text: 'ok' }],
      { tools: [submitTool(done, { permission: 'tickets:submit' })] },
      { currentPrincipal: async () => rights },
    )
    const run = async (turnId: string): Promise<string | undefined> => {
      const { approvals } = await session.run('Go.', { turnId, principal: { user: 'ann', permissions: ['tickets:*'] } })
      if (turnId === 't1') rights = { user: 'ann', permissions: [] }
      else rights = undefined
      await session.decide(approvals[0]!.approvalId, { verdict: 'approved' })
      await session.wait(turnId)
      return (await eventsOf(session, 'call.finished')).at(-1)?.error?.message
    }
    expect(await run('t1')).toContain('lacks the permission tickets:submit')
    await expect(run('t2')).rejects.toMatchObject({
      code: 'principal_revoked',
      message: 'ann is no longer authorised.',
    })
    expect(done).toEqual([])
    assertWhole(await eventsOf(session))
  })

  test('the rest of the turn runs with the current rights too', async () => {
    const seen: (readonly string[] | undefined)[] = []
    const look = tool({
      name: 'look',
      description: 'Looks.',
      effects: ['read'],
      permission: 'rows:read',
      input: {},
      run: (_, { principal }) => {
        seen.push(principal.permissions)
        return 'rows'
      },
    })
    const { session, server } = await bench(
      [...replies.slice(0, 1), call('look', {}), { text: 'ok' }, call('look', {}), { text: 'ok' }],
      { tools: [submitTool([]), look] },
      { currentPrincipal: async ({ user }) => ({ user, permissions: ['rows:nothing'] }) },
    )
    const principal = { user: 'ann', permissions: ['rows:*'] }
    const { approvals } = await session.run('Go.', { turnId: 't1', principal })
    await session.decide(approvals[0]!.approvalId, { verdict: 'denied' })
    await session.wait('t1')
    expect(resultsSent(server.requests[2]!).at(-1)).toContain('lacks the permission rows:read')
    // A turn that has not waited runs with the rights that it came with.
    await session.run('Go.', { principal })
    expect(seen).toEqual([['rows:*']])
  })

  test('a revoked right takes effect at the next call, in a turn that has not waited', async () => {
    const asked: string[] = []
    let permissions = ['rows:*']
    const look = tool({
      name: 'look',
      description: 'Looks.',
      effects: ['read'],
      permission: 'rows:read',
      input: {},
      run() {
        asked.push('ran')
        permissions = []
        return 'rows'
      },
    })
    const { session, server } = await bench(
      [call('look', {}), call('look', {}), { text: 'ok' }],
      { tools: [look] },
      { currentPrincipal: async ({ user }) => ({ user, permissions }), principalMaxAgeMs: 0 },
    )
    await session.run('Go.', { principal: { user: 'ann', permissions: ['rows:*'] } })
    expect(asked).toEqual(['ran'])
    expect(resultsSent(server.requests[2]!).at(-1)).toContain('lacks the permission rows:read')
  })

  test('a turn fails at its next call when its user is no longer authorised', async () => {
    const done: unknown[] = []
    const { session } = await bench(
      replies,
      { tools: [submitTool(done)], allow: ['submit'] },
      { currentPrincipal: async () => undefined, principalMaxAgeMs: 0 },
    )
    await expect(session.run('Go.', { turnId: 't1' })).rejects.toMatchObject({ code: 'principal_revoked' })
    expect(done).toEqual([])
  })

  test('an approver who lost the right in between has approved nothing', async () => {
    const done: unknown[] = []
    const { session, server } = await bench(
      replies,
      { tools: [submitTool(done, { approver: 'tickets:approve' })] },
      { currentPrincipal: async (it) => (it.user === 'mia' ? { user: 'mia', permissions: [] } : it) },
    )
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved' }, { principal: manager })
    await session.wait('t1')
    expect(done).toEqual([])
    expect(resultsSent(server.requests[1]!)).toEqual(['mia, who approved it, is no longer allowed to approve it.'])
  })

  test('a rule that was accepted holds although storing it failed after the decision', async () => {
    const done: unknown[] = []
    const backend = memory()
    const { put } = backend.files
    let failures = 1
    const files = {
      ...backend.files,
      put: ((...given) => {
        if (failures-- > 0) return Promise.reject(new Error('The disk is full.'))
        return put.apply(backend.files, given)
      }) as typeof put,
    }
    const { session, engine } = await bench(
      [...replies, replies[0]!, { text: 'ok' }],
      { tools: [submitTool(done)] },
      { backend: { ...backend, files } },
    )
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await session.pause()
    await session.decide(approvals[0]!.approvalId, {
      verdict: 'approved',
      remember: { rule: 'submit', scope: 'user' },
    })
    expect(failures).toBe(0)
    await session.release()
    await session.wait('t1')
    const elsewhere = engine.session({ user: 'ann', session: 's2' })
    expect((await elsewhere.run('Go.')).status).toBe('finished')
    expect(done).toHaveLength(2)
  })
})

describe('X5: an approval without a decision', () => {
  test('expires, in any process, and the model receives that', async () => {
    const done: unknown[] = []
    const { session, engine, another, server } = await bench(replies, {
      tools: [submitTool(done)],
      limits: { approvalTimeoutMs: 1 },
    })
    const { approvals } = await session.run('Go.', { turnId: 't1' })
    await engine.stop(0)
    const other = another()
    await until(async () => Date.now() > approvals[0]!.expiresAt)
    await other.recover()
    const there = other.session({ user: 'ann', session: 's1' })
    expect((await there.wait('t1')).text).toBe('Done.')
    expect(done).toEqual([])
    expect(resultsSent(server.requests[1]!)).toEqual(['The approval expired without a decision.'])
    await expect(there.decide(approvals[0]!.approvalId, { verdict: 'approved' })).rejects.toMatchObject({
      code: 'unknown_approval',
    })
    expect(await other.backend.journal.list({ dueBy: Date.now() })).toEqual([])
  })
})

test('X5: an expired approval cannot be decided, even before the sweep', async () => {
  const done: unknown[] = []
  const { session } = await bench(replies, { tools: [submitTool(done)], limits: { approvalTimeoutMs: 1 } })
  const { approvals } = await session.run('Go.', { turnId: 't1' })
  await until(() => Date.now() > approvals[0]!.expiresAt)
  await expect(session.decide(approvals[0]!.approvalId, { verdict: 'approved' })).rejects.toMatchObject({
    code: 'approval_expired',
  })
  expect((await session.wait('t1')).text).toBe('Done.')
  expect(done).toEqual([])
  assertWhole(await eventsOf(session))
})

describe('B4: the audit log', () => {
  test('records caller, call, rule, approver and outcome of every call, without secrets', async () => {
    const { session, backend } = await bench(
      [call('submit', { system: 'crm', days: 3 }, 'echo', { text: 'x' }), { text: 'Done.' }],
      { tools: [submitTool([], { approver: 'tickets:approve', secrets: ['system'] }), echo] },
    )
    const { approvals } = await session.run('Go.', { turnId: 't1', principal: { user: 'ann', department: 'sales' } })
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved', reason: 'ok' }, { principal: manager })
    await session.wait('t1')
    const { records } = await backend.journal.audit({ tool: 'submit' })
    expect(records.map((it) => [it.event, it.decision, it.rule, it.approver, it.status])).toEqual([
      ['call.decided', 'ask', 'default:ask', undefined, undefined],
      ['approval.resolved', 'approved', 'default:ask', 'mia', undefined],
      ['call.decided', 'allow', `approval:${approvals[0]!.approvalId}`, 'mia', undefined],
      ['call.finished', 'allow', `approval:${approvals[0]!.approvalId}`, 'mia', 'success'],
    ])
    expect(records.every((it) => it.principal.department === 'sales')).toBe(true)
    expect(records.every((it) => it.arguments.system === '[redacted]' && it.arguments.days === 3)).toBe(true)
    expect(records.at(-1)?.operationId).toMatch(/^op_/)
    expect((await backend.journal.audit({ tool: 'echo' })).records.map((it) => it.event)).toEqual([
      'call.decided',
      'call.finished',
    ])
  })
})

describe('a turn that is paused manually', () => {
  test('B7: waits at its next step until it is released', async () => {
    const { session, server } = await bench(
      async (request) => {
        if (request.number === 0) await session.pause({ reason: 'lunch' })
        return request.number === 0 ? call('echo', { text: 'a' }) : { text: 'after lunch' }
      },
      { tools: [echo] },
    )
    expect(await session.run('Go.', { turnId: 't1' })).toMatchObject({ status: 'paused', reason: 'manual' })
    expect(server.requests).toHaveLength(1)
    await session.release()
    expect((await session.wait('t1')).text).toBe('after lunch')
    assertWhole(await eventsOf(session))
  })
})

import { type AgentLimits, needsApproval, tool } from '@oxbow/core'
import { gate, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs, runInput } from '../test.fixture.ts'
import { ask, asks, people, ticketTool } from './people.fixture.ts'

const start = rigs()
const done = { text: 'Done.' }
const always = (request: { messages: readonly { role: string }[] }) =>
  request.messages.at(-1)?.role === 'tool' ? done : asks
const APPROVER = { approver: 'tickets:approve' }

describe('X5: the inbox', () => {
  test('without identity lists the local user’s approvals; a decision resumes the turn', async () => {
    const ran: unknown[] = []
    const { post, get, engine } = await start({ agent: { tools: [ticketTool(ran)] }, replies: [asks, done] })
    const asked = await post('/api/chat', { sessionId: 's1', message: 'Go.', turnId: 't1' })
    expect(asked.status).toBe(202)
    const [first] = (await json(asked)).approvals
    const { approvals, next } = await json(get('/api/approvals'))
    expect(next).toBeUndefined()
    expect(approvals).toEqual([{ ...first, ageMs: expect.any(Number) }])
    expect(first).toMatchObject({
      status: 'open',
      mayDecide: true,
      sessionId: 's1',
      userId: 'default',
      askedBy: { user: 'default' },
      tool: 'submit',
      arguments: { system: 'crm', days: 30 },
      rule: 'default:ask',
      reason: expect.stringContaining('write'),
      suggestions: ['submit'],
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(first.expiresAt).toBeGreaterThan(Date.now())
    const body = { verdict: 'approved', reason: 'one week is enough', arguments: { system: 'crm', days: 7 } }
    const unclear = await post(`/api/approvals/${first.id}`, { verdict: 'denied', arguments: body.arguments })
    expect([unclear.status, (await json(unclear)).error.code]).toEqual([400, 'decision_invalid'])
    const past = { verdict: 'approved', remember: { rule: 'submit', scope: 'user', expiresAt: '2020-01-01T00:00:00Z' } }
    const late = await post(`/api/approvals/${first.id}`, past)
    expect([late.status, (await json(late)).error.code]).toEqual([400, 'rule_invalid'])
    const decided = await json(post(`/api/approvals/${first.id}`, body))
    expect(decided).toMatchObject({ status: 'approved', resolution: { by: 'default' }, after: expect.any(Number) })
    await engine.session({ user: 'default', session: 's1' }).wait('t1')
    expect(ran).toEqual([{ system: 'crm', days: 7 }])
    // The conversation shows the call that ran, beside the arguments that the model proposed.
    const { messages } = await json(get('/api/sessions/s1/messages'))
    expect(messages[2].blocks).toMatchObject([
      { type: 'result', approval: { by: 'default', reason: body.reason, arguments: body.arguments } },
    ])
    // Afterwards the approval shows the changes and the outcome of the call.
    expect(await json(get(`/api/approvals/${first.id}`))).toMatchObject({
      status: 'approved',
      resolution: { reason: 'one week is enough', changes: [{ argument: 'days', from: 30, to: 7 }] },
      call: { status: 'success', text: expect.stringMatching(/^\[Approved by default.*\]\nsubmitted$/) },
    })
    expect((await json(get('/api/approvals'))).approvals).toEqual([])
  })

  test('an approver sees approvals that need their permission in other users’ sessions, and nobody else does', async () => {
    const ran: unknown[] = []
    const rig = await people(start, { agent: { tools: [ticketTool(ran, APPROVER)] }, replies: always })
    const { ann, bob, mia } = rig.as
    const id = await ask(ann, 's1')
    const other = await ask(bob, 's1')
    expect(other).not.toBe(id)
    const inbox = async (person: typeof ann, query = '') =>
      (await json(person.get(`/api/approvals${query}`))).approvals.map((it: { id: string }) => it.id)
    expect((await inbox(mia)).toSorted()).toEqual([id, other].toSorted())
    expect(await inbox(mia, '?askedBy=bob')).toEqual([other])
    expect(await inbox(mia, '?tool=nothing')).toEqual([])
    expect(await inbox(ann)).toEqual([])
    expect(await inbox(ann, '?mine=true')).toEqual([id])
    expect(await json(ann.get(`/api/approvals/${id}`))).toMatchObject({ mayDecide: false, approver: 'tickets:approve' })

    // Forbidden for users who may see it; for all others it does not exist.
    const forbidden = await ann.post(`/api/approvals/${id}`, { verdict: 'approved' })
    expect([forbidden.status, (await json(forbidden)).error.code]).toEqual([403, 'approval_forbidden'])
    const foreign = await bob.post(`/api/approvals/${id}`, { verdict: 'approved' })
    const unknown = await bob.post('/api/approvals/bm90aGluZw', { verdict: 'approved' })
    expect([foreign.status, unknown.status, (await bob.get(`/api/approvals/${id}`)).status]).toEqual([404, 404, 404])
    expect(await json(foreign)).toEqual(await json(unknown))

    const approved = await json(mia.post(`/api/approvals/${id}`, { verdict: 'approved' }))
    expect(approved).toMatchObject({ status: 'approved', userId: 'ann', resolution: { by: 'mia' } })
    await rig.engine.session({ user: 'ann', session: 's1' }).wait('t-s1')
    expect(ran).toHaveLength(1)
  })

  test('lists an approval that can be decided while other calls of the turn still run', async () => {
    const ran: unknown[] = []
    const held = gate()
    const slow = tool({
      name: 'slow',
      description: 'Takes its time.',
      effects: ['read'],
      input: {},
      run: async () => {
        await held.pass()
        return 'looked'
      },
    })
    const { post, get, engine } = await start({
      agent: { tools: [ticketTool(ran), slow] },
      replies: [{ calls: [...asks.calls, { name: 'slow' }] }, done],
    })
    const asked = post('/api/chat', { sessionId: 's1', message: 'Go.', turnId: 't1' })
    await held.reached
    const [open] = (await json(get('/api/approvals'))).approvals
    expect(open).toMatchObject({ sessionId: 's1', tool: 'submit', status: 'open' })
    const { status, turn } = await json(get('/api/sessions/s1/messages'))
    expect(status).toBe('running')
    expect(turn.approvals).toEqual([{ ...open, ageMs: expect.any(Number) }])
    expect((await post(`/api/approvals/${open.id}`, { verdict: 'approved' })).status).toBe(200)
    expect((await json(get('/api/approvals'))).approvals).toEqual([])
    held.open()
    expect((await asked).status).toBe(200)
    expect((await engine.session({ user: 'default', session: 's1' }).result('t1'))?.text).toBe('Done.')
    expect(ran).toHaveLength(1)
  })

  test('lists each approval of a call that asks several times, one after the other', async () => {
    const heard: unknown[] = []
    const careful = tool({
      name: 'submit',
      description: 'Submits.',
      effects: ['write'],
      input: {},
      run: (_input, { decision, attempt }) => {
        heard.push(decision?.verdict)
        return attempt <= 2 ? needsApproval({ arguments: { attempt }, reason: `Question ${attempt}.` }) : 'submitted'
      },
    })
    const { post, get, engine } = await start({ agent: { tools: [careful] }, replies: [asks, done] })
    await post('/api/chat', { sessionId: 's1', message: 'Go.', turnId: 't1' })
    const session = engine.session({ user: 'default', session: 's1' })
    const ids: string[] = []
    for (const verdict of ['approved', 'approved', 'denied']) {
      const { approvals } = await json(get('/api/approvals'))
      expect(approvals).toHaveLength(1)
      ids.push(approvals[0].id)
      expect((await post(`/api/approvals/${approvals[0].id}`, { verdict })).status).toBe(200)
      await session.wait('t1')
    }
    expect(new Set(ids).size).toBe(3)
    expect(heard).toEqual([undefined, 'approved', 'denied'])
    const after = await Promise.all(ids.map((it) => json(get(`/api/approvals/${it}`))))
    expect(after.map((it) => [it.status, it.reason, it.arguments])).toEqual([
      ['approved', expect.any(String), { system: 'crm', days: 30 }],
      ['approved', 'Question 1.', { attempt: 1 }],
      ['denied', 'Question 2.', { attempt: 2 }],
    ])
    for (const it of ids) expect((await post(`/api/approvals/${it}`, { verdict: 'approved' })).status).toBe(409)
  })

  test('of an administrator is empty; with a userId it lists that user’s approvals, which the administrator can stop but not decide', async () => {
    const ran: unknown[] = []
    const rig = await people(start, { agent: { tools: [ticketTool(ran, APPROVER)] }, replies: always })
    const { ann, root, mia } = rig.as
    const id = await ask(ann, 's1')
    const inbox = async (query = '') => (await json(root.get(`/api/approvals${query}`))).approvals
    expect(await inbox()).toEqual([])
    expect(await inbox('?userId=ann')).toMatchObject([{ id, userId: 'ann', mayDecide: false }])
    expect(await inbox('?userId=bob')).toEqual([])
    expect((await mia.get('/api/approvals?userId=ann')).status).toBe(403)
    expect(await json(root.get(`/api/approvals/${id}?userId=ann`))).toMatchObject({ id, status: 'open' })
    const decision = await root.post(`/api/approvals/${id}`, { verdict: 'approved', userId: 'ann' })
    expect([decision.status, (await json(decision)).error.code]).toEqual([403, 'approval_forbidden'])
    expect((await root.post('/api/sessions/s1/interrupt', { userId: 'ann' })).status).toBe(200)
    await rig.engine.session({ user: 'ann', session: 's1' }).wait('t-s1')
    expect(await json(ann.get(`/api/approvals/${id}`))).toMatchObject({ status: 'cancelled' })
    expect(ran).toEqual([])
  })

  test('an id from inside a session is unknown here, and the error says which id to use', async () => {
    const { post, get } = await start({ agent: { tools: [ticketTool([])] }, replies: [asks, done] })
    const { approvals } = await json(post('/agent/task?wait=30', { message: 'Go.' }))
    expect((await json(get('/api/approvals'))).approvals.map((it: { id: string }) => it.id)).toEqual([approvals[0].id])
    const answer = await post(`/api/approvals/${approvals[0].approvalId}`, { verdict: 'approved' })
    expect(answer.status).toBe(404)
    expect((await json(answer)).error.message).toContain('use the `id` next to it')
    expect((await post(`/api/approvals/${approvals[0].id}`, { verdict: 'approved' })).status).toBe(200)
  })

  test('naming another user is rejected', async () => {
    const rig = await people(start, { agent: { tools: [ticketTool([])] }, replies: always })
    const id = await ask(rig.as.ann, 's1')
    expect((await rig.as.bob.get('/api/approvals?userId=ann')).status).toBe(403)
    expect((await rig.as.bob.post(`/api/approvals/${id}`, { verdict: 'approved', userId: 'ann' })).status).toBe(403)
    expect((await rig.get('/api/approvals')).status).toBe(401)
  })

  test('is paged, without gaps or repetitions', async () => {
    const { engine, get } = await start({ agent: { tools: [ticketTool([])] }, replies: { always: asks } })
    for (let n = 0; n < 7; n++) await engine.session({ user: 'default', session: `s${n}` }).run('Go.')
    const seen: string[] = []
    let query = '?limit=2'
    for (let pages = 0; ; pages++) {
      const { approvals, next } = await json(get(`/api/approvals${query}`))
      seen.push(...approvals.map((it: { sessionId: string }) => it.sessionId))
      if (next === undefined) break
      expect(pages).toBeLessThan(10)
      query = `?limit=2&before=${next}`
    }
    expect(seen.toSorted()).toEqual(['s0', 's1', 's2', 's3', 's4', 's5', 's6'])
  })
})

describe('X5: a decision', () => {
  const one = async (limits: Partial<AgentLimits> = {}) => {
    const ran: unknown[] = []
    const rig = await start({ replies: always, agent: { tools: [ticketTool(ran)], limits } })
    const answer = await json(rig.post('/api/chat', { sessionId: 's1', message: 'Go.', turnId: 't1' }))
    return {
      ...rig,
      ran,
      session: rig.engine.session({ user: 'default', session: 's1' }),
      path: `/api/approvals/${answer.approvals[0].id}`,
    }
  }

  test('counts once; the second one is a 409 with the first decision', async () => {
    const { post, path, ran, session } = await one()
    const answers = await Promise.all(
      [1, 2, 3].map((n) => post(path, { verdict: n === 2 ? 'denied' : 'approved', reason: `from ${n}` })),
    )
    expect(answers.map((it) => it.status).toSorted()).toEqual([200, 409, 409])
    await session.wait('t1')
    const late = await post(path, { verdict: 'denied' })
    const { error, approval } = await json(late)
    expect([late.status, error.code]).toEqual([409, 'approval_resolved'])
    expect(error.message).toContain(approval.status)
    expect(ran).toHaveLength(approval.status === 'approved' ? 1 : 0)
  })

  test('that denies a call runs nothing, and the model sees the reason', async () => {
    const { post, path, ran, session, model } = await one()
    await post(path, { verdict: 'denied', reason: 'not this month' })
    await session.wait('t1')
    expect(ran).toEqual([])
    expect(model.requests.at(-1)?.messages.at(-1)?.content).toBe('Refused by default: not this month')
  })

  test('with a rule that does not match the call is a 400, and decides nothing', async () => {
    const { post, get, path } = await one()
    for (const rule of ['*', 'submit(x)', 'other', 'not a rule']) {
      const answer = await post(path, { verdict: 'approved', remember: { rule, scope: 'session' } })
      expect([answer.status, (await json(answer)).error.code]).toEqual([400, 'rule_invalid'])
    }
    expect(await json(get(path))).toMatchObject({ status: 'open' })
    for (const body of [{}, { verdict: 'maybe' }, { verdict: 'approved', arguments: 'x' }])
      expect((await post(path, body)).status).toBe(400)
  })

  test('with a suggested rule lets the next call run; a rule for the whole tenant needs an administrator', async () => {
    const { post, path, ran, session } = await one()
    await post(path, { verdict: 'approved', remember: { rule: 'submit', scope: 'user' } })
    await session.wait('t1')
    expect((await post('/api/chat', { sessionId: 's2', message: 'Again.' })).status).toBe(200)
    expect(ran).toHaveLength(2)
    const rig = await people(start, { agent: { tools: [ticketTool([])] }, replies: always })
    const id = await ask(rig.as.ann, 's1')
    const shared = { verdict: 'approved', remember: { rule: 'submit', scope: 'project' } }
    expect((await rig.as.ann.post(`/api/approvals/${id}`, shared)).status).toBe(403)
  })

  test('with a rule appears in the list of rules and in the audit log, and the rule can be removed', async () => {
    const { post, get, path, ran, session } = await one()
    await post(path, { verdict: 'approved', remember: { rule: 'submit', scope: 'user' } })
    await session.wait('t1')
    const { rules } = await json(get('/api/rules'))
    expect(rules).toEqual([{ id: expect.stringMatching(/^rule_/), rule: 'submit', scope: 'user', author: 'default' }])
    const { records } = await json(get('/admin/api/audit'))
    expect(records.filter((it: object) => 'remember' in it)).toMatchObject([
      { event: 'approval.resolved', remember: { rule: 'submit', scope: 'user' } },
    ])
    expect((await post('/api/chat', { sessionId: 's2', message: 'Again.' })).status).toBe(200)
    const removed = await get(`/api/rules/${rules[0].id}`, { method: 'DELETE' })
    expect([removed.status, await json(removed)]).toEqual([200, { removed: rules[0] }])
    expect((await json(get('/api/rules'))).rules).toEqual([])
    expect((await get(`/api/rules/${rules[0].id}`, { method: 'DELETE' })).status).toBe(404)
    expect((await post('/api/chat', { sessionId: 's3', message: 'And again.' })).status).toBe(202)
    expect(ran).toHaveLength(2)
  })

  test('with a rule for a session lists the rule with that session', async () => {
    const { post, get, path } = await one()
    await post(path, { verdict: 'approved', remember: { rule: 'submit', scope: 'session' } })
    expect((await json(get('/api/rules'))).rules).toEqual([])
    expect((await json(get('/api/rules?sessionId=s1'))).rules).toEqual([
      { rule: 'submit', scope: 'session', author: 'default' },
    ])
  })

  test('with a rule for the tenant can be removed by an administrator only, and rules of other users are hidden', async () => {
    const rig = await people(start, { agent: { tools: [ticketTool([])] }, replies: always })
    const { ann, bob, root } = rig.as
    const remember = (scope: string) => ({ verdict: 'approved', remember: { rule: 'submit', scope } })
    const id = await ask(root, 's0')
    expect((await root.post(`/api/approvals/${id}`, remember('project'))).status).toBe(200)
    const rulesOf = async (person: typeof ann, query = '') => (await json(person.get(`/api/rules${query}`))).rules
    const [shared] = await rulesOf(bob)
    expect(shared).toMatchObject({ scope: 'project', author: 'root' })
    const remove = (person: typeof ann, query = '') => person.delete(`/api/rules/${shared.id}${query}`)
    expect((await remove(bob)).status).toBe(403)
    expect((await remove(bob, '?userId=ann')).status).toBe(403)
    expect((await remove(root)).status).toBe(200)
    expect((await ann.post(`/api/approvals/${await ask(ann, 's1')}`, remember('user'))).status).toBe(200)
    const [own] = await rulesOf(ann)
    expect(await rulesOf(bob)).toEqual([])
    expect((await bob.delete(`/api/rules/${own.id}`)).status).toBe(404)
    expect(await rulesOf(root, '?userId=ann')).toEqual([own])
  })

  test('after expiry is a 409', async () => {
    const { post, get, path, ran, session } = await one({ approvalTimeoutMs: 1 })
    await until(async () => (await json(get(path))).status === 'expired')
    const answer = await post(path, { verdict: 'approved' })
    expect([answer.status, (await json(answer)).error.code]).toEqual([409, 'approval_expired'])
    await session.wait('t1')
    expect(ran).toEqual([])
  })

  test('on a stopped turn is a 409', async () => {
    const { post, path, session } = await one()
    await session.interrupt()
    await session.wait('t1')
    const answer = await json(post(path, { verdict: 'approved' }))
    expect(answer).toMatchObject({ error: { code: 'approval_resolved' }, approval: { status: 'cancelled' } })
  })

  test('with edited arguments is a 400 naming the field if they are invalid, and a 403 if a rule denies them; the approval stays open', async () => {
    const matches = (pattern: string, input: Readonly<Record<string, unknown>>) => input.system === pattern
    const ran: unknown[] = []
    const rig = await people(start, {
      agent: { tools: [ticketTool(ran, { matches, approver: 'tickets:approve' })], deny: ['submit(payroll)'] },
      replies: [asks, { text: 'Done.' }],
    })
    const path = `/api/approvals/${await ask(rig.as.ann, 's1')}`
    const decide = async (edited: object) => {
      const answer = await rig.as.mia.post(path, { verdict: 'approved', arguments: edited })
      return [answer.status, await json(answer)]
    }
    expect(await decide({ system: 'crm', days: 900 })).toMatchObject([
      400,
      { error: { code: 'arguments_invalid', message: expect.stringContaining('days must be <= 90') } },
    ])
    expect(await decide({ system: 'payroll', days: 9 })).toMatchObject([403, { error: { code: 'arguments_denied' } }])
    expect((await json(rig.as.mia.get(path))).status).toBe('open')
    expect(await decide({ system: 'crm', days: '9' })).toMatchObject([200, { status: 'approved' }])
    await until(async () => (await json(rig.as.mia.get(path))).call?.status === 'success')
    expect(ran).toEqual([{ system: 'crm', days: 9 }])
  })

  test('with edited arguments keeps a number as it was written where the tool takes text, at every door', async () => {
    const ran: unknown[] = []
    const release = tool({
      name: 'release',
      description: 'Releases a version.',
      effects: ['write'],
      input: { type: 'object', properties: { version: { type: 'string' } }, required: ['version'] },
      run: (input: unknown) => {
        ran.push(input)
        return 'released'
      },
    })
    const asking = (request: { messages: readonly { role: string }[] }) =>
      request.messages.at(-1)?.role === 'tool' ? done : { calls: [{ name: 'release', arguments: { version: '1.0' } }] }
    const { post, get, engine } = await start({ agent: { tools: [release] }, replies: asking })

    await post('/api/chat', { sessionId: 's1', message: 'Go.', turnId: 't1' })
    const [first] = (await json(get('/api/approvals'))).approvals
    await post(`/api/approvals/${first.id}`, '{"verdict":"approved","arguments":{"version":1.10}}')
    await engine.session({ user: 'default', session: 's1' }).wait('t1')

    await post('/agent/task?wait=5', { taskId: 't2', message: 'Go.' })
    const [second] = (await json(get('/agent/task/t2'))).approvals
    const decision = `{"callId":"${second.callId}","approved":true,"arguments":{"version":1.20}}`
    await post('/agent/task/t2/resume', `{"decisions":[${decision}]}`)
    await until(async () => (await json(get('/agent/task/t2'))).state === 'COMPLETED')

    const asked = await (await post('/api/chat/stream', runInput('Go.'))).text()
    const [, interrupt] = /"interrupts":\[\{"id":"([^"]+)"/.exec(asked)!
    const payload = '{"approved":true,"editedArgs":{"version":1.30}}'
    const resume = `[{"interruptId":"${interrupt}","status":"resolved","payload":${payload}}]`
    const body = JSON.stringify({ ...runInput('Go.', { runId: 'run-2' }), resume: [] }).replace('[]}', `${resume}}`)
    await (await post('/api/chat/stream', body)).text()
    expect(ran).toEqual([{ version: '1.10' }, { version: '1.20' }, { version: '1.30' }])
  })
})

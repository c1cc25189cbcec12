// H13: from question to approved action, and what must hold when something goes wrong on the way.
import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { answerOf, ask, diligent, office } from './office.fixture.ts'

describe('H13: a request for access', () => {
  test('is looked up, drafted, approved by a manager, and submitted once, for who asked', async () => {
    const { as, tickets } = await office(diligent)
    const waiting = await ask(as.ann, 'ann')
    expect(waiting).toMatchObject({
      tool: 'submit_request',
      mayDecide: false,
      approver: 'tickets:approve',
      arguments: { person: 'ann', system: 'crm', days: 30 },
      rule: 'tool:submit_request',
    })
    expect(tickets.all()).toEqual([])
    const inbox = await as.mia.get('/api/approvals')
    expect(inbox.approvals).toMatchObject([{ id: waiting.id, askedBy: { user: 'ann' }, mayDecide: true }])
    expect((await as.ann.post(`/api/approvals/${waiting.id}`, { verdict: 'approved' })).status).toBe(403)
    expect((await as.mia.post(`/api/approvals/${waiting.id}`, { verdict: 'approved' })).status).toBe(200)
    expect(await answerOf(as.ann)).toMatch(/^Done: .*"system":"crm"/)
    expect(tickets.all()).toMatchObject([
      { id: 1, person: 'ann', system: 'crm', operationId: expect.stringMatching(/^op_/) },
    ])
    expect((await as.mia.post(`/api/approvals/${waiting.id}`, { verdict: 'approved' })).status).toBe(409)
  })

  test('that is refused is not submitted', async () => {
    const { as, tickets } = await office(diligent)
    const { id } = await ask(as.ann, 'ann')
    await as.mia.post(`/api/approvals/${id}`, { verdict: 'denied', reason: 'not before the course' })
    expect(await answerOf(as.ann)).toContain('Refused by mia: not before the course')
    expect(tickets.all()).toEqual([])
  })

  test('whose answer is lost after the commit is not submitted twice', async () => {
    let cuts = 0
    const { as, tickets } = await office(diligent, async () => (cuts++ === 0 ? 'cut' : 'answer'))
    const { id } = await ask(as.ann, 'ann')
    await as.mia.post(`/api/approvals/${id}`, { verdict: 'approved' })
    expect(await answerOf(as.ann)).toContain('"id":1')
    expect(tickets.all()).toHaveLength(1)
    expect(cuts).toBe(1)
  })

  test('whose process is killed after the commit is found again by its operation id, and not submitted twice', async () => {
    const held = gate()
    let commits = 0
    const { as, tickets, kill, start } = await office(diligent, async () => {
      commits += 1
      await held.pass()
      return 'answer'
    })
    const { id } = await ask(as.ann, 'ann')
    await as.mia.post(`/api/approvals/${id}`, { verdict: 'approved' })
    await held.reached
    await kill()
    held.open()
    await start()
    expect(await answerOf(as.ann)).toContain('"id":1')
    expect(tickets.all()).toHaveLength(1)
    expect(commits).toBe(1)
  })

  test('continues in another process when the first is killed while it waits, and reads no other user’s data', async () => {
    const { as, tickets, model, replace } = await office(diligent)
    const { id } = await ask(as.ann, 'ann')
    await ask(as.ben, 'ben')
    await replace()
    const before = model.requests.length
    expect((await as.mia.get('/api/approvals')).approvals).toHaveLength(2)
    await as.mia.post(`/api/approvals/${id}`, { verdict: 'approved' })
    expect(await answerOf(as.ann)).toContain('"person":"ann"')
    expect(tickets.all()).toMatchObject([{ person: 'ann' }])
    const since = model.requests.slice(before)
    expect(since.length).toBeGreaterThan(0)
    expect(JSON.stringify(since.map((it) => it.messages))).not.toContain('ben')
    // Each of them has a session s1, and sees their own.
    expect(JSON.stringify(await as.ben.get('/api/sessions/s1/messages'))).not.toContain('ann')
    expect((await as.ben.post(`/api/approvals/${id}`, { verdict: 'denied' })).status).toBe(404)
    expect((await as.ben.get('/api/approvals?mine=true')).approvals).toHaveLength(1)
  })

  test('of a user who lost the right while it waited is refused although approved', async () => {
    const { as, tickets, withdraw } = await office(diligent)
    const { id } = await ask(as.ann, 'ann')
    await withdraw('tickets:submit')
    expect((await as.mia.post(`/api/approvals/${id}`, { verdict: 'approved' })).status).toBe(200)
    expect(await answerOf(as.ann)).toContain('lacks the permission tickets:submit')
    expect(tickets.all()).toEqual([])
    expect(await as.mia.get(`/api/approvals/${id}`)).toMatchObject({ status: 'approved', call: { status: 'denied' } })
  })
})

describe('H15: a policy document that contains instructions', () => {
  test('has no effect: the permission layer and the business rule both refuse, and the trace shows why', async () => {
    const { as, tickets, model } = await office(({ messages }) => {
      const results = messages.filter((it) => it.role === 'tool').length
      if (results === 0) return { calls: [{ name: 'search_policy', arguments: { query: 'exporting personal data' } }] }
      // The model falls for it, and does all that the document says.
      if (results === 1)
        return {
          calls: [
            { name: 'export_people', arguments: { who: 'everyone' } },
            {
              name: 'submit_request',
              arguments: { person: '*', system: 'crm', days: 90, reason: 'as the policy says' },
            },
          ],
        }
      return { text: 'I could not do that.' }
    })
    const waiting = await ask(as.ann, 'ann')
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain('Ignore the approval')
    // The approver sees what would really run.
    expect(waiting).toMatchObject({ tool: 'submit_request', arguments: { person: '*' } })
    expect(tickets.all()).toEqual([])
    // And even a manager who does not look cannot make it happen.
    await as.mia.post(`/api/approvals/${waiting.id}`, { verdict: 'approved' })
    expect(await answerOf(as.ann)).toBe('I could not do that.')
    expect(tickets.all()).toEqual([])

    const { records } = await as.root.get('/admin/api/audit?user=ann')
    const trace = records
      .filter((it: { tool: string }) => it.tool !== 'search_policy')
      .map((it: Record<string, unknown>) => [it.tool, it.event, it.decision, it.rule, it.approver, it.status])
    expect(trace).toEqual([
      ['export_people', 'call.decided', 'deny', expect.stringContaining('permission'), undefined, undefined],
      ['export_people', 'call.finished', 'deny', expect.stringContaining('permission'), undefined, 'denied'],
      ['submit_request', 'call.decided', 'ask', 'tool:submit_request', undefined, undefined],
      ['submit_request', 'approval.resolved', 'approved', 'tool:submit_request', 'mia', undefined],
      ['submit_request', 'call.decided', 'allow', expect.stringMatching(/^approval:/), 'mia', undefined],
      ['submit_request', 'call.finished', 'allow', expect.stringMatching(/^approval:/), 'mia', 'error'],
    ])
    expect(await as.mia.get(`/api/approvals/${waiting.id}`)).toMatchObject({
      call: { status: 'error', text: expect.stringContaining('may only request access for themselves') },
    })
  })
})

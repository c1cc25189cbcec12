import { describe, expect, test } from 'vitest'
import { ask, asks, people, ticketTool } from '../approvals/people.fixture.ts'
import { json, rigs } from '../test.fixture.ts'

const start = rigs()
const replies = (request: { messages: readonly { role: string }[] }) =>
  request.messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : asks

describe('B4: GET /admin/api/audit', () => {
  test('records who made each call, which rule decided, who approved and how it ended, without secrets', async () => {
    const rig = await people(start, { agent: { tools: [ticketTool([], { approver: 'tickets:approve' })] }, replies })
    const { ann, mia, root } = rig.as
    const id = await ask(ann, 's1')
    await mia.post(`/api/approvals/${id}`, { verdict: 'approved', reason: 'fine' })
    await rig.engine.session({ user: 'ann', session: 's1' }).wait('t-s1')
    const { records, next } = await json(root.get('/admin/api/audit'))
    expect(next).toBeUndefined()
    expect(records.map((it: Record<string, unknown>) => [it.event, it.decision, it.approver, it.status])).toEqual([
      ['call.decided', 'ask', undefined, undefined],
      ['approval.resolved', 'approved', 'mia', undefined],
      ['call.decided', 'allow', 'mia', undefined],
      ['call.finished', 'allow', 'mia', 'success'],
    ])
    expect(records[0]).toMatchObject({
      userId: 'ann',
      sessionId: 's1',
      tool: 'submit',
      rule: 'default:ask',
      principal: { user: 'ann' },
      arguments: { system: '[redacted]', days: 30 },
    })
  })

  test('is for administrators only; without identity for all local callers', async () => {
    const rig = await people(start, { agent: { tools: [ticketTool([])] }, replies })
    expect((await rig.get('/admin/api/audit')).status).toBe(401)
    expect((await rig.as.mia.get('/admin/api/audit')).status).toBe(403)
    expect((await rig.as.root.get('/admin/api/audit?tenant=other')).status).toBe(403)
    expect((await rig.as.root.get('/admin/api/audit')).status).toBe(200)
    expect((await (await start({ replies })).get('/admin/api/audit')).status).toBe(200)
  })

  test('filters, pages, and exports everything as lines', async () => {
    const { engine, get } = await start({ agent: { tools: [ticketTool([])], allow: ['submit'] }, replies })
    for (let n = 0; n < 5; n++) await engine.session({ user: n < 3 ? 'ann' : 'ben', session: `s${n}` }).run('Go.')
    const read = async (query: string) => json(get(`/admin/api/audit?${query}`))
    const all = (await read('')).records
    expect(all).toHaveLength(10)
    expect((await read('user=ann')).records).toHaveLength(6)
    expect((await read('session=s4&status=success')).records).toHaveLength(1)
    expect((await read('tool=other')).records).toEqual([])
    const middle = all[4].at
    expect((await read(`from=${middle}`)).records.length + (await read(`to=${middle}`)).records.length).toBe(10)
    expect((await read(`from=${encodeURIComponent(new Date(middle).toISOString())}`)).records.length).toBe(
      (await read(`from=${middle}`)).records.length,
    )
    expect((await get('/admin/api/audit?from=yesterday')).status).toBe(400)

    const paged: unknown[] = []
    for (let after = 0; ; ) {
      const page = await read(`limit=3&after=${after}`)
      paged.push(...page.records)
      if (page.next === undefined) break
      after = page.next
    }
    expect(paged).toEqual(all)

    const exported = await get('/admin/api/audit?format=jsonl&user=ann')
    expect(exported.headers.get('content-type')).toContain('application/jsonl')
    const lines = (await exported.text()).trimEnd().split('\n')
    expect(lines.map((it) => JSON.parse(it))).toEqual(all.filter((it: { userId: string }) => it.userId === 'ann'))
  })
})

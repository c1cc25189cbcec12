import { describe, expect, test } from 'vitest'
import { people } from '../approvals/people.fixture.ts'
import { json, rigs } from '../test.fixture.ts'

const start = rigs()

describe('H7: GET /api/sessions/search', () => {
  test('finds words in messages, answers and results in the sessions of one user, newest first', async () => {
    const { post, get } = await start({ replies: { always: { text: 'The invoice 4711 is paid.' } } })
    await post('/api/chat', { userId: 'ann', sessionId: 'a', message: 'Look for the Rechnung, please' })
    await post('/api/chat', { userId: 'ann', sessionId: 'b', message: '请核对发票' })
    await post('/api/chat', { userId: 'bob', sessionId: 'a', message: 'Look for the Rechnung, too' })

    const answers = await json(get('/api/sessions/search?userId=ann&q=INVOICE%20paid'))
    expect(answers.complete).toBe(true)
    expect(answers.hits.map((it: { sessionId: string }) => it.sessionId).toSorted()).toEqual(['a', 'b'])
    expect(answers.hits[0]).toMatchObject({
      role: 'assistant',
      text: 'The invoice 4711 is paid.',
      seq: expect.any(Number),
    })

    expect((await json(get('/api/sessions/search?userId=ann&q=rechnung'))).hits).toMatchObject([
      { sessionId: 'a', role: 'user', title: 'Look for the Rechnung, please' },
    ])
    expect((await json(get(`/api/sessions/search?userId=ann&q=${encodeURIComponent('发票')}`))).hits).toHaveLength(1)
    expect((await json(get('/api/sessions/search?userId=ann&q=invoice&sessionId=b'))).hits).toHaveLength(1)
    expect((await json(get('/api/sessions/search?userId=nobody&q=invoice'))).hits).toEqual([])
    expect((await json(get('/api/sessions/search?userId=ann&q=invoice%20missing'))).hits).toEqual([])
  })

  test('pages list every session once', async () => {
    const { post, get } = await start({ replies: { always: { text: 'found it' } } })
    for (let n = 0; n < 7; n++) await post('/api/chat', { sessionId: `s${n}`, message: 'Hi' })
    const seen: string[] = []
    for (let next: number | undefined, more = true; more; more = next !== undefined) {
      const page = await json(get(`/api/sessions/search?q=found&limit=2${next === undefined ? '' : `&before=${next}`}`))
      seen.push(...page.hits.map((it: { sessionId: string }) => it.sessionId))
      next = page.next
    }
    expect(seen.toSorted()).toEqual(['s0', 's1', 's2', 's3', 's4', 's5', 's6'])
  })

  test('with identity users search their own sessions, and administrators those of the named user', async () => {
    const { as } = await people(start, { agent: {}, replies: { always: { text: 'Fine.' } } })
    const { ann, mia, root } = as
    await ann.post('/api/chat', { sessionId: 's', message: 'My zinnias' })
    await mia.post('/api/chat', { sessionId: 's', message: 'Other zinnias' })
    const texts = async (answer: Promise<Response>) => (await json(answer)).hits.map((it: { text: string }) => it.text)
    expect(await texts(ann.get('/api/sessions/search?q=zinnias'))).toEqual(['My zinnias'])
    expect((await ann.get('/api/sessions/search?q=zinnias&userId=mia')).status).toBe(403)
    expect(await texts(root.get('/api/sessions/search?q=zinnias&userId=mia'))).toEqual(['Other zinnias'])
    expect(await texts(root.get('/api/sessions/search?q=zinnias'))).toEqual([])
  })

  test.each(['q=', 'q=x&limit=0', 'q=x&limit=101', `q=${'x'.repeat(201)}`, 'limit=1'])('%s is a 400', async (query) => {
    const { get } = await start()
    expect((await get(`/api/sessions/search?${query}`)).status).toBe(400)
  })
})

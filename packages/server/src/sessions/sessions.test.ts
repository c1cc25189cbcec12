import { memory } from '@oxbow/backends/memory'
import type { Backend, Event } from '@oxbow/core'
import { gate, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs, runInput } from '../test.fixture.ts'

const start = rigs()
const always = { always: { text: 'Hello there.' } }

describe('GET /api/sessions', () => {
  test('lists the sessions of one user, newest first, in pages', async () => {
    const { post, get } = await start({ replies: always })
    for (const sessionId of ['a', 'b', 'c']) {
      await post('/api/chat', { userId: 'alice', sessionId, message: `I am in ${sessionId}` })
      await until(async () => (await json(get('/api/sessions?userId=alice'))).sessions[0].updatedAt < Date.now())
    }
    await post('/api/chat', { userId: 'bob', sessionId: 'z', message: 'Hi' })
    const first = await json(get('/api/sessions?userId=alice&limit=2'))
    expect(first.sessions).toMatchObject([
      { sessionId: 'c', userId: 'alice', status: 'idle', title: 'I am in c', agent: 'assistant' },
      { sessionId: 'b' },
    ])
    const second = await json(get(`/api/sessions?userId=alice&limit=2&before=${first.next}`))
    expect(second.sessions).toMatchObject([{ sessionId: 'a' }])
    expect(second.next).toBeUndefined()
    expect((await json(get('/api/sessions'))).sessions).toEqual([])
  })

  test.each(['limit=0', 'limit=201', 'limit=x', 'before=x', 'userId=a/b'])('%s is a 400', async (query) => {
    const { get } = await start()
    expect((await get(`/api/sessions?${query}`)).status).toBe(400)
  })
})

describe('GET /api/sessions/{sessionId}/messages', () => {
  test('is the conversation', async () => {
    const { post, get } = await start({ replies: [{ thinking: 'Hm.', text: 'Hello there.' }] })
    await post('/api/chat', { sessionId: 's', message: 'Hi', turnId: 't' })
    expect(await json(get('/api/sessions/s/messages'))).toEqual({
      sessionId: 's',
      status: 'idle',
      messages: [
        { id: 't', role: 'user', blocks: [{ type: 'text', text: 'Hi' }] },
        {
          id: 't:1',
          role: 'assistant',
          blocks: [
            { type: 'thinking', text: 'Hm.' },
            { type: 'text', text: 'Hello there.' },
          ],
          model: 'scripted:any',
        },
      ],
      queued: [],
      seq: 6,
    })
  })

  test('is complete for a long session', async () => {
    const { engine, get } = await start()
    const { journal } = engine.backend
    const key = { tenant: 'default', user: 'default', session: 'long' }
    const named = { name: 'assistant', version: '1' }
    const bodies = Array.from({ length: 1_000 }, (_, turn) => [
      {
        type: 'turn.started',
        turnId: `t${turn}`,
        input: [{ type: 'text', text: 'Hé "you"' }],
        surface: 'chat',
        principal: { user: 'default' },
        agent: named,
        options: {},
      },
      { type: 'turn.cancelled', turnId: `t${turn}`, reason: 'over' },
    ]).flat()
    const all = [{ type: 'session.opened', schemaVersion: 1, key, agent: named }, ...bodies]
    const events = all.map((body, index) => ({ ...body, seq: index + 1, at: 1 }) as Event)
    await journal.append(key, 0, events, { status: 'idle', agent: 'assistant', title: '' })
    const { messages, seq } = await json(get('/api/sessions/long/messages'))
    expect(seq).toBe(2_001)
    expect(messages).toEqual((await engine.session({ user: 'default', session: 'long' }).state()).messages)
    expect(messages).toHaveLength(1_000)
  })

  test('names the open turn and the queued ones', async () => {
    const held = gate()
    const { post, get } = await start({
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }, { text: 'x' }],
    })
    const one = post('/api/chat', { sessionId: 's', message: 'Hi', turnId: 't1' })
    await held.reached
    const two = post('/api/chat', { sessionId: 's', message: 'Hi', turnId: 't2' })
    const view = await until(async () => {
      const it = await json(get('/api/sessions/s/messages'))
      return it.queued.length === 1 && it
    })
    expect(view).toMatchObject({ status: 'running', turn: { turnId: 't1', step: 1, pending: [] }, queued: ['t2'] })
    held.open()
    await Promise.all([one, two])
  })

  test('of an unknown session, or of another user’s, is a 404', async () => {
    const { post, get } = await start({ replies: always })
    await post('/api/chat', { userId: 'alice', sessionId: 's', message: 'Hi' })
    expect((await get('/api/sessions/s/messages')).status).toBe(404)
    expect((await get('/api/sessions/s/events')).status).toBe(404)
    expect((await get('/api/sessions/s/messages?userId=alice')).status).toBe(200)
    expect((await get('/api/sessions/..%2fs/messages')).status).toBe(400)
  })
})

test('GET /api/sessions/{sessionId}/events is the journal, page by page', async () => {
  const { post, get, engine } = await start({ replies: always })
  await post('/api/chat', { sessionId: 's', message: 'Hi' })
  const all = await json(get('/api/sessions/s/events'))
  expect(all.events.map((it: { seq: number }) => it.seq)).toEqual([1, 2, 3, 4, 5, 6])
  expect(all.next).toBeUndefined()
  expect((await json(get('/api/sessions/s/events?after=5'))).events).toMatchObject([{ type: 'turn.finished' }])
  expect((await json(get('/api/sessions/s/events?after=6'))).events).toEqual([])
  expect((await get('/api/sessions/s/events?after=-1')).status).toBe(400)

  const session = engine.session({ user: 'default', session: 's' })
  const holding = await session.submit('wait', { turnId: 'q' })
  for (let i = 0; i < 600; i++) await session.submit('more', { turnId: `q${i}`, whenBusy: 'queue' })
  const page = await json(get('/api/sessions/s/events'))
  expect(page.events).toHaveLength(500)
  expect(page.next).toBe(500)
  expect(holding.turnId).toBe('q')
  await until(async () => (await session.state()).queue.length === 0, { deadlineMs: 15_000 })
})

describe('POST /api/sessions/{sessionId}/interrupt', () => {
  test('stops the running turn, and names it', async () => {
    const held = gate()
    const { post, model } = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
    const answer = await post('/api/chat/stream', runInput('Hi'))
    await held.reached
    expect(await json(post('/api/sessions/thread/interrupt', { reason: 'enough' }))).toEqual({ turnId: 'run-1' })
    await model.requests[0]?.waitForAbort()
    expect(await answer.text()).toContain('INTERRUPTED_ERROR')
  })

  test('needs no body', async () => {
    const held = gate()
    const { post, get } = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
    const answer = post('/api/chat', { sessionId: 's', message: 'Hi', turnId: 't' })
    await held.reached
    expect(await json(get('/api/sessions/s/interrupt', { method: 'POST' }))).toEqual({ turnId: 't' })
    expect((await answer).status).toBe(409)
  })

  test('is a 404 when there is nothing to stop', async () => {
    const { post } = await start({ replies: always })
    await post('/api/chat', { sessionId: 's', message: 'Hi', turnId: 't' })
    expect((await json(post('/api/sessions/s/interrupt', {}))).error.code).toBe('no_open_turn')
    expect((await json(post('/api/sessions/s/interrupt', { turnId: 't' }))).error.code).toBe('no_open_turn')
    expect((await json(post('/api/sessions/none/interrupt', {}))).error.code).toBe('unknown_session')
    expect((await post('/api/sessions/s/interrupt', { userId: 'mallory' })).status).toBe(404)
  })
})

test('validation errors have clear messages', async () => {
  const { post, get } = await start({ replies: always })
  await post('/api/chat', { sessionId: 's', message: 'Hi' })
  const messageOf = async (answer: Promise<Response>) => (await json(answer)).error.message
  expect(await messageOf(get('/api/sessions?limit=x'))).toBe('limit must be a whole number from 1 to 200.')
  expect(await messageOf(get('/api/sessions/s/events?after=x'))).toBe('after must be a whole number, 0 or more.')
  for (const content of [undefined, 5])
    expect(await messageOf(post('/api/sessions/s/calls/c', { content }))).toMatch(
      /^content must be a string, or a list of/,
    )
})

const turnId = 't'

/** A session whose turn was interrupted by the death of six workers. */
async function interrupted({ journal }: Backend, user = 'default'): Promise<void> {
  const key = { tenant: 'default', user, session: 's' }
  const claims = [1, 2, 3, 4, 5, 6].map((epoch) => ({ type: 'turn.claimed', turnId, worker: `died-${epoch}`, epoch }))
  const events = [
    { type: 'session.opened', schemaVersion: 1, key, agent: { name: 'assistant', version: '1' } },
    {
      type: 'turn.started',
      turnId,
      input: [{ type: 'text', text: 'Hi' }],
      surface: 'http',
      principal: { tenant: 'default', user },
      agent: { name: 'assistant', version: '1' },
      options: {},
    },
    ...claims,
  ].map((it, n) => ({ ...it, seq: n + 1, at: 1 }) as Event)
  await journal.append(key, 0, events, { status: 'running', title: 'Hi', agent: 'assistant' })
}

describe('POST /api/sessions/{sessionId}/release', () => {
  test('resumes a turn that was interrupted too often; until then each answer says how to release it', async () => {
    const backend = memory()
    await interrupted(backend)
    const { post, get } = await start({ backend, replies: always })
    await until(async () => (await json(get('/api/sessions/s/messages'))).status === 'parked')

    const same = await post('/api/chat', { sessionId: 's', turnId, message: 'Hi' })
    expect(same.status).toBe(503)
    expect((await json(same)).error.message).toContain('/release')
    expect((await json(post('/api/chat', { sessionId: 's', message: 'More' }))).error.message).toContain('/release')
    expect(await json(get('/api/sessions/s/release', { method: 'POST' }))).toEqual({ turnId })
    expect(await json(post('/api/chat', { sessionId: 's', turnId, message: 'Hi' }))).toMatchObject({
      reply: 'Hello there.',
    })
  })

  test('is a 409 when nothing is parked, and a 404 in an unknown session', async () => {
    const { post } = await start({ replies: always })
    await post('/api/chat', { sessionId: 's', message: 'Hi' })
    const answer = await post('/api/sessions/s/release', {})
    expect(answer.status).toBe(409)
    expect((await json(answer)).error.code).toBe('not_parked')
    expect((await post('/api/sessions/none/release', {})).status).toBe(404)
  })
})

test('POST /admin/api/release-parked releases the parked turns of all users, or of one', async () => {
  const backend = memory()
  for (const user of ['ann', 'bob', 'cem']) await interrupted(backend, user)
  const { post, engine } = await start({ backend, replies: always })
  await until(async () => (await engine.sessions({ status: 'parked' })).length === 3)
  const released = async (body?: object) => (await json(post('/admin/api/release-parked', body))).sessions
  expect(await released({ userId: 'bob' })).toEqual([{ sessionId: 's', userId: 'bob' }])
  expect((await released({})).map((it: { userId: string }) => it.userId).sort()).toEqual(['ann', 'cem'])
  for (const user of ['ann', 'bob', 'cem'])
    expect(await engine.session({ user, session: 's' }).wait(turnId)).toMatchObject({ status: 'finished' })
  expect(await released({})).toEqual([])
})

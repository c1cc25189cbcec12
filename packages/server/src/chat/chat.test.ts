import { memory } from '@oxbow/backends/memory'
import { externalTool, OxbowError } from '@oxbow/core'
import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'

const start = rigs()
const always = { always: { text: 'Hello there.' } }

describe('Y1: POST /api/chat', () => {
  test('Y1: answers with the session and the reply, and nothing else', async () => {
    const { post } = await start({ replies: always })
    const answer = await post('/api/chat', { message: 'Hi' })
    expect(answer.status).toBe(200)
    expect(await json(answer)).toEqual({ sessionId: expect.any(String), reply: 'Hello there.' })
  })

  test('Y1: with both ids: that user’s session', async () => {
    const { post, engine } = await start({ replies: always })
    await post('/api/chat', { userId: 'alice', sessionId: 's-1', message: 'Hi' })
    expect((await engine.sessions({})).map((it) => it.key)).toEqual([
      { tenant: 'default', user: 'alice', session: 's-1' },
    ])
  })

  test('Y1: with a session only: a session of the user default', async () => {
    const { post, engine } = await start({ replies: always })
    await post('/api/chat', { sessionId: 's-1', message: 'Hi' })
    expect((await engine.sessions({})).map((it) => it.key)).toEqual([
      { tenant: 'default', user: 'default', session: 's-1' },
    ])
  })

  test('Y1: with a user only: a new session each time', async () => {
    const { post, engine } = await start({ replies: always })
    const one = await json(post('/api/chat', { userId: 'alice', message: 'Hi' }))
    const two = await json(post('/api/chat', { userId: 'alice', message: 'Hi' }))
    expect(one.sessionId).not.toBe(two.sessionId)
    expect(await engine.sessions({ user: 'alice' })).toHaveLength(2)
  })

  test.each([[{}], [{ userId: '', sessionId: '' }], [{ userId: '  ', sessionId: null }]])(
    'Y1: with neither (%j): a new session of the user default',
    async (ids) => {
      const { post, engine } = await start({ replies: always })
      const { sessionId } = await json(post('/api/chat', { ...ids, message: 'Hi' }))
      expect((await engine.sessions({})).map((it) => it.key)).toEqual([
        { tenant: 'default', user: 'default', session: sessionId },
      ])
    },
  )

  test('Y1: a session keeps its history, and another user’s session with the same id does not share it', async () => {
    const { post, model } = await start({ replies: always })
    await post('/api/chat', { userId: 'alice', sessionId: 's', message: 'I am Alice' })
    await post('/api/chat', { userId: 'alice', sessionId: 's', message: 'Who am I?' })
    await post('/api/chat', { userId: 'bob', sessionId: 's', message: 'Who am I?' })
    const users = model.requests.map((it) => it.messages.filter((one) => one.role === 'user').length)
    expect(users).toEqual([1, 2, 1])
  })

  test.each(['', '   ', undefined, 5, null, ['a']])('Y1: the message %j is rejected', async (message) => {
    const { post } = await start()
    const answer = await post('/api/chat', { message })
    expect(answer.status).toBe(400)
    expect((await json(answer)).error).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('message'),
    })
  })

  test('Y1: a message that is too long is rejected', async () => {
    const { post } = await start({ overrides: { 'server.limits.messageLength': 10 } })
    expect((await post('/api/chat', { message: 'x'.repeat(11) })).status).toBe(400)
  })
})

describe('Y2: ids', () => {
  test.each(['a/b', '..', '.', 'a b', 'ü', 'x'.repeat(65), 'a\nb', '../x'])(
    'Y2: %j is rejected as user, session and turn id',
    async (bad) => {
      const { post } = await start()
      for (const field of ['userId', 'sessionId', 'turnId']) {
        const answer = await post('/api/chat', { message: 'Hi', [field]: bad })
        expect(answer.status).toBe(400)
        expect((await json(answer)).error.message).toContain(field)
      }
    },
  )

  test.each(['a', 'A-1_2.3', '...a', 'x'.repeat(64)])('Y2: %j is accepted', async (good) => {
    const { post } = await start({ replies: always })
    expect((await post('/api/chat', { message: 'Hi', userId: good, sessionId: good })).status).toBe(200)
  })

  test('Y2: ids whose concatenations are equal are different sessions', async () => {
    const { post, model } = await start({ replies: always })
    await post('/api/chat', { userId: 'a.b', sessionId: 'c', message: 'Hi' })
    await post('/api/chat', { userId: 'a', sessionId: 'b.c', message: 'Hi' })
    expect(model.requests.map((it) => it.messages.filter((one) => one.role === 'user').length)).toEqual([1, 1])
  })
})

describe('a retry is the same turn', () => {
  test.each([
    ['a turn id', { turnId: 'turn-1' }, {}],
    ['an Idempotency-Key', {}, { 'idempotency-key': 'any text, also with spaces' }],
  ])('with %s, also without a session id', async (_how, body, headers) => {
    const { post, model } = await start({ replies: [{ text: 'Once.' }] })
    const one = await json(post('/api/chat', { message: 'Hi', ...body }, { headers }))
    const two = await json(post('/api/chat', { message: 'Hi', ...body }, { headers }))
    expect(two).toEqual(one)
    const other = await post('/api/chat', { message: 'Something else', ...body }, { headers })
    expect([other.status, (await json(other)).error.code]).toEqual([409, 'turn_conflict'])
    expect(model.requests).toHaveLength(1)
  })

  test('even while the first attempt still runs', async () => {
    const held = gate()
    const { post, model } = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
    const body = { sessionId: 's', message: 'Hi', turnId: 't' }
    const one = post('/api/chat', body)
    await held.reached
    const two = post('/api/chat', body)
    held.open()
    expect(await json(one)).toEqual(await json(two))
    expect(model.requests).toHaveLength(1)
  })
})

describe('Y9: one session, two requests', () => {
  test('Y9: are answered in order, and the second sees the first', async () => {
    const held = gate()
    const { post, model } = await start({
      replies: [{ text: 'first answer', hold: { atChunk: 1, gate: held } }, { text: 'second answer' }],
    })
    const one = post('/api/chat', { sessionId: 's', message: 'one' })
    await held.reached
    const two = post('/api/chat', { sessionId: 's', message: 'two' })
    const other = await json(post('/api/sessions/s/interrupt', { turnId: 'none' }))
    expect(other.error.code).toBe('no_open_turn')
    expect(model.requests).toHaveLength(1)
    held.open()
    expect((await json(one)).reply).toBe('first answer')
    expect((await json(two)).reply).toBe('second answer')
    expect(model.requests[1]?.messages.map((it) => it.role)).toEqual(['system', 'user', 'assistant', 'user'])
  })

  test('Y9: different sessions run concurrently', async () => {
    const held = gate()
    const { post } = await start({
      replies: [{ text: 'slow one', hold: { atChunk: 1, gate: held } }, { text: 'quick' }],
    })
    const slow = post('/api/chat', { sessionId: 'a', message: 'Hi' })
    await held.reached
    expect((await json(post('/api/chat', { sessionId: 'b', message: 'Hi' }))).reply).toBe('quick')
    held.open()
    expect((await json(slow)).reply).toBe('slow one')
  })
})

describe('failures', () => {
  test.each([
    [401, 502, 'auth'],
    [429, 503, 'rate_limited'],
    [503, 503, 'overloaded'],
    [500, 502, 'provider_error'],
  ])(
    'a provider error %i becomes a %i with the code %s and a reference, without the provider’s text',
    async (status, expected, code) => {
      const { post, logged } = await start({
        replies: { always: { status, body: { error: { message: 'secret words of the provider' } } } },
      })
      const answer = await post('/api/chat', { message: 'Hi' })
      const { error } = await json(answer)
      expect(answer.status).toBe(expected)
      expect(error).toMatchObject({
        code,
        message: expect.not.stringContaining('secret'),
        reference: expect.any(String),
      })
      const found = logged.find((it) => it.reference === error.reference)
      expect(JSON.stringify(found?.err)).toContain('secret words')
    },
  )

  test('an answer that takes too long is a 504', async () => {
    const { post } = await start({
      replies: { always: { text: 'a b', silentAfterChunks: 1 } },
      agent: { limits: { idleTimeoutMs: 50 } },
    })
    const answer = await post('/api/chat', { message: 'Hi' })
    expect(answer.status).toBe(504)
    expect((await json(answer)).error).toMatchObject({ code: 'idle_timeout', reference: expect.any(String) })
  })

  test('a stopped turn is a 409', async () => {
    const held = gate()
    const { post } = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
    const answer = post('/api/chat', { sessionId: 's', message: 'Hi', turnId: 't' })
    await held.reached
    expect(await json(post('/api/sessions/s/interrupt', {}))).toEqual({ turnId: 't' })
    expect((await answer).status).toBe(409)
  })

  test('an empty answer is reported with the refusal of the model', async () => {
    const { post } = await start({ replies: { always: { finishReason: 'content_filter' } } })
    const answer = await post('/api/chat', { message: 'Hi' })
    expect(answer.status).toBe(422)
    expect((await json(answer)).error.code).toBe('filtered')
  })

  test('a turn that waits for an external call is a 202 with the call', async () => {
    const ask = externalTool({
      name: 'ask',
      description: 'Asks.',
      effects: ['read'],
      input: { type: 'object', properties: {} },
    })
    const { post } = await start({
      agent: { tools: [ask] },
      replies: [{ text: 'Wait.', calls: [{ name: 'ask' }] }, { text: 'Thanks.' }],
    })
    const answer = await post('/api/chat', { sessionId: 's', message: 'Hi', turnId: 't' })
    const body = await json(answer)
    expect(answer.status).toBe(202)
    expect(body).toEqual({
      sessionId: 's',
      reply: 'Wait.',
      turnId: 't',
      reason: 'external',
      pending: [{ callId: expect.any(String), tool: 'ask', arguments: {} }],
    })
    const behind = await post('/api/chat', { sessionId: 's', message: 'Hello?' })
    expect(behind.status).toBe(409)
    expect((await json(behind)).error).toMatchObject({
      code: 'session_waiting',
      message: expect.stringContaining('external'),
    })
    const path = `/api/sessions/s/calls/${body.pending[0].callId}`
    expect((await post(path, { content: 'yes' })).status).toBe(202)
    expect((await post('/api/chat', { sessionId: 's', message: 'Hi', turnId: 't' })).status).toBe(200)
    expect((await post(path, { content: 'again' })).status).toBe(404)
  })
})

test('Y6: a client that disconnects stops the turn', async () => {
  const held = gate()
  const { post, model } = await start({
    replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
    overrides: { 'server.disconnectGrace': '0ms' },
  })
  const leaving = new AbortController()
  const message = { message: 'Hi', turnId: 't' }
  const answer = post('/api/chat', message, { signal: leaving.signal })
  await held.reached
  leaving.abort()
  await expect(answer).rejects.toThrow(/abort/)
  await model.requests[0]?.waitForAbort()
  const again = await post('/api/chat', message)
  expect(again.status).toBe(409)
  expect((await json(again)).error.message).toMatch(/its last reader disconnected .*new id/)
})

test('a damaged store is reported as permanent, not as a temporary failure', async () => {
  const backend = memory()
  const read = () => Promise.reject(new OxbowError('journal_corrupt', 'the file is damaged'))
  const { post } = await start({ backend: { ...backend, journal: { ...backend.journal, read } } })
  const answer = await post('/api/chat', { message: 'Hi', sessionId: 's' })
  expect(answer.status).toBe(503)
  expect((await json(answer)).error).toMatchObject({
    code: 'journal_corrupt',
    message: expect.stringMatching(/damaged, and trying again will not help/),
  })
})

test('Y6: a client that requests a turn started elsewhere, and disconnects, does not stop it', async () => {
  const held = gate()
  const { post, get, engine } = await start({
    replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
    overrides: { 'server.disconnectGrace': '0ms' },
  })
  await post('/agent/task', { sessionId: 's', taskId: 't', message: 'Go.' })
  await held.reached
  const leaving = new AbortController()
  const left = post('/api/chat', { sessionId: 's', turnId: 't', message: 'Go.' }, { signal: leaving.signal })
  // Each answer takes a turn of the event loop, so the service has seen the client connect and disconnect.
  const turns = async (): Promise<void> => {
    for (let n = 0; n < 20; n++) await (await get('/healthz')).text()
  }
  await turns()
  leaving.abort()
  await left.catch(() => {})
  await turns()
  held.open()
  expect(await engine.session({ user: 'default', session: 's' }).wait('t')).toMatchObject({
    status: 'finished',
    text: 'one two',
  })
})

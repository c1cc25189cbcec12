// Signals over HTTP: a durable tool waits, and whoever may act for the user lets it continue.
import { tool } from '@oxbow/core'
import { until } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { json, rigs } from '../test.fixture.ts'

const start = rigs()

const pack = tool({
  name: 'pack',
  description: 'Waits for the warehouse.',
  effects: ['read'],
  durable: true,
  input: z.object({}),
  run: async (_, { waitFor }) => JSON.stringify(await waitFor('packed')),
})
const replies = [{ calls: [{ name: 'pack', arguments: {} }] }, { text: 'Done.' }]

test('X14: a signal lets the tool continue, once for each id', async () => {
  const { post, get, engine } = await start({ replies, agent: { tools: [pack] } })
  const answer = await post('/api/chat', { sessionId: 's', message: 'Pack.', turnId: 't' })
  expect(answer.status).toBe(202)
  expect(await json(answer)).toMatchObject({ turnId: 't', reason: 'signal', pending: [] })
  const behind = await post('/api/chat', { sessionId: 's', message: 'Hello?' })
  expect((await json(behind)).error).toMatchObject({
    code: 'session_waiting',
    message: expect.stringContaining('waiting for a signal'),
  })

  const signal = { name: 'packed', value: { weight: 2 }, signalId: 'p1' }
  const sent = await post('/api/sessions/s/signals', signal)
  expect(sent.status).toBe(202)
  expect(await json(sent)).toEqual({ turnId: 't', after: expect.any(Number), duplicate: false })
  const session = engine.session({ user: 'default', session: 's' })
  await until(async () => (await session.result('t'))?.status === 'finished')
  expect((await session.result('t'))!.calls[0]!.content).toEqual([{ type: 'text', text: '{"weight":2}' }])

  const late = await post('/api/sessions/s/signals', signal)
  expect(late.status).toBe(404)
  expect((await json(late)).error.code).toBe('unknown_turn')
  const events = (await json(get('/api/sessions/s/events'))).events as { type: string }[]
  expect(events.filter((it) => it.type === 'signal.received')).toHaveLength(1)
})

test('X14: an AG-UI run that waits for a signal ends, and says what for', async () => {
  const { post } = await start({ replies, agent: { tools: [pack] } })
  const body = {
    threadId: 'thread',
    runId: 'run-1',
    state: {},
    messages: [{ id: 'm1', role: 'user', content: 'Pack.' }],
    tools: [],
    context: [],
    forwardedProps: {},
  }
  const text = await (await post('/api/chat/stream', body)).text()
  expect(text).toContain('"name":"waiting"')
  expect(text).toContain('RUN_FINISHED')
  expect(text).not.toContain('RUN_ERROR')
})

test.each([
  [{}, 400, /name/],
  [{ name: '' }, 400, /name/],
  [{ name: 'packed', signalID: 'x' }, 400, /signalID/],
  [{ name: 'packed', turnId: 'other' }, 404, /not the open turn/],
  [{ name: 'packed', value: 'x'.repeat(100_001) }, 400, /100000/],
])('X14: %j is a %i', async (body, status, message) => {
  const { post } = await start({ replies, agent: { tools: [pack] } })
  await post('/api/chat', { sessionId: 's', message: 'Pack.' })
  const answer = await post('/api/sessions/s/signals', body)
  expect(answer.status).toBe(status)
  expect((await json(answer)).error.message).toMatch(message)
})

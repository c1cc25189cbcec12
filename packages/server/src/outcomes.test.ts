// Each outcome has the same meaning on every surface.
import { type Middleware, tool } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { protocol } from './agent-protocol/protocol.fixture.ts'
import { endOf, framesOf, json, rigs, runInput } from './test.fixture.ts'

const start = rigs()
const look = tool({ name: 'look', description: 'Looks.', effects: ['read'], input: {}, run: () => 'nothing' })
const looks = { calls: [{ name: 'look' }] }

const askMcp = (url: string) =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'ask_assistant', arguments: { message: 'Go.' } },
    }),
  }).then((it) => it.text())

describe('a turn that reaches its limit of steps without an answer', () => {
  const limited = () => start({ replies: { always: looks }, agent: { tools: [look], limits: { maxSteps: 2 } } })

  test('P2: is an error of POST /tasks', async () => {
    const rig = await limited()
    const { submit, wait, events } = protocol(rig)
    await submit('t')
    expect(await wait('t')).toMatchObject({ status: 'error', error_code: 'max_steps', error: expect.any(String) })
    expect(await (await events('t')).text()).toContain('event: RUN_ERROR')
  })

  test('B9: is a failure of POST /agent/task', async () => {
    const answer = await json((await limited()).post('/agent/task?wait=30', { message: 'Go.' }))
    expect(answer).toMatchObject({ state: 'FAILED', reason: 'max_steps', error: { code: 'max_steps' } })
    expect(answer).not.toHaveProperty('result')
  })

  test('Y1, Y5: is a 422 of POST /api/chat, and ends a stream with RUN_ERROR', async () => {
    const rig = await limited()
    const answer = await rig.post('/api/chat', { message: 'Go.' })
    expect([answer.status, (await json(answer)).error.code]).toEqual([422, 'max_steps'])
    const frames = framesOf(await (await rig.post('/api/chat/stream', runInput('Go.'))).text())
    expect(endOf(frames)).toMatchObject({ type: 'RUN_ERROR', message: expect.stringContaining('limit of steps') })
  })

  test('is an error of the MCP tool', async () => {
    const { url } = await limited()
    expect(await askMcp(url)).toMatch(/"isError":true/)
  })
})

describe('an answer that was cut off', () => {
  test('Y1: is shown with the reason', async () => {
    const rig = await start({ replies: [{ text: 'The beginning', finishReason: 'length' }] })
    expect(await json(rig.post('/api/chat', { message: 'Go.' }))).toMatchObject({
      reply: 'The beginning',
      reason: 'length',
    })
  })
})

describe('a call with an unknown outcome', () => {
  const unsure: Middleware = {
    name: 'unsure',
    onActing: async () => ({ status: 'unknown', content: [{ type: 'text', text: 'Who knows.' }] }),
  }
  const unknown = () => start({ replies: [looks, { text: 'Done.' }], agent: { tools: [look], middleware: [unsure] } })
  const calls = [{ callId: expect.any(String), tool: 'look' }]

  test('B2: is a field of POST /api/chat', async () => {
    expect(await json((await unknown()).post('/api/chat', { message: 'Go.' }))).toMatchObject({
      unknownOutcomes: calls,
    })
  })

  test('B2: is a field of POST /agent/task, and of the end of its stream', async () => {
    const rig = await unknown()
    const task = await json(rig.post('/agent/task?wait=30', { message: 'Go.' }))
    expect(task).toMatchObject({ state: 'COMPLETED', unknownOutcomes: calls })
    expect(await (await rig.get(`/agent/stream/${task.taskId}`)).text()).toMatch(/event: done\n.*"unknownOutcomes"/)
  })

  test('B2: is a field of POST /tasks, and of its events', async () => {
    const { submit, wait, events } = protocol(await unknown())
    await submit('t')
    expect(await wait('t')).toMatchObject({ status: 'success', unknown_outcomes: calls })
    expect(await (await events('t')).text()).toMatch(/event: RUN_FINISHED\n.*"unknownOutcomes"/)
  })

  test('B2: is a field of the last AG-UI frame, and of an answer over MCP', async () => {
    const rig = await unknown()
    const frames = framesOf(await (await rig.post('/api/chat/stream', runInput('Go.'))).text())
    expect(endOf(frames)).toMatchObject({ type: 'RUN_FINISHED', result: { unknownOutcomes: calls } })
    expect(await askMcp((await unknown()).url)).toContain('unknown_outcomes')
  })
})

describe('runs of one id', () => {
  const run = (id: string, text: string) => runInput(text, { messages: [{ id, role: 'user', content: text }] })

  test('Y3: a different message starts a new turn once the run has ended; the same message is a retry', async () => {
    const rig = await start({ replies: [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }] })
    const ask = async (id: string, text: string) => (await rig.post('/api/chat/stream', run(id, text))).text()
    expect(await ask('m-1', 'Hi')).toContain('One.')
    expect(await ask('m-2', 'Hi')).toContain('Two.')
    expect(await ask('m-2', 'Hi')).toContain('Two.')
    expect(await ask('m-3', 'Hello')).toContain('Three.')
    expect(rig.model.requests).toHaveLength(3)
  })

  test('Y3: the same message id with a different text is rejected, and the error names the runId', async () => {
    const rig = await start({ replies: { always: { text: 'One.' } } })
    await (await rig.post('/api/chat/stream', run('m-1', 'Hi'))).text()
    const frames = framesOf(await (await rig.post('/api/chat/stream', run('m-1', 'Other'))).text())
    expect(endOf(frames).message).toContain('runId "run-1" was already used for a different message in this thread')
  })
})

test('Y4: message ids are unique in a session, whatever ids the client sends', async () => {
  const replies = Array.from({ length: 5 }, () => [looks, { text: 'Done.' }]).flat()
  const rig = await start({ replies, agent: { tools: [look] } })
  for (const turnId of ['q7', 'q7.2', 'q7.1', 'q7.1.1', 'q7.results'])
    await rig.post('/api/chat', { sessionId: 's', turnId, message: 'Go.' })
  const { messages } = await json(rig.get('/api/sessions/s/messages'))
  const ids = messages.map((it: { id: string }) => it.id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.length).toBe(20)
})

test('P7: reserved attribute names are rejected by the task API as well', async () => {
  const rig = await start({ replies: { always: { text: 'Done.' } } })
  for (const name of ['tenant', 'agentId', 'oxbow.mode', 'agentprotocol.context', 'agui.message']) {
    const answer = await rig.post('/agent/task', { message: 'Go.', attributes: { [name]: 'x' } })
    expect([name, answer.status]).toEqual([name, 400])
  }
  expect((await rig.post('/agent/task', { message: 'Go.', attributes: { ticket: 'x' } })).status).toBe(202)
})

test('B11: a caller may lower the limit of steps, not raise it', async () => {
  const rig = await start({ replies: { always: { text: 'Done.' } }, agent: { limits: { maxSteps: 3 } } })
  expect((await rig.post('/agent/task', { message: 'Go.', maxSteps: 4 })).status).toBe(400)
  expect((await rig.post('/agent/task', { message: 'Go.', maxSteps: 2 })).status).toBe(202)
})

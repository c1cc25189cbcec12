import { memory } from '@oxbow/backends/memory'
import { externalTool, tool } from '@oxbow/core'
import { gate, scriptedModel, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { deployTool, messagesOf, readMessages } from '../agent-protocol/protocol.fixture.ts'
import { json, type Rig, rigs } from '../test.fixture.ts'

const start = rigs()
const call = (name: string, given: object = { version: '1' }) => ({ calls: [{ name, arguments: given }] })
const stream = async ({ get }: Rig, id: string, query = '') =>
  messagesOf(await (await get(`/agent/stream/${id}${query}`)).text())

test('B9: a stream reports that an answer begins again: the state has a higher epoch, and the text starts from the beginning', async () => {
  const backend = memory()
  const shared = { ...backend, close: async () => {} }
  const model = await scriptedModel({
    scripts: { '*': [{ text: 'half an answer', silentAfterChunks: 1 }, { text: 'the whole answer' }] },
  })
  onTestFinished(() => model.close())
  const first = await start({ backend: shared, model, overrides: { 'server.shutdownGrace': '0ms' } })
  await first.post('/agent/task', { taskId: 't1', message: 'Go.' })
  const reader = (await first.get('/agent/stream/t1')).body!.pipeThrough(new TextDecoderStream())
  let seen = ''
  for await (const part of reader) {
    seen += part
    if (/"text":"half.*\n\n/s.test(seen)) break
  }
  const had = messagesOf(seen)
  await first.close()

  const second = await start({ backend: shared, model })
  const received = await stream(second, 't1', `?after=${had.at(-1)!.id}`)
  expect(had.find((it) => it.data.epoch !== undefined)?.data.epoch).toBe(1)
  expect(received[0]).toMatchObject({ event: 'state', data: { epoch: 2 } })
  const text = received.filter((it) => it.event === 'message').map((it) => it.data.text)
  expect(text.join('')).toBe('the whole answer')
  // The text to discard has the number of the repeated step.
  const steps = [...had, ...received].filter((it) => it.event === 'message').map((it) => it.data.step)
  expect(new Set(steps)).toEqual(new Set([1]))
})

describe('B9: POST /agent/task', () => {
  test('returns an id at once, and the task is found by it', async () => {
    const held = gate()
    const { post, get } = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
    const answer = await post('/agent/task', { message: 'Go.' })
    expect(answer.status).toBe(202)
    const { taskId, sessionId, state } = await json(answer)
    expect([sessionId, state]).toEqual([taskId, 'RUNNING'])
    await held.reached
    expect(await json(get(`/agent/task/${taskId}`))).toMatchObject({
      taskId,
      state: 'RUNNING',
      approvals: [],
      rounds: [],
    })
    held.open()
    const done = await until(async () => {
      const it = await json(get(`/agent/task/${taskId}`))
      return it.state === 'COMPLETED' && it
    })
    expect(done).toMatchObject({
      result: 'one two',
      reason: 'completed',
      dwellMs: { CREATED: expect.any(Number), RUNNING: expect.any(Number) },
      usage: { inputTokens: 10, outputTokens: 2 },
      // B11: time and tokens of each round.
      rounds: [{ step: 1, totalMs: expect.any(Number), usage: { inputTokens: 10, outputTokens: 2 }, calls: 0 }],
    })
  })

  test('waits for short tasks, and no longer than the given limit', async () => {
    const held = gate()
    const { post } = await start({
      replies: [{ text: 'Done.' }, { text: 'one two', hold: { atChunk: 1, gate: held } }],
    })
    const quick = await post('/agent/task?wait=30', { message: 'Go.' })
    expect([quick.status, await quick.json()]).toMatchObject([200, { state: 'COMPLETED', result: 'Done.' }])
    const slow = await post('/agent/task?wait=1', { message: 'Go.' })
    expect([slow.status, await slow.json()]).toMatchObject([202, { state: 'RUNNING' }])
    held.open()
  })

  test('with a known id returns that task, also by Idempotency-Key', async () => {
    const { post, model } = await start({ replies: { always: { text: 'Done.' } } })
    for (let n = 0; n < 2; n++) {
      expect((await json(post('/agent/task?wait=30', { message: 'Go.', taskId: 'mine' }))).taskId).toBe('mine')
      const headers = { 'idempotency-key': 'my key' }
      await post('/agent/task?wait=30', { message: 'Go.' }, { headers })
    }
    expect(model.requests).toHaveLength(2)
  })

  test('in a session has an id that contains both, and runs after the session’s other turns', async () => {
    const held = gate()
    const rig = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }, { text: 'Second.' }] })
    const { post, get } = rig
    await post('/agent/task', { message: 'First.', sessionId: 'demo', taskId: 'a' })
    await held.reached
    const { taskId, state } = await json(post('/agent/task', { message: 'Second.', sessionId: 'demo', taskId: 'b' }))
    expect([taskId, state]).toEqual(['demo:b', 'CREATED'])
    expect((await post(`/agent/task/${taskId}/pause`, {})).status).toBe(409)
    held.open()
    expect((await stream(rig, taskId)).at(-1)).toMatchObject({ event: 'done', data: { taskId, result: 'Second.' } })
    expect((await json(get('/agent/task/demo:a'))).result).toBe('one two')
    expect((await get('/agent/task/demo')).status).toBe(404)
  })

  test('may restrict the tools that run', async () => {
    const { deploy, deployed } = deployTool()
    const look = tool({
      name: 'look',
      description: 'Looks.',
      effects: ['read'],
      input: { type: 'object' },
      run: () => 'seen',
    })
    const { post } = await start({
      agent: { tools: [deploy, look], allow: ['deploy'] },
      replies: [call('look', {}), call('deploy'), { text: 'Done.' }],
    })
    await post('/agent/task?wait=30', { message: 'Go.', tools: ['look'] })
    expect(deployed).toEqual([])
    const answer = await post('/agent/task', { message: 'Go.', tools: ['fly'] })
    expect([answer.status, (await json(answer)).error.code]).toEqual([400, 'unknown_tool'])
  })

  test.each([
    [{}, 400],
    [{ message: ' ' }, 400],
    [{ message: 'Go.', agent: 'nobody' }, 400],
    [{ message: 'Go.', taskId: 'a:b' }, 400],
    [{ message: 'Go.', deny: ['not a rule!'] }, 400],
  ])('with %j is rejected', async (body, status) => {
    const { post } = await start()
    expect((await post('/agent/task', body)).status).toBe(status)
  })
})

describe('B9: GET /agent/stream/{taskId}', () => {
  const script = () => [{ thinking: 'Hm.', text: 'I look.', ...call('deploy') }, { text: 'Done it all.' }]
  const agent = () => ({ tools: [deployTool().deploy], allow: ['deploy'] })

  test('reports messages, calls, results and the end, each with the id to resume from', async () => {
    const rig = await start({ replies: script(), agent: agent() })
    const { taskId } = await json(rig.post('/agent/task?wait=30', { message: 'Go.' }))
    const whole = await stream(rig, taskId)
    expect(whole.map((it) => it.event)).toEqual([
      'state',
      'state',
      'message',
      'tool_call',
      'state',
      'tool_result',
      'message',
      'done',
    ])
    expect(whole.filter((it) => it.event === 'state').map((it) => it.data.state)).toEqual([
      'CREATED',
      'RUNNING',
      'WAITING_TOOL',
    ])
    expect(whole[3]!.data).toMatchObject({ taskId, tool: 'deploy', arguments: { version: '1' } })
    expect(whole[5]!.data).toMatchObject({ callId: whole[3]!.data.callId, status: 'success', text: 'deployed' })
    expect(whole.at(-1)!.data).toMatchObject({ state: 'COMPLETED', result: 'Done it all.' })
    for (const [index, { id }] of whole.slice(0, -1).entries())
      expect(await stream(rig, taskId, `?after=${id}`)).toEqual(whole.slice(index + 1))
  })

  test('is the same live and later, character by character, wherever it was interrupted', async () => {
    const holds = [gate(), gate(), gate()]
    const rig = await start({
      replies: [{ thinking: 'Hm hm.', text: 'one two three four', hold: { atChunk: 3, gate: holds[0]! } }],
    })
    const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
    const first = readMessages(await rig.get(`/agent/stream/${taskId}`))
    const begun = await first.until((it) => it.event === 'message')
    await first.leave()
    const second = readMessages(await rig.get(`/agent/stream/${taskId}?after=${begun.id}`))
    holds[0]!.open()
    const rest = (await second.rest()).filter((it) => it.event === 'message')
    expect(begun.data.text + rest.map((it) => it.data.text).join('')).toBe('one two three four')
    // The id of a fragment is still valid when the answer has long been stored.
    const later = (await stream(rig, taskId, `?after=${begun.id}`)).filter((it) => it.event === 'message')
    expect(begun.data.text + later.map((it) => it.data.text).join('')).toBe('one two three four')
  })

  test('ends with error when the task fails, and with done when it was cancelled', async () => {
    const held = gate()
    const rig = await start({
      replies: [
        { status: 401, body: {} },
        { text: 'one two', hold: { atChunk: 1, gate: held } },
      ],
    })
    const failed = await json(rig.post('/agent/task?wait=30', { message: 'Go.' }))
    expect(failed).toMatchObject({ state: 'FAILED', error: { code: 'auth', message: expect.any(String) } })
    const received = await stream(rig, failed.taskId)
    expect(received.at(-1)).toMatchObject({ event: 'error', data: { state: 'FAILED', code: 'auth' } })
    const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
    await held.reached
    expect((await rig.post(`/agent/task/${taskId}/cancel`, {})).status).toBe(200)
    expect((await stream(rig, taskId)).at(-1)).toMatchObject({ event: 'done', data: { state: 'CANCELLED' } })
    expect((await json(rig.get(`/agent/task/${taskId}`))).state).toBe('CANCELLED')
  })

  test('ends at its time limit without ending the task', async () => {
    const { deploy } = deployTool()
    const rig = await start({
      agent: { tools: [deploy] },
      replies: [call('deploy')],
      overrides: { 'tasks.streamLimit': '1s' },
    })
    const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
    expect((await stream(rig, taskId)).at(-1)).toMatchObject({ event: 'state', data: { state: 'WAITING_USER' } })
  })
})

describe('B7: a task that waits', () => {
  test('for approvals lists them, and resumes with the decisions', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({ agent: { tools: [deploy] }, replies: [call('deploy'), { text: 'Done.' }] })
    const answer = await rig.post('/agent/task?wait=30', { message: 'Go.' })
    const waiting = await json(answer)
    expect([answer.status, waiting]).toMatchObject([
      200,
      { state: 'WAITING_USER', reason: 'approval', approvals: [{ tool: 'deploy', arguments: { version: '1' } }] },
    ])
    const { taskId, approvals } = waiting
    const resume = (body: object) => rig.post(`/agent/task/${taskId}/resume`, body)
    expect((await resume({})).status).toBe(409)
    expect((await resume({ decisions: [{ callId: 'call_x', approved: true }] })).status).toBe(409)
    const wrong = await resume({ decisions: [{ callId: approvals[0].callId, approved: true, arguments: { v: '2' } }] })
    expect([wrong.status, (await json(wrong)).error.code]).toEqual([400, 'arguments_invalid'])
    const decisions = [{ callId: approvals[0].callId, approved: true, arguments: { version: '2' } }]
    expect((await resume({ decisions })).status).toBe(202)
    expect((await stream(rig, taskId)).at(-1)).toMatchObject({ event: 'done' })
    expect(deployed).toMatchObject([{ version: '2' }])
    expect((await json(rig.get(`/agent/task/${taskId}`))).dwellMs).toHaveProperty('WAITING_USER')
  })

  test('because it was paused continues when it is resumed', async () => {
    const held = gate()
    const slow = tool({
      name: 'slow',
      description: 'Slow.',
      effects: ['read'],
      input: { type: 'object' },
      run: () => held.pass(),
    })
    const rig = await start({ agent: { tools: [slow] }, replies: [call('slow', {}), { text: 'Done.' }] })
    const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
    await held.reached
    expect((await json(rig.get(`/agent/task/${taskId}`))).state).toBe('WAITING_TOOL')
    expect((await rig.post(`/agent/task/${taskId}/pause`, { reason: 'lunch' })).status).toBe(202)
    held.open()
    await until(async () => (await json(rig.get(`/agent/task/${taskId}`))).state === 'WAITING_USER')
    expect((await rig.post(`/agent/task/${taskId}/resume`, {})).status).toBe(202)
    expect((await stream(rig, taskId)).at(-1)).toMatchObject({ event: 'done', data: { result: 'Done.' } })
    for (const what of ['pause', 'resume'])
      expect((await rig.post(`/agent/task/${taskId}/${what}`, {})).status).toBe(409)
  })

  test('for a result from the caller is WAITING_TOOL', async () => {
    const form = externalTool({ name: 'form', description: 'Asks.', effects: ['read'], input: { type: 'object' } })
    const rig = await start({ agent: { tools: [form] }, replies: [call('form', {}), { text: 'Done.' }] })
    const { taskId } = await json(rig.post('/agent/task', { message: 'Go.' }))
    const waiting = await until(async () => {
      const it = await json(rig.get(`/agent/task/${taskId}`))
      return it.state === 'WAITING_TOOL' && it
    })
    expect(waiting.pending).toMatchObject([{ tool: 'form' }])
    await rig.post(`/api/sessions/${taskId}/calls/${waiting.pending[0].callId}`, { content: 'filled' })
    expect((await stream(rig, taskId)).at(-1)).toMatchObject({ event: 'done' })
  })

  test('are a 404 on every route when unknown', async () => {
    const { get, post } = await start()
    for (const path of ['/agent/task/x', '/agent/stream/x', '/agent/task/x:y'])
      expect((await get(path)).status).toBe(404)
    for (const what of ['pause', 'resume', 'cancel']) expect((await post(`/agent/task/x/${what}`, {})).status).toBe(404)
  })

  test('are found by the id of a steering input that joined them', async () => {
    const form = externalTool({ name: 'form', description: 'Asks.', effects: ['read'], input: { type: 'object' } })
    const rig = await start({ agent: { tools: [form] }, replies: [call('form', {}), { text: 'Done.' }] })
    const session = rig.engine.session({ user: 'default', session: 's' })
    await session.run('one', { turnId: 't' })
    await session.submit('two', { turnId: 'i', whenBusy: 'steer' })
    const [byTurn, byInput] = [await json(rig.get('/agent/task/s:t')), await json(rig.get('/agent/task/s:i'))]
    expect(byInput).toMatchObject({ taskId: 's:i', state: 'WAITING_TOOL' })
    // The time in the current state grows between the two requests.
    expect({ ...byInput, taskId: 's:t', dwellMs: byTurn.dwellMs }).toEqual(byTurn)
  })
})

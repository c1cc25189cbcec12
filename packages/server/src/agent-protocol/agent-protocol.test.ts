import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'
import { deployTool, messagesOf, protocol, readMessages } from './protocol.fixture.ts'

const start = rigs()
const names = (messages: readonly { event: string }[]) => messages.map((it) => it.event)
const call = (version = '1') => ({ calls: [{ name: 'deploy', arguments: { version } }] })

describe('P1: a submitted task', () => {
  test('is accepted at once and runs to its result', async () => {
    const rig = await start({ replies: [{ text: 'All done.' }] })
    const { submit, wait, task } = protocol(rig)
    const answer = await submit('task_1', { agent_id: 'researcher', context: { user_id: 'u-1' } })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({ task_id: 'task_1', status: 'pending' })
    expect(await wait('task_1')).toMatchObject({ task_id: 'task_1', status: 'success', result: 'All done.' })
    expect(await task('task_1')).toMatchObject({ status: 'success', result: 'All done.' })
  })

  test('is the same task when submitted again while it runs, and a 409 after its end', async () => {
    const held = gate()
    const rig = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
    const { submit, wait } = protocol(rig)
    await submit('t1')
    await held.reached
    const again = await submit('t1', { input: 'Something else.' })
    expect([again.status, await again.json()]).toEqual([200, { task_id: 't1', status: 'pending' }])
    held.open()
    await wait('t1')
    expect((await submit('t1')).status).toBe(409)
    expect(rig.model.requests).toHaveLength(1)
  })

  test.each([
    ['no id', { input: 'Go.' }],
    ['a blank id', { task_id: ' ', input: 'Go.' }],
    ['no input', { task_id: 't1' }],
    [
      'a rule that allows',
      { task_id: 't1', input: 'Go.', context: { deny_rules: [{ tool_name: 'x', behavior: 'ALLOW' }] } },
    ],
  ])('with %s is a 400', async (_, body) => {
    const { post } = await start()
    const answer = await post('/tasks', body)
    expect([answer.status, (await json(answer)).error.code]).toEqual([400, 'invalid_request'])
  })

  test('may have any string as its id', async () => {
    const rig = await start({ replies: [{ text: 'Done.' }] })
    const { submit, wait } = protocol(rig)
    const id = 'run #7/ü: a long id that no session could have, because it is far longer than 64 characters'
    await submit(id)
    expect(await wait(encodeURIComponent(id))).toMatchObject({ task_id: id, status: 'success' })
  })
})

describe('P3, P4: events', () => {
  const script = () => [
    { thinking: 'I think.', text: 'I look.', calls: [{ name: 'deploy', arguments: { version: '1' } }] },
    { text: 'Done it all.' },
  ]
  const agent = () => ({ tools: [deployTool().deploy], allow: ['deploy'] })

  test.each([
    ['status', ['RUN_STARTED', 'STATUS', 'TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_RESULT', 'RUN_FINISHED']],
    ['nonsense', ['RUN_STARTED', 'STATUS', 'TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_RESULT', 'RUN_FINISHED']],
    [
      'full',
      [
        'RUN_STARTED',
        'STATUS',
        'THINKING_DELTA',
        'TEXT_DELTA',
        'TOOL_CALL_START',
        'TOOL_CALL_END',
        'TOOL_RESULT',
        'TEXT_DELTA',
        'RUN_FINISHED',
      ],
    ],
  ])('at detail %s are %j', async (detail, expected) => {
    const rig = await start({ replies: script(), agent: agent() })
    const { submit, wait, events } = protocol(rig)
    await submit('t1', { context: { detail } })
    await wait('t1')
    const messages = messagesOf(await (await events('t1')).text())
    expect(names(messages)).toEqual(expected)
    for (const { id, event, data } of messages) {
      expect(data).toMatchObject({ seq: id, type: event, taskId: 't1', agentId: 'assistant' })
      expect(JSON.parse(data.payload).type).toBe(data.eventType)
    }
    const ids = messages.map((it) => it.id)
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b))
  })

  test('verbose holds every stored event', async () => {
    const rig = await start({ replies: script(), agent: agent() })
    const { submit, wait, events } = protocol(rig)
    await submit('t1', { context: { detail: 'verbose' } })
    await wait('t1')
    const received = messagesOf(await (await events('t1')).text()).map((it) => JSON.parse(it.data.payload))
    const log = (await (await rig.get('/tasks/t1/logs')).text()).trim().split('\n')
    for (const line of log) expect(received).toContainEqual(JSON.parse(line))
  })

  test('resume from any from_seq or Last-Event-ID, without losing or repeating anything', async () => {
    const rig = await start({ replies: script(), agent: agent() })
    const { submit, wait, events } = protocol(rig)
    await submit('t1', { context: { detail: 'verbose' } })
    await wait('t1')
    const whole = messagesOf(await (await events('t1')).text())
    for (const [index, { id }] of whole.slice(0, -1).entries()) {
      expect(messagesOf(await (await events('t1', `?from_seq=${id}`)).text())).toEqual(whole.slice(index + 1))
      const headers = { 'last-event-id': String(id) }
      expect(messagesOf(await (await events('t1', '', { headers })).text())).toEqual(whole.slice(index + 1))
    }
  })

  test('resume within an answer at the exact character', async () => {
    const held = gate()
    const rig = await start({ replies: [{ text: 'one two three', hold: { atChunk: 2, gate: held } }] })
    const { submit, events } = protocol(rig)
    await submit('t1', { context: { detail: 'full' } })
    const first = readMessages(await events('t1'))
    const cut = await first.until((it) => it.event === 'TEXT_DELTA')
    await first.leave()
    await held.reached
    const second = readMessages(await events('t1', `?from_seq=${cut.id}`))
    held.open()
    const texts = (await second.rest()).filter((it) => it.event === 'TEXT_DELTA').map((it) => it.data.text)
    expect(cut.data.text + texts.join('')).toBe('one two three')
  })
})

describe('P2, P5: a task that waits for a decision', () => {
  test('names what it waits for, continues when it is resumed, and reports every event', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({ replies: [call(), { text: 'Done.' }], agent: { tools: [deploy] } })
    const { submit, wait, resume, events } = protocol(rig)
    await submit('t1')
    const waiting = await wait('t1')
    expect(waiting).toMatchObject({
      status: 'awaiting_confirm',
      pending_confirms: [{ toolName: 'deploy', toolInputJson: '{"version":"1"}' }],
    })
    const { toolCallId } = waiting.pending_confirms[0]
    const answer = await resume('t1', [{ tool_call_id: toolCallId, approved: true }])
    expect([answer.status, await answer.json()]).toEqual([200, { task_id: 't1', status: 'running' }])
    expect(await wait('t1')).toMatchObject({ status: 'success', result: 'Done.' })
    expect(deployed).toHaveLength(1)
    const messages = messagesOf(await (await events('t1')).text())
    expect(messages.find((it) => it.event === 'REQUIRE_CONFIRM')?.data).toMatchObject({
      status: 'awaiting_confirm',
      pendingConfirms: [{ toolCallId, toolName: 'deploy', toolInputJson: '{"version":"1"}' }],
    })
    expect((await resume('t1', [{ toolCallId, approved: true }])).status).toBe(409)
  })

  test('learns of a denial', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({ replies: [call(), { text: 'Not done.' }], agent: { tools: [deploy] } })
    const { submit, wait, resume } = protocol(rig)
    await submit('t1')
    const { pending_confirms } = await wait('t1')
    await resume('t1', [{ toolCallId: pending_confirms[0].toolCallId, approved: 'false' }])
    expect(await wait('t1')).toMatchObject({ status: 'success', result: 'Not done.' })
    expect(deployed).toEqual([])
  })

  test('cannot be resumed when it does not wait, and is a 404 when it is unknown', async () => {
    const rig = await start({ replies: [{ text: 'Done.' }] })
    const { submit, wait, resume } = protocol(rig)
    await submit('t1')
    await wait('t1')
    expect((await resume('t1', [{ toolCallId: 'x', approved: true }])).status).toBe(409)
    expect((await resume('t1', [])).status).toBe(400)
    for (const path of ['', '/wait', '/events', '/artifacts', '/logs'])
      expect((await rig.get(`/tasks/unknown${path}`)).status).toBe(404)
    expect((await resume('unknown', [{ toolCallId: 'x', approved: true }])).status).toBe(404)
  })

  test('can be cancelled while it runs or waits; cancelling it again changes nothing', async () => {
    const held = gate()
    const { deploy, deployed } = deployTool()
    const rig = await start({
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }, call()],
      agent: { tools: [deploy] },
    })
    const { submit, wait, cancel, task } = protocol(rig)
    await submit('t1')
    await held.reached
    expect((await cancel('t1')).status).toBe(200)
    expect(await wait('t1')).toMatchObject({ status: 'cancelled' })
    await submit('t2')
    expect(await wait('t2')).toMatchObject({ status: 'awaiting_confirm' })
    await cancel('t2')
    await wait('t2')
    expect(await task('t2')).toMatchObject({ status: 'cancelled' })
    expect((await cancel('t2')).status).toBe(200)
    expect(deployed).toEqual([])
  })
})

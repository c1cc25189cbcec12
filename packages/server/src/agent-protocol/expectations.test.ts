// Expectations of Agent Protocol clients: retries, races, late readers and partial answers.
import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'
import { deployTool, messagesOf, protocol } from './protocol.fixture.ts'

const start = rigs()
const deploys = (...versions: string[]) => ({
  calls: versions.map((version) => ({ name: 'deploy', arguments: { version } })),
})

describe('P1: an id', () => {
  test('submitted many times at once is one task', async () => {
    const rig = await start({ replies: { always: { text: 'Done.' } } })
    const { submit, wait } = protocol(rig)
    const answers = await Promise.all(Array.from({ length: 20 }, () => submit('t1')))
    // A submission that arrives after the end gets a 409.
    for (const it of answers) expect([200, 409]).toContain(it.status)
    expect(answers.some((it) => it.status === 200)).toBe(true)
    await wait('t1')
    expect(rig.model.requests).toHaveLength(1)
  })

  test.each([
    ['failed', { status: 400, body: 'no' }, 'error'],
    ['was cancelled', { text: 'one two', silentAfterChunks: 1 }, 'cancelled'],
  ])('of a task that %s cannot be reused either', async (_, reply, status) => {
    const rig = await start({ replies: [reply] })
    const { submit, wait, cancel } = protocol(rig)
    await submit('t1')
    if (status === 'cancelled') await rig.model.nextRequest().then(() => cancel('t1'))
    expect(await wait('t1')).toMatchObject({ status })
    const again = await submit('t1')
    expect([again.status, (await json(again)).error.code]).toEqual([409, 'task_finished'])
  })

  test('of a session that is not a task is rejected', async () => {
    const rig = await start({ replies: { always: { text: 'Hi.' } } })
    await rig.post('/api/chat', { sessionId: 's1', message: 'Hi' })
    expect((await protocol(rig).submit('s1')).status).toBe(409)
  })
})

describe('P2: waiting', () => {
  test('that reaches its time limit returns the current state of the task', async () => {
    const rig = await start({
      replies: [{ text: 'one two', silentAfterChunks: 1 }],
      overrides: { 'server.shutdownGrace': '0ms' },
    })
    await protocol(rig).submit('t1')
    await rig.model.nextRequest()
    const answer = await rig.get('/tasks/t1/wait?timeout_seconds=0.05')
    expect([answer.status, (await json(answer)).status]).toEqual([200, 'running'])
    for (const query of ['timeout_seconds=-1', 'timeout_seconds=x'])
      expect((await rig.get(`/tasks/t1/wait?${query}`)).status).toBe(400)
  })

  test('an unknown task is a 404 on every route', async () => {
    const rig = await start()
    for (const id of ['unknown', '%20', 'a%3Ab', '..%2f'])
      for (const [method, path, body] of [
        ['GET', '', undefined],
        ['GET', '/wait', undefined],
        ['GET', '/events', undefined],
        ['GET', '/artifacts', undefined],
        ['GET', '/artifacts/eA', undefined],
        ['GET', '/logs', undefined],
        ['POST', '/cancel', undefined],
        ['POST', '/resume', JSON.stringify({ decisions: [{ toolCallId: 'x', approved: true }] })],
      ] as const) {
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(`${rig.url}/tasks/${id}${path}`, { method, headers, ...(body && { body }) })
        expect([id, method, path, answer.status]).toEqual([id, method, path, 404])
      }
  })
})

describe('P3: events', () => {
  test('of a long task are all available to late readers, far more than 256', async () => {
    const { deploy } = deployTool()
    const steps = Array.from({ length: 120 }, (_, n) => deploys(String(n)))
    const rig = await start({
      replies: [...steps, { text: 'Done.' }],
      agent: { tools: [deploy], allow: ['deploy'], limits: { maxSteps: 200 } },
    })
    const { submit, wait, events } = protocol(rig)
    await submit('t1')
    await wait('t1')
    const messages = messagesOf(await (await events('t1')).text())
    expect(messages.length).toBeGreaterThan(360)
    expect(messages[0]!.event).toBe('RUN_STARTED')
    expect(messages.at(-1)!.event).toBe('RUN_FINISHED')
    expect(messages.filter((it) => it.event === 'TOOL_RESULT')).toHaveLength(120)
    // Streams resume from any event, and `from_seq` takes precedence over the header.
    const { id } = messages[200]!
    const headers = { 'last-event-id': '1' }
    expect(messagesOf(await (await events('t1', `?from_seq=${id}`, { headers })).text())).toEqual(messages.slice(201))
    // A reader that has the end gets the end again.
    const last = messagesOf(await (await events('t1', `?from_seq=${messages.at(-1)!.id}`)).text())
    expect(last.map((it) => it.event)).toEqual(['RUN_FINISHED'])
  })

  test('reach several readers at once, each from its own position', async () => {
    const held = gate()
    const rig = await start({ replies: [{ text: 'one two three', hold: { atChunk: 1, gate: held } }] })
    const { submit, events } = protocol(rig)
    await submit('t1', { context: { detail: 'full' } })
    await held.reached
    const readers = await Promise.all(['', '', '?from_seq=0'].map((query) => events('t1', query)))
    held.open()
    const received = await Promise.all(readers.map(async (it) => messagesOf(await it.text())))
    const textOf = (messages: (typeof received)[number]) =>
      messages
        .filter((it) => it.event === 'TEXT_DELTA')
        .map((it) => it.data.text)
        .join('')
    for (const it of received) expect([textOf(it), it.at(-1)?.event]).toEqual(['one two three', 'RUN_FINISHED'])
  })
})

describe('P5: decisions', () => {
  test('may arrive one by one: calls that are not named keep waiting', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({ replies: [deploys('1', '2'), { text: 'Done.' }], agent: { tools: [deploy] } })
    const { submit, wait, resume } = protocol(rig)
    await submit('t1')
    const [one, two] = (await wait('t1')).pending_confirms
    expect((await resume('t1', [{ toolCallId: two.toolCallId, approved: true }])).status).toBe(200)
    const waiting = await wait('t1')
    expect(waiting).toMatchObject({ status: 'awaiting_confirm', pending_confirms: [{ toolCallId: one.toolCallId }] })
    // A decision on a resolved or unknown call decides nothing else either.
    for (const other of [two.toolCallId, 'nothing']) {
      const decisions = [
        { toolCallId: one.toolCallId, approved: true },
        { toolCallId: other, approved: true },
      ]
      expect((await resume('t1', decisions)).status).toBe(409)
    }
    expect((await wait('t1')).status).toBe('awaiting_confirm')
    await resume('t1', [{ toolCallId: one.toolCallId, approved: false }])
    expect(await wait('t1')).toMatchObject({ status: 'success' })
    expect(deployed).toMatchObject([{ version: '2' }])
  })

  test.each([
    ['no list', {}],
    ['an empty list', { decisions: [] }],
    ['no call id', { decisions: [{ approved: true }] }],
    ['no decision', { decisions: [{ toolCallId: 'x' }] }],
    ['an invalid decision', { decisions: [{ toolCallId: 'x', approved: 'yes' }] }],
  ])('with %s are a 400', async (_, body) => {
    const { deploy } = deployTool()
    const rig = await start({ replies: [deploys('1')], agent: { tools: [deploy] } })
    const { submit, wait } = protocol(rig)
    await submit('t1')
    await wait('t1')
    expect((await rig.post('/tasks/t1/resume', body)).status).toBe(400)
    expect((await wait('t1')).status).toBe('awaiting_confirm')
  })
})

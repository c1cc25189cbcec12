// Requests of real clients that go beyond the specification's example.
import { hash } from 'node:crypto'
import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'
import { deployTool, messagesOf, protocol } from './protocol.fixture.ts'

const start = rigs()
const always = { always: { text: 'Done.' } }

describe('P8: rules of a parent', () => {
  test('P8: rules for tools that only the parent has are accepted, whatever their source', async () => {
    const rig = await start({ replies: always })
    for (const [n, source] of ['userSettings', 'policy', 'parent', undefined, null].entries()) {
      const rule = { tool_name: 'bash', behavior: 'DENY', source, rule_content: null }
      expect((await protocol(rig).submit(`t${n}`, { context: { deny_rules: [rule] } })).status).toBe(200)
    }
  })

  test('P8: a rule_content that a tool cannot interpret denies the whole tool', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({
      replies: [{ calls: [{ name: 'deploy', arguments: { version: '1' } }] }, { text: 'Done.' }],
      agent: { tools: [deploy], allow: ['deploy'] },
    })
    const { submit, wait } = protocol(rig)
    await submit('t', { context: { deny_rules: [{ tool_name: 'deploy', rule_content: 'prod', behavior: 'deny' }] } })
    expect(await wait('t')).toMatchObject({ status: 'success' })
    expect(deployed).toEqual([])
  })
})

describe('P4: the payload', () => {
  test('P4: at detail `status` has no texts, no duplicate arguments and no rights of the caller', async () => {
    const { deploy } = deployTool()
    const version = 'v'.repeat(20_000)
    const rig = await start({
      replies: [
        { thinking: 'I ponder.', text: 'I say.', calls: [{ name: 'deploy', arguments: { version } }] },
        { text: 'Done.' },
      ],
      agent: { tools: [deploy], allow: ['deploy'] },
    })
    const { submit, wait, events } = protocol(rig)
    await submit('t', { context: { detail: 'status' } })
    await wait('t')
    const text = await (await events('t')).text()
    expect(text.split(version)).toHaveLength(2)
    const payloads = messagesOf(text).map((it) => it.data.payload as string)
    for (const it of payloads) expect(it).not.toMatch(/ponder|I say|permissions|principal|deployed/)
  })

  test('P4: a detail that is not a string counts as `status`', async () => {
    const rig = await start({ replies: always })
    expect((await protocol(rig).submit('t', { context: { detail: 5 } })).status).toBe(200)
  })
})

describe('P1: submitting', () => {
  test('P1: concurrent submissions of one id are one task', async () => {
    const held = gate()
    const rig = await start({ replies: { always: { text: 'one two', hold: { atChunk: 1, gate: held } } } })
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => protocol(rig).submit('t', { input: `Input ${n}` })),
    )
    expect(answers.map((it) => it.status)).toEqual(Array(20).fill(200))
    held.open()
    expect(await protocol(rig).wait('t')).toMatchObject({ status: 'success' })
    expect(rig.model.requests).toHaveLength(1)
  })

  test('P1: an empty input and a time-out of more than a day are accepted', async () => {
    const rig = await start({ replies: always })
    expect((await protocol(rig).submit('t', { input: '' })).status).toBe(200)
    expect(await json(rig.get('/tasks/t/wait?timeout_seconds=999999'))).toMatchObject({ status: 'success' })
  })

  test.each(['.', '..', 'a\ud800'])('P1: the id %j, which no URL can contain, is rejected', async (id) => {
    const rig = await start({ replies: always })
    expect((await protocol(rig).submit(id)).status).toBe(400)
  })

  test('P1: a task whose id is the digest of another id is a different task', async () => {
    const rig = await start({ replies: always })
    const { submit, wait } = protocol(rig)
    await submit('a task')
    const digest = `id-${hash('sha256', 'a task').slice(0, 40)}`
    expect((await rig.get(`/tasks/${digest}`)).status).toBe(404)
    expect((await submit(digest)).status).toBe(200)
    expect(await wait(digest)).toMatchObject({ task_id: digest, status: 'success' })
  })
})

describe('P5: deciding', () => {
  const waiting = async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({
      replies: [{ calls: [{ name: 'deploy', arguments: { version: '1' } }] }, { text: 'Done.' }],
      agent: { tools: [deploy] },
    })
    await protocol(rig).submit('t')
    const { pending_confirms } = await protocol(rig).wait('t')
    return { ...protocol(rig), deployed, toolCallId: pending_confirms[0].toolCallId as string }
  }

  test('P5: two different names of the call are rejected', async () => {
    const { resume, toolCallId, deployed } = await waiting()
    const answer = await resume('t', [{ toolCallId, tool_call_id: 'call_other', approved: true }])
    expect(answer.status).toBe(400)
    expect((await json(answer)).error.message).toContain('name different calls')
    expect(deployed).toEqual([])
  })

  test('P5: a decision on a task that is being cancelled is a 409, and so is a second decision', async () => {
    const { resume, cancel, toolCallId, deployed } = await waiting()
    await cancel('t')
    expect((await resume('t', [{ toolCallId, approved: true }])).status).toBe(409)
    expect(deployed).toEqual([])
  })
})

test('P3: an invalid number is rejected under the name it was sent with', async () => {
  const rig = await start({ replies: always })
  await protocol(rig).submit('t')
  expect((await json(rig.get('/tasks/t/events?from_seq=x'))).error.message).toMatch(/^from_seq /)
})

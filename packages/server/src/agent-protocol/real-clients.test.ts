// What clients in use send, beyond what one example shows.
import { hash } from 'node:crypto'
import { gate } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'
import { deployTool, messagesOf, protocol } from './protocol.fixture.ts'

const start = rigs()
const always = { always: { text: 'Done.' } }

describe('P8: rules of a parent', () => {
  test('P8: those for tools that only the parent has are accepted, whatever their source', async () => {
    const rig = await start({ replies: always })
    for (const [n, source] of ['userSettings', 'policy', 'parent', undefined, null].entries()) {
      const rule = { tool_name: 'bash', behavior: 'DENY', source, rule_content: null }
      expect((await protocol(rig).submit(`t${n}`, { context: { deny_rules: [rule] } })).status).toBe(200)
    }
  })

  test('P8: a rule_content denies a tool that cannot read it as a whole', async () => {
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
  test('P4: of `status` has neither texts, nor arguments twice, nor the rights of the caller', async () => {
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

  test('P4: a detail that is not a text counts as `status`', async () => {
    const rig = await start({ replies: always })
    expect((await protocol(rig).submit('t', { context: { detail: 5 } })).status).toBe(200)
  })
})

describe('P1: submitting', () => {
  test('P1: many submissions of one id at once are one task', async () => {
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

  test.each(['.', '..', 'a\ud800'])('P1: the id %j, which no address can hold, is refused', async (id) => {
    const rig = await start({ replies: always })
    expect((await protocol(rig).submit(id)).status).toBe(400)
  })

  test('P1: a task that is named like the digest of another is another', async () => {
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

  test('P5: two names of the call that differ are refused', async () => {
    const { resume, toolCallId, deployed } = await waiting()
    const answer = await resume('t', [{ toolCallId, tool_call_id: 'call_other', approved: true }])
    expect(answer.status).toBe(400)
    expect((await json(answer)).error.message).toContain('name different calls')
    expect(deployed).toEqual([])
  })

  test('P5: a decision on a task that is being cancelled is a 409, and one that comes twice as well', async () => {
    const { resume, cancel, toolCallId, deployed } = await waiting()
    await cancel('t')
    expect((await resume('t', [{ toolCallId, approved: true }])).status).toBe(409)
    expect(deployed).toEqual([])
  })
})

test('P3: a number that is none is refused under the name that it was sent with', async () => {
  const rig = await start({ replies: always })
  await protocol(rig).submit('t')
  expect((await json(rig.get('/tasks/t/events?from_seq=x'))).error.message).toMatch(/^from_seq /)
})

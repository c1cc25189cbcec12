// The context of a submission: attributes, deny rules, agent and options.
import { type Agent, agent, type Model, tool } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import type { AgentProtocolHost, AgentRequest } from '../index.ts'
import { promoteAttributes } from '../index.ts'
import { json, rigs } from '../test.fixture.ts'
import { deployTool, messagesOf, protocol } from './protocol.fixture.ts'

const start = rigs()
const call = (version = '1') => ({ calls: [{ name: 'deploy', arguments: { version } }] })

describe('P7: attributes', () => {
  const context = {
    user_id: 'u-1',
    attributes: { tenant: 'acme', ticket_id: 'INC-1', agentId: 'evil', 'oxbow.key': 1 },
  }

  test('reach tools under one key, promoted ones also under their own name, and never the model', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({
      replies: [call(), { text: 'Done.' }],
      agent: { tools: [deploy], allow: ['deploy'] },
      overrides: { 'agentProtocol.promote': ['tenant', 'agentId', 'oxbow.key', 'missing'] },
    })
    const { submit, wait } = protocol(rig)
    await submit('t1', { context })
    await wait('t1')
    const [{ attributes, user }] = deployed as [{ attributes: Record<string, unknown>; user: string }]
    expect(user).toBe('u-1')
    expect(attributes).toEqual({
      'agentprotocol.context.attributes': context.attributes,
      'agentprotocol.context': { context },
      tenant: 'acme',
    })
    for (const { body } of rig.model.requests) expect(JSON.stringify(body)).not.toMatch(/acme|INC-1|u-1/)
  })

  test('may be rewritten by customizers, later ones override earlier ones', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({
      replies: [call(), { text: 'Done.' }],
      agent: { tools: [deploy], allow: ['deploy'] },
      agentProtocol: {
        customizers: [
          promoteAttributes('tenant'),
          async ({ attributes }) => ({ tenant: String(attributes.tenant).toUpperCase(), agentId: 'trusted' }),
        ],
      },
    })
    const { submit, wait } = protocol(rig)
    await submit('t1', { context })
    await wait('t1')
    expect(deployed).toMatchObject([{ attributes: { tenant: 'ACME', agentId: 'trusted' } }])
  })
})

describe('P8: deny rules of the parent', () => {
  test.each(['deploy', 'dep*', 'deploy(version 1)'])(
    '%s is enforced, even against the agent’s allow rules',
    async (rule) => {
      const { deploy, deployed } = deployTool()
      const rig = await start({
        replies: [call(), { text: 'Not done.' }],
        agent: { tools: [deploy], allow: ['deploy'], mode: 'bypass' },
      })
      const { submit, wait, events } = protocol(rig)
      await submit('t1', { context: { deny_rules: [{ tool_name: rule, behavior: 'DENY', source: 'parent' }] } })
      expect(await wait('t1')).toMatchObject({ status: 'success', result: 'Not done.' })
      expect(deployed).toEqual([])
      const received = messagesOf(await (await events('t1')).text())
      expect(received.find((it) => it.event === 'TOOL_RESULT')?.data).toMatchObject({
        toolName: 'deploy',
        status: 'DENIED',
      })
    },
  )

  test('a rule with many wildcards is matched as quickly as others', async () => {
    const { deploy } = deployTool()
    const rig = await start({ replies: { always: { text: 'Done.' } }, agent: { tools: [deploy] } })
    const began = performance.now()
    const answer = await protocol(rig).submit('t1', {
      context: { deny_rules: [{ tool_name: `${'*'.repeat(100)}z(x)` }, { tool_name: `${'*y'.repeat(60)}*` }] },
    })
    expect(performance.now() - began).toBeLessThan(5_000)
    expect(answer.status).toBe(200)
  })

  test('the session of the parent is recorded', async () => {
    const rig = await start({ replies: [{ text: 'Done.' }] })
    const { submit, wait } = protocol(rig)
    await submit('t1', { context: { parent_session_id: 'sess-parent' } })
    expect(await wait('t1')).toMatchObject({ parent_session_id: 'sess-parent' })
  })
})

describe('P6: the agent', () => {
  const { deploy } = deployTool()
  const agents = (model: Model): Agent[] =>
    ['default', 'researcher'].map((name) => agent({ name, model, instructions: `You are ${name}.`, tools: [deploy] }))

  test('is the one named by agent_id, or the first', async () => {
    const rig = await start({ agents, replies: { always: { text: 'Done.' } } })
    const { submit, wait } = protocol(rig)
    for (const [id, agent_id, expected] of [
      ['t1', 'researcher', 'researcher'],
      ['t2', 'somebody', 'default'],
      ['t3', undefined, 'default'],
    ] as const) {
      await submit(id, { agent_id })
      expect((await wait(id)).agent_id).toBe(expected)
    }
  })

  test('is chosen by a factory, which is called again on resume with the original context', async () => {
    const asked: AgentRequest[] = []
    const factory: AgentProtocolHost['factory'] = (request) => {
      asked.push(request)
      return request.attributes.tenant === 'acme' ? 'researcher' : 'default'
    }
    const rig = await start({ agents, agentProtocol: { factory }, replies: [call(), { text: 'Done.' }] })
    const { submit, wait, resume } = protocol(rig)
    const context = { attributes: { tenant: 'acme' }, parent_session_id: 'p', user_id: 'u', custom: [1] }
    await submit('t1', { agent_id: 'x', context })
    const waiting = await wait('t1')
    expect(waiting.agent_id).toBe('researcher')
    await resume('t1', [{ toolCallId: waiting.pending_confirms[0].toolCallId, approved: false }])
    expect(await wait('t1')).toMatchObject({ status: 'success' })
    const same = {
      taskId: 't1',
      agentId: 'x',
      userId: 'u',
      parentSessionId: 'p',
      context,
      attributes: { tenant: 'acme' },
    }
    expect(asked).toMatchObject([
      { ...same, input: 'Go.', resume: false },
      { ...same, input: '', resume: true },
    ])
  })

  test.each<[string, AgentProtocolHost['factory']]>([
    ['returns null', () => null],
    ['names an unknown agent', () => 'nobody'],
    [
      'throws',
      () => {
        throw new Error('no such tenant table')
      },
    ],
  ])('fails the task, not the request, when the factory %s', async (_, factory) => {
    const rig = await start({ agents, agentProtocol: { factory: factory! } })
    const { submit, task, events } = protocol(rig)
    expect(await json(submit('t1', { agent_id: 'x' }))).toEqual({ task_id: 't1', status: 'pending' })
    expect(await task('t1')).toMatchObject({ status: 'error', error_code: 'no_agent' })
    expect(messagesOf(await (await events('t1')).text()).map((it) => it.event)).toEqual(['RUN_STARTED', 'RUN_ERROR'])
    expect((await submit('t1')).status).toBe(409)
    expect(rig.model.requests).toEqual([])
  })

  test('fails the task when it no longer exists on resume', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({
      agent: { tools: [deploy] },
      replies: [call()],
      agentProtocol: { factory: ({ resume }) => (resume ? null : 'assistant') },
    })
    const { submit, wait, resume, task } = protocol(rig)
    await submit('t1')
    const { pending_confirms } = await wait('t1')
    const answer = await resume('t1', [{ toolCallId: pending_confirms[0].toolCallId, approved: true }])
    expect(await answer.json()).toEqual({ task_id: 't1', status: 'error' })
    expect(await task('t1')).toMatchObject({ status: 'error', error_code: 'no_agent' })
    expect(deployed).toEqual([])
  })
})

describe('P9: switches', () => {
  test('disabled, the routes do not exist', async () => {
    const rig = await start({ overrides: { 'agentProtocol.enabled': false } })
    expect((await protocol(rig).submit('t1')).status).toBe(404)
  })

  test('without streaming there are no events', async () => {
    const rig = await start({ replies: [{ text: 'Done.' }], overrides: { 'agentProtocol.streaming': false } })
    const { submit, wait, events } = protocol(rig)
    await submit('t1')
    await wait('t1')
    expect((await events('t1')).status).toBe(404)
  })

  test('without hitl calls that need approval are denied, and nothing can be resumed', async () => {
    const { deploy, deployed } = deployTool()
    const rig = await start({
      agent: { tools: [deploy] },
      replies: [call(), { text: 'Not done.' }],
      overrides: { 'agentProtocol.hitl': false },
    })
    const { submit, wait, resume } = protocol(rig)
    await submit('t1')
    expect(await wait('t1')).toMatchObject({ status: 'success', result: 'Not done.' })
    expect(deployed).toEqual([])
    expect((await resume('t1', [{ toolCallId: 'x', approved: true }])).status).toBe(409)
  })

  test('without replay a stream begins with the next event', async () => {
    const { deploy } = deployTool()
    const rig = await start({
      agent: { tools: [deploy] },
      replies: [call(), { text: 'Done.' }],
      overrides: { 'agentProtocol.replay': false },
    })
    const { submit, wait, resume, events } = protocol(rig)
    await submit('t1')
    const { pending_confirms } = await wait('t1')
    const reading = events('t1').then((it) => it.text())
    await resume('t1', [{ toolCallId: pending_confirms[0].toolCallId, approved: true }])
    const received = messagesOf(await reading).map((it) => it.event)
    expect(received.at(-1)).toBe('RUN_FINISHED')
    expect(received).not.toContain('RUN_STARTED')
  })

  test('a stream ends at its time limit, and continues there on reconnect', async () => {
    const { deploy } = deployTool()
    const rig = await start({
      agent: { tools: [deploy] },
      replies: [call()],
      overrides: { 'agentProtocol.streamLimit': '1s' },
    })
    const { submit, wait, cancel, events } = protocol(rig)
    await submit('t1')
    await wait('t1')
    const first = messagesOf(await (await events('t1')).text())
    expect(first.at(-1)!.event).toBe('REQUIRE_CONFIRM')
    await cancel('t1')
    const rest = messagesOf(await (await events('t1', `?from_seq=${first.at(-1)!.id}`)).text())
    expect(rest.map((it) => it.data.status).at(-1)).toBe('cancelled')
  })
})

describe('P9: files and log of a task', () => {
  test('can be fetched, for this task only', async () => {
    const long = tool({
      name: 'long',
      description: 'Says much.',
      effects: ['read'],
      input: { type: 'object', properties: {} },
      run: () => 'word '.repeat(10_000),
    })
    const rig = await start({
      agent: { tools: [long] },
      replies: [{ calls: [{ name: 'long' }] }, { text: 'Done.' }, { text: 'Done.' }],
    })
    const { submit, wait } = protocol(rig)
    await submit('t1')
    await wait('t1')
    const { artifacts } = await json(rig.get('/tasks/t1/artifacts'))
    expect(artifacts).toEqual([
      {
        artifact_id: expect.any(String),
        file_name: expect.stringMatching(/^call_/),
        relative_path: 'artifacts/',
        agent_created: true,
        bytes: 50_000,
      },
    ])
    const answer = await rig.get(`/tasks/t1/artifacts/${artifacts[0].artifact_id}`)
    expect(answer.headers.get('content-disposition')).toContain(artifacts[0].file_name)
    expect(await answer.text()).toBe('word '.repeat(10_000))
    const log = (await (await rig.get('/tasks/t1/logs')).text())
      .trim()
      .split('\n')
      .map((it) => JSON.parse(it))
    expect([log[0].type, log.at(-1).type]).toEqual(['turn.started', 'turn.finished'])
    await submit('t2')
    await wait('t2')
    expect((await json(rig.get('/tasks/t2/artifacts'))).artifacts).toEqual([])
    expect((await rig.get(`/tasks/t2/artifacts/${artifacts[0].artifact_id}`)).status).toBe(404)
    expect((await rig.get(`/tasks/t1/artifacts/${Buffer.from('../x\0').toString('base64url')}`)).status).toBe(404)
  })
})

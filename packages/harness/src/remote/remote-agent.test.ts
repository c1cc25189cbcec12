import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventsOf, gate, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ask, bashCall, bashTool, pair, remoteSession, told } from '../harness.fixture.ts'
import type { RemoteEvent } from '../index.ts'

const finishedCall = async (session: Parameters<typeof eventsOf>[0]) =>
  (await eventsOf(session)).find((it) => it.type === 'call.finished')!

describe('P10: a remote agent as a tool', () => {
  test('receives a task, and its answer is the result', async () => {
    const it = await pair({ caller: [ask('Read the notes.'), { text: 'Told.' }], remote: [{ text: 'Two notes.' }] })
    expect((await it.session.run('Go.')).text).toBe('Told.')
    expect(told(it.model)).toEqual(['Two notes.'])
    const remote = await remoteSession(it)
    const [started] = (await eventsOf(remote)).filter((event) => event.type === 'turn.started')
    expect(started).toMatchObject({
      input: [{ type: 'text', text: 'Read the notes.' }],
      surface: 'agent-protocol',
      principal: { user: 'ann' },
      options: { attributes: { 'agentprotocol.context': { context: { parent_session_id: 's1', detail: 'full' } } } },
    })
  })

  test('reports its activity under its name', async () => {
    const { bash } = bashTool()
    const events: RemoteEvent[] = []
    const it = await pair({
      caller: [ask(), { text: 'Told.' }],
      remote: [{ text: 'First line.\nSecond line.', ...bashCall() }, { text: 'Done.' }],
      remoteAgent: { tools: [bash], allow: ['bash'] },
      client: { onEvent: (event, source) => events.push({ ...event, source }) },
    })
    const items = await Array.fromAsync(it.session.stream('Go.'))
    const lines = items.filter((item) => item.type === 'progress.delta').map((item) => item.text)
    expect(lines).toEqual([
      'researcher: First line.',
      'researcher: Second line.',
      'researcher: calls bash {"command":"ls"}',
      'researcher: bash returned success',
      'researcher: Done.',
    ])
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', source: { agent: 'researcher' } })
  })

  test('is bound by the deny rules of the caller and the turn', async () => {
    const { bash, ran } = bashTool()
    const it = await pair({
      caller: [ask(), { text: 'Told.' }],
      remote: [bashCall(), { text: 'I was not allowed.' }],
      remoteAgent: { tools: [bash], allow: ['bash'] },
    })
    await it.session.run('Go.', { deny: ['bash'] })
    expect(ran).toEqual([])
    expect(told(it.model)).toEqual(['I was not allowed.'])
  })

  test('is cancelled with the caller', async () => {
    const held = gate()
    const it = await pair({
      caller: [ask()],
      remote: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
    })
    const running = it.session.run('Go.', { turnId: 't1' })
    await held.reached
    await it.session.interrupt({ turnId: 't1' })
    expect((await running).status).toBe('cancelled')
    const remote = await remoteSession(it)
    expect((await remote.wait(remote.key.session)).status).toBe('cancelled')
  })

  test('fails when it ends without an answer', async () => {
    const it = await pair({
      caller: [ask(), { text: 'Told.' }],
      remote: [{ thinking: 'Hm.', finishReason: 'length' }],
    })
    await it.session.run('Go.')
    expect(await finishedCall(it.session)).toMatchObject({ status: 'error', error: { code: 'remote_failed' } })
  })

  test('that fails has its own error code', async () => {
    const it = await pair({ caller: [ask(), { text: 'Told.' }], remote: [{ status: 401, body: {} }] })
    await it.session.run('Go.')
    expect(await finishedCall(it.session)).toMatchObject({ status: 'error', error: { code: 'remote_failed' } })
    expect(told(it.model)[0]).toContain('The remote agent researcher failed')
  })

  test('that was stopped remotely has its own error code', async () => {
    const held = gate()
    const it = await pair({
      caller: [ask(), { text: 'Told.' }],
      remote: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
    })
    const running = it.session.run('Go.')
    await held.reached
    const remote = await remoteSession(it)
    await remote.interrupt({ turnId: remote.key.session })
    await running
    expect(await finishedCall(it.session)).toMatchObject({ status: 'error', error: { code: 'remote_cancelled' } })
  })
})

describe('P10: approvals of the remote', () => {
  const options = () => {
    const { bash, ran } = bashTool()
    return {
      ran,
      setting: {
        caller: [ask(), { text: 'Told.' }],
        remote: [bashCall('make'), { text: 'Made.' }],
        remoteAgent: { tools: [bash] },
      },
    }
  }

  test('become an approval of the caller, which another process can decide', async () => {
    const { ran, setting } = options()
    const it = await pair(setting)
    const paused = await it.session.run('Go.', { turnId: 't1' })
    expect(paused).toMatchObject({ status: 'paused', reason: 'approval' })
    expect(paused.approvals).toMatchObject([
      {
        tool: 'researcher',
        arguments: { agent: 'researcher', calls: [{ tool: 'bash', arguments: { command: 'make' } }] },
        reason: 'The agent researcher waits for an approval of bash.',
      },
    ])
    await it.caller.stop(0)
    const there = it.another().session({ user: 'ann', session: 's1' })
    await there.decide(paused.approvals[0]!.approvalId, { verdict: 'approved' })
    expect((await there.wait('t1')).text).toBe('Told.')
    expect(ran).toEqual([{ command: 'make' }])
    expect(told(it.model)).toEqual(['Made.'])
    // The remote ran one task, from one submission.
    expect(it.model.requests.filter((request) => request.model === 'remote')).toHaveLength(2)
  })

  test('are denied when the person denies, and the remote receives the reason', async () => {
    const { ran, setting } = options()
    const it = await pair(setting)
    const { approvals } = await it.session.run('Go.', { turnId: 't1' })
    await it.session.decide(approvals[0]!.approvalId, { verdict: 'denied', reason: 'not today' })
    await it.session.wait('t1')
    expect(ran).toEqual([])
    const results = (await eventsOf(await remoteSession(it))).filter((event) => event.type === 'call.finished')
    expect(results).toMatchObject([{ status: 'denied', content: [{ text: expect.stringContaining('not today') }] }])
  })

  test('are denied at once by the policy deny, and where nobody can be asked', async () => {
    for (const more of [{ client: { onApproval: 'deny' as const } }, { callerAgent: { mode: 'dont-ask' as const } }]) {
      const { ran, setting } = options()
      const it = await pair({ ...setting, ...more })
      expect((await it.session.run('Go.')).status).toBe('finished')
      expect(ran).toEqual([])
    }
  })

  test('may be decided by code', async () => {
    const { ran, setting } = options()
    const onApproval = (calls: readonly unknown[]) => calls.map(() => ({ approved: true }))
    const it = await pair({ ...setting, client: { onApproval } })
    expect((await it.session.run('Go.')).text).toBe('Told.')
    expect(ran).toHaveLength(1)
  })

  test('are closed when the caller is stopped meanwhile', async () => {
    const it = await pair(options().setting)
    await it.session.run('Go.', { turnId: 't1' })
    await it.session.interrupt({ turnId: 't1' })
    await it.session.wait('t1')
    const remote = await remoteSession(it)
    expect((await remote.wait(remote.key.session)).status).toBe('cancelled')
  })
})

describe('P10: a connection that breaks', () => {
  /** A proxy between caller and remote that handles each request as `treat` decides. */
  async function between(
    url: () => string,
    treat: (request: IncomingMessage) => 'pass' | { cutAfter: number } | { status: number } | { leaveOut: string },
  ): Promise<string> {
    const server = createServer(async (request, response) => {
      const treated = treat(request)
      if (typeof treated === 'object' && 'status' in treated) return void response.writeHead(treated.status).end()
      const body = await new Response(request as never).arrayBuffer()
      const answer = await fetch(`${url()}${request.url}`, {
        method: request.method!,
        headers: { 'content-type': String(request.headers['content-type'] ?? 'text/plain') },
        ...(body.byteLength > 0 && { body }),
      })
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
      if (typeof treated === 'object' && 'leaveOut' in treated)
        return void response.end((await answer.text()).replaceAll(treated.leaveOut, ''))
      let left = treated === 'pass' ? Number.POSITIVE_INFINITY : treated.cutAfter
      for await (const bytes of answer.body!) {
        response.write(bytes.subarray(0, left))
        left -= bytes.length
        if (left <= 0) return void response.destroy()
      }
      response.end()
    })
    server.listen(0, '127.0.0.1')
    await until(() => server.listening)
    onTestFinished(() => void server.close())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  test('resumes where it was, and no event is reported twice', async () => {
    let remoteUrl = ''
    let cuts = 0
    const proxy = await between(
      () => remoteUrl,
      (request) => (request.url!.includes('/events') && cuts++ < 4 ? { cutAfter: 900 } : 'pass'),
    )
    const it = await pair({
      caller: [ask(), { text: 'Told.' }],
      remote: [{ text: 'one\ntwo\nthree\nfour\nfive\nsix' }],
      client: { url: proxy },
    })
    remoteUrl = it.remoteUrl
    const items = await Array.fromAsync(it.session.stream('Go.'))
    const lines = items.filter((item) => item.type === 'progress.delta').map((item) => item.text)
    expect(cuts).toBeGreaterThan(4)
    expect(lines).toEqual(['one', 'two', 'three', 'four', 'five', 'six'].map((word) => `researcher: ${word}`))
    expect(told(it.model)).toEqual(['one\ntwo\nthree\nfour\nfive\nsix'])
  })

  test('works without streams and through transient failures', async () => {
    let remoteUrl = ''
    let failures = 0
    const proxy = await between(
      () => remoteUrl,
      (request) => {
        if (request.url!.includes('/events')) return { status: 404 }
        return failures++ % 2 === 0 ? { status: 503 } : 'pass'
      },
    )
    const it = await pair({
      caller: [ask(), { text: 'Told.' }],
      remote: [{ text: 'Found.' }],
      client: { url: proxy },
    })
    remoteUrl = it.remoteUrl
    await it.session.run('Go.')
    expect(told(it.model)).toEqual(['Found.'])
  })

  test('to a service that reports success without an answer has its own error code', async () => {
    let remoteUrl = ''
    const proxy = await between(
      () => remoteUrl,
      () => ({ leaveOut: 'Nothing to see.' }),
    )
    const it = await pair({
      caller: [ask(), { text: 'Told.' }],
      remote: [{ text: 'Nothing to see.' }],
      client: { url: proxy },
    })
    remoteUrl = it.remoteUrl
    await it.session.run('Go.')
    expect(await finishedCall(it.session)).toMatchObject({ status: 'error', error: { code: 'remote_empty' } })
  })

  test('for good is an error', async () => {
    const it = await pair({
      caller: [ask(), { text: 'Told.' }],
      remote: [],
      client: { url: 'http://127.0.0.1:1', patienceMs: 300 },
    })
    await it.session.run('Go.')
    expect(await finishedCall(it.session)).toMatchObject({ status: 'error', error: { code: 'remote_unreachable' } })
  })

  test('to a service that refuses the task is an error at once', async () => {
    const proxy = await between(
      () => '',
      () => ({ status: 401 }),
    )
    const it = await pair({ caller: [ask(), { text: 'Told.' }], remote: [], client: { url: proxy } })
    await it.session.run('Go.')
    expect(await finishedCall(it.session)).toMatchObject({ status: 'error', error: { code: 'remote_refused' } })
  })
})

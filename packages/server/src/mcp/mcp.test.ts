// The official client talks to POST /mcp, in both versions of the protocol.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { agent, tool } from '@oxbow/core'
import { gate, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { json, type Rig, rigs } from '../test.fixture.ts'

const start = rigs()

const AGES = [
  ['2025-11-25', 'legacy'],
  ['2026-07-28', 'auto'],
] as const

async function connect(
  { url }: Pick<Rig, 'url'>,
  mode: 'legacy' | 'auto' = 'auto',
  headers: Record<string, string> = {},
) {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } })
  await client.connect(transport)
  onTestFinished(() => client.close())
  return { client, transport }
}

const bash = tool({
  name: 'bash',
  description: 'Runs a command.',
  effects: ['exec'],
  input: { type: 'object', properties: { command: { type: 'string' } } },
  run: () => 'ran',
})
const bashCall = { calls: [{ name: 'bash', arguments: { command: 'ls' } }] }

describe.each(AGES)('X4: an agent is a tool of MCP %s', (version, mode) => {
  test('is listed, answers, and continues its conversation', async () => {
    const it = await start({ replies: [{ text: 'Hello Ann.' }, { text: 'You are Ann.' }] })
    const { client } = await connect(it, mode)
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    const { tools } = await client.listTools()
    expect(tools.map(({ name, description }) => [name, description])).toEqual([
      ['ask_assistant', 'Sends a message to the agent assistant and waits for its answer.'],
    ])
    const first = await client.callTool({ name: 'ask_assistant', arguments: { message: 'I am Ann.' } })
    expect(first.content).toEqual([{ type: 'text', text: 'Hello Ann.' }])
    const { session_id } = first.structuredContent as { session_id: string }
    const second = await client.callTool({ name: 'ask_assistant', arguments: { message: 'Who am I?', session_id } })
    expect(second).toMatchObject({ structuredContent: { session_id, status: 'finished' } })
    expect(it.model.requests[1]!.messages).toHaveLength(4)
  })

  test('reports progress while it works', async () => {
    const it = await start({
      agent: { tools: [bash], allow: ['bash'] },
      replies: [bashCall, { text: 'It ran.' }],
    })
    const { client } = await connect(it, mode)
    const shown: string[] = []
    await client.callTool(
      { name: 'ask_assistant', arguments: { message: 'Go.' } },
      { onprogress: ({ message }) => shown.push(message ?? '') },
    )
    expect(shown[0]).toBe('calls bash')
    expect(shown.slice(1).join('')).toBe('It ran.')
  })

  test('is stopped when the client cancels the call', async () => {
    const held = gate()
    const it = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
    const { client } = await connect(it, mode)
    const stop = new AbortController()
    const asking = client.callTool(
      { name: 'ask_assistant', arguments: { message: 'Go.', session_id: 's1', turn_id: 't1' } },
      { signal: stop.signal },
    )
    asking.catch(() => {})
    await held.reached
    stop.abort()
    await expect(asking).rejects.toThrow(/abort/i)
    const session = it.engine.session({ user: 'default', session: 's1' })
    expect((await session.wait('t1')).status).toBe('cancelled')
  })

  test('returns the same answer for the same turn id, without calling the model', async () => {
    const it = await start({ replies: [{ text: 'Once.' }] })
    const { client } = await connect(it, mode)
    const ask = () => client.callTool({ name: 'ask_assistant', arguments: { message: 'Go.', turn_id: 't1' } })
    const first = await ask()
    expect(await ask()).toEqual(first)
    expect(it.model.requests).toHaveLength(1)
  })

  test('rejects a used turn id with a different message', async () => {
    const it = await start({ replies: [{ text: 'Once.' }] })
    const { client } = await connect(it, mode)
    const ask = (message: string) =>
      client.callTool({ name: 'ask_assistant', arguments: { message, session_id: 's1', turn_id: 't1' } })
    await ask('Pay the first.')
    const answer = await ask('Pay the second.')
    expect(answer).toMatchObject({ isError: true, structuredContent: { status: 'failed' } })
    expect(JSON.stringify(answer.content)).toContain('used for another input')
  })

  test('that waits for an approval reports it, and how to continue', async () => {
    const it = await start({ agent: { tools: [bash] }, replies: [bashCall] })
    const { client } = await connect(it, mode)
    const answer = await client.callTool({ name: 'ask_assistant', arguments: { message: 'Go.' } })
    expect(answer).toMatchObject({ structuredContent: { status: 'waiting' } })
    expect(JSON.stringify(answer.content)).toContain('Decide on it')
  })

  test('that fails is an error with a message for end users', async () => {
    const it = await start({ replies: [{ status: 401, body: { error: { message: 'no such key sk-1' } } }] })
    const { client } = await connect(it, mode)
    const answer = await client.callTool({ name: 'ask_assistant', arguments: { message: 'Go.' } })
    expect(answer).toMatchObject({ isError: true, structuredContent: { status: 'failed' } })
    expect(JSON.stringify(answer.content)).toContain('could not answer')
    expect(JSON.stringify(answer)).not.toContain('sk-1')
  })

  test('has the caller’s sessions as resources', async () => {
    const it = await start({ replies: [{ text: 'Hello Ann.' }] })
    const { client } = await connect(it, mode)
    await client.callTool({ name: 'ask_assistant', arguments: { message: 'I am Ann.', session_id: 's1' } })
    await it.engine.session({ user: 'bob', session: 's2' }).state()
    const { resources } = await client.listResources()
    expect(resources.map((resource) => resource.uri)).toEqual(['oxbow://sessions/s1'])
    const { contents } = await client.readResource({ uri: 'oxbow://sessions/s1' })
    expect('text' in contents[0]! && contents[0].text).toContain('Hello Ann.')
    await expect(client.readResource({ uri: 'oxbow://sessions/none' })).rejects.toThrow('There is no session')
    for (const uri of ['oxbow://sessions/%E0%A4%A', 'oxbow://sessions/..%2Fs1'])
      await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32_602 })
  })

  test('agents whose tool names collide are two tools, and a long name is shortened', async () => {
    const long = 'a'.repeat(63)
    const it = await start({
      agents: (model) =>
        ['help.desk', 'help_desk', long, `${long}b`, 'other'].map((name) =>
          agent({ name, model, instructions: 'Help.' }),
        ),
    })
    const { client } = await connect(it, mode)
    const { tools } = await client.listTools()
    const names = tools.map(({ name }) => name)
    expect(names).toContain('ask_other')
    expect(new Set(names).size).toBe(5)
    for (const name of names) expect(name).toMatch(/^ask_[A-Za-z0-9_-]{1,60}$/)
    expect(tools.find(({ title }) => title === 'help.desk')!.name).toMatch(/^ask_help_desk_[0-9a-f]{8}$/)
  })
})

describe('X4: POST /mcp', () => {
  test('a request of the older protocol that is repeated is the same turn', async () => {
    const it = await start({ replies: [{ text: 'Once.' }, { text: 'Twice.' }] })
    const rpc = (id: number, method: string, params: object, headers: Record<string, string> = {}) =>
      it.post(
        '/mcp',
        { jsonrpc: '2.0', id, method, params },
        { headers: { accept: 'application/json, text/event-stream', ...headers } },
      )
    const client = { name: 'raw', version: '1' }
    const opened = await rpc(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: client })
    const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id')!, 'mcp-protocol-version': '2025-11-25' }
    const ask = async (message: string) =>
      (await rpc(2, 'tools/call', { name: 'ask_assistant', arguments: { message } }, headers)).text()
    expect(await ask('Go.')).toBe(await ask('Go.'))
    expect(it.model.requests).toHaveLength(1)
    // A restarted client counts from the beginning.
    expect(await ask('Go elsewhere.')).toContain('Twice.')
    expect(it.model.requests).toHaveLength(2)
  })

  test('with identity an anonymous caller is rejected, and each caller has their own sessions', async () => {
    const secret = 'a secret of at least thirty-two bytes'
    const { SignJWT } = await import('jose')
    const tokenOf = (user: string) =>
      new SignJWT({})
        .setProtectedHeader({ alg: 'HS256' })
        .setSubject(user)
        .setExpirationTime('1h')
        .sign(Buffer.from(secret))
    const it = await start({
      replies: [{ text: 'Hello.' }],
      overrides: { 'identity.mode': 'jwt', 'identity.jwt.secret': secret },
    })
    await expect(connect(it)).rejects.toThrow('401')
    const ann = await connect(it, 'auto', { authorization: `Bearer ${await tokenOf('ann')}` })
    await ann.client.callTool({ name: 'ask_assistant', arguments: { message: 'Hi.', session_id: 's1' } })
    const [started] = await it.engine.session({ user: 'ann', session: 's1' }).events(0)
    expect(started).toMatchObject({ type: 'session.opened' })
    const bob = await connect(it, 'auto', { authorization: `Bearer ${await tokenOf('bob')}` })
    expect((await bob.client.listResources()).resources).toEqual([])
    await expect(bob.client.readResource({ uri: 'oxbow://sessions/s1' })).rejects.toThrow('There is no session')
  })

  test('a page of another origin is rejected', async () => {
    const it = await start()
    const answer = await it.post('/mcp', {}, { headers: { origin: 'https://evil.example' } })
    expect(answer.status).toBe(403)
  })

  test.each(['GET', 'DELETE'])('%s is a 405', async (method) => {
    const { url } = await start()
    const answer = await fetch(`${url}/mcp`, { method })
    expect(answer.status).toBe(405)
  })

  test('can be disabled', async () => {
    const it = await start({ overrides: { 'server.mcp': false } })
    expect((await it.post('/mcp', {})).status).toBe(404)
    expect((await json(await it.get('/openapi.json'))).paths['/mcp']).toBeUndefined()
  })

  test('a conversation with one agent cannot be continued with another', async () => {
    const it = await start({
      replies: [{ text: 'I am one.' }],
      agents: (model) => ['one', 'two'].map((name) => agent({ name, model, instructions: 'Be brief.' })),
    })
    const { client } = await connect(it)
    await client.callTool({ name: 'ask_one', arguments: { message: 'Hi.', session_id: 's1' } })
    const answer = await client.callTool({ name: 'ask_two', arguments: { message: 'Hi.', session_id: 's1' } })
    expect(answer).toMatchObject({ isError: true })
    expect(JSON.stringify(answer.content)).toContain('conversation with the agent one')
  })

  test('a client that disconnects stops its turn, as server.onDisconnect requires', async () => {
    const held = gate()
    const it = await start({
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
      overrides: { 'server.disconnectGrace': '0ms' },
    })
    const { client } = await connect(it, 'legacy')
    client.callTool({ name: 'ask_assistant', arguments: { message: 'Go.', session_id: 's1' } }).catch(() => {})
    await held.reached
    await client.close()
    const session = it.engine.session({ user: 'default', session: 's1' })
    await until(async () => (await session.state()).turn === undefined)
    expect((await session.events(0)).at(-1)).toMatchObject({ type: 'turn.cancelled', reason: 'the client left' })
  })
})

import { createServer } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { callOf, connected, type Message, program, rawServer, type ServerTool, talking } from './mcp.fixture.ts'
import { namesOf } from './tools/names.ts'
import { modernSchema } from './tools/schema.ts'

const names = (tools: readonly { name: string }[]): string[] => tools.map((it) => it.name)
const reading = (name: string): ServerTool => ({
  name,
  inputSchema: { type: 'object' },
  annotations: { readOnlyHint: true },
})

/** A server with tools of these names, all marked as read-only. */
async function withTools(...tools: string[]) {
  const server = await rawServer()
  server.tools = tools.map(reading)
  return server
}

describe('Y12: which tools an agent has', () => {
  test('those marked as read-only; the others are reported with the reason', async () => {
    const { url } = await rawServer()
    const { servers, notices } = await connected({ raw: { url } })
    expect(names(servers.tools)).toEqual(['look'])
    const reason = 'it is not marked as read-only; name it in "tools" or "allow"'
    expect(servers.status()[0]!.skipped).toEqual([{ tool: 'change', reason }])
    expect(notices).toEqual([{ level: 'info', server: 'raw', message: `Skipped: "change" (${reason}).` }])
  })

  test.each([
    ['tools', ['*'], []],
    ['tools', ['chan*'], []],
    ['allow', ['change'], ['change']],
  ])('and those named in %s: %j', async (key, patterns, allow) => {
    const { url } = await rawServer()
    const { servers } = await connected({ raw: { url, [key]: patterns } })
    expect(names(servers.tools)).toEqual(['look', 'change'])
    expect(servers.allow).toEqual(allow)
  })

  test('a read-only hint is untrusted: the tool asks, unless the operator trusts the hint or allows the tool', async () => {
    const { url } = await rawServer()
    for (const [more, status] of [
      [{}, 'paused'],
      [{ trustReadOnly: true }, 'finished'],
      [{ allow: ['look'] }, 'finished'],
    ] as const) {
      const it = await talking({ raw: { url, ...more } }, [callOf('look'), { text: 'Told.' }], { mode: 'default' })
      expect((await it.session.run('Go.')).status).toBe(status)
    }
  })

  test('a tool that is listed twice is offered once', async () => {
    const { url } = await withTools('look', 'look')
    const { servers } = await connected({ raw: { url } })
    expect(names(servers.tools)).toEqual(['look'])
    expect(servers.status()[0]!.skipped).toEqual([{ tool: 'look', reason: 'the server lists it twice' }])
  })

  test('a tool whose schema cannot be used is skipped, and the others work', async () => {
    const server = await rawServer()
    server.tools = [
      { name: 'dangling', inputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/none' } } } },
      { name: 'remote', inputSchema: { type: 'object', properties: { a: { $ref: 'https://example.com/a.json' } } } },
      { name: 'nonsense', inputSchema: { type: 'object', properties: { a: { type: 'colour' } } } },
      reading('look'),
    ]
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [callOf('look'), { text: 'Told.' }])
    expect(names(it.servers.tools)).toEqual(['look'])
    expect(it.servers.status()[0]!.skipped.map(({ tool, reason }) => [tool, reason.split(':')[0]])).toEqual([
      ['dangling', 'its input schema cannot be used'],
      ['remote', 'its input schema cannot be used'],
      ['nonsense', 'its input schema cannot be used'],
    ])
    await it.session.run('Go.')
    expect((await it.finished())[0]!.status).toBe('success')
  })

  test('two servers with a tool of one name: both are named server__tool, in any order', async () => {
    const [a, b] = [await withTools('look', 'only_a'), await withTools('look', 'only_b')]
    const one = await connected({ a: { url: a.url }, b: { url: b.url } })
    expect(names(one.servers.tools)).toEqual(['a__look', 'only_a', 'b__look', 'only_b'])
    const other = await connected({ b: { url: b.url }, a: { url: a.url } })
    expect(names(other.servers.tools).sort()).toEqual(names(one.servers.tools).sort())
  })

  test('an invalid name is rewritten and stays unique', () => {
    const tools = ['a.b', 'a/b', 'x'.repeat(80), 'fine'].map((tool) => ({ server: 's', tool }))
    const given = namesOf(tools, ['fine'])
    expect(given.every((it) => /^[A-Za-z0-9_-]{1,64}$/.test(it))).toBe(true)
    expect(new Set(given).size).toBe(4)
    expect(given[3]).toBe('s__fine')
  })
})

describe('Y12: what is refused', () => {
  test('programs, where a configuration is not trusted', async () => {
    const starting = connected({ p: program('good') }, { allowStdio: false })
    await expect(starting).rejects.toMatchObject({ code: 'mcp_stdio_refused' })
  })

  test.each([
    ['a name with a dot', { 'a.b': { url: 'http://localhost/mcp' } }],
    ['another scheme', { a: { url: 'file:///etc/passwd' } }],
    ['no program', { a: { command: ' ' } }],
  ])('%s', async (_, servers) => {
    await expect(connected(servers)).rejects.toMatchObject({ code: 'mcp_invalid' })
  })
})

describe('Y12: what a server answers', () => {
  const answering = async (result: unknown) => {
    const { url } = await rawServer(() => result)
    const it = await talking({ raw: { url } }, [callOf('look'), { text: 'Told.' }])
    await it.session.run('Go.')
    return (await it.finished())[0]!
  }

  test('images, audio and files are data for the model, resources and links are text', async () => {
    const { content } = await answering({
      content: [
        { type: 'image', mimeType: 'image/png', data: 'aW1n' },
        { type: 'audio', mimeType: 'audio/wav', data: 'c25k' },
        { type: 'resource', resource: { uri: 'note://1', mimeType: 'text/plain', text: 'a note' } },
        { type: 'resource', resource: { uri: 'file://2', mimeType: 'application/pdf', blob: 'cGRm' } },
        { type: 'resource_link', uri: 'file://3', name: 'third', description: 'a third one' },
      ],
    })
    expect(content).toEqual([
      { type: 'data', mediaType: 'image/png', data: 'aW1n' },
      { type: 'data', mediaType: 'audio/wav', data: 'c25k' },
      { type: 'text', text: 'Resource note://1:\na note' },
      { type: 'data', mediaType: 'application/pdf', data: 'cGRm', name: 'file://2' },
      { type: 'text', text: 'Resource third: file://3 (a third one)' },
    ])
  })

  test('structured content is shown once, even when the text repeats it', async () => {
    const structuredContent = { degrees: 21 }
    const text = '{ "degrees": 21 }'
    expect((await answering({ content: [{ type: 'text', text }], structuredContent })).content).toEqual([
      { type: 'text', text },
    ])
    expect((await answering({ content: [], structuredContent })).content).toEqual([
      { type: 'text', text: '{"degrees":21}' },
    ])
  })

  test('an error answer is a tool error with its message', async () => {
    expect(await answering({ isError: true, content: [{ type: 'text', text: 'no such order' }] })).toMatchObject({
      status: 'error',
      error: { code: 'mcp_tool_error', message: 'no such order' },
    })
  })

  test('its resources and prompts are offered as tools', async () => {
    const answers: Record<string, unknown> = {
      'resources/list': { resources: [{ uri: 'note://1', name: 'one' }] },
      'resources/templates/list': { resourceTemplates: [] },
      'resources/read': { contents: [{ uri: 'note://1', text: 'the note' }] },
      'prompts/list': { prompts: [{ name: 'greet', arguments: [{ name: 'who', required: true }] }] },
      'prompts/get': { messages: [{ role: 'user', content: { type: 'text', text: 'Greet Ann.' } }] },
    }
    const server = await rawServer(({ method }) => answers[method!])
    server.intercept = ({ id, method }, _request, response) => {
      if (method !== 'initialize') return false
      const capabilities = { resources: {}, prompts: {} }
      const result = { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'raw', version: '1' } }
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': server.session })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      return true
    }
    const it = await talking({ raw: { url: server.url } }, [
      callOf('list_resources'),
      callOf('read_resource', { uri: 'note://1' }),
      callOf('list_prompts'),
      callOf('get_prompt', { name: 'greet', arguments: { who: 'Ann' } }),
      { text: 'Told.' },
    ])
    expect(names(it.servers.tools)).toEqual(['list_resources', 'read_resource', 'list_prompts', 'get_prompt'])
    await it.session.run('Go.')
    const shown = (await it.finished()).map(({ content }) =>
      content.map((block) => (block.type === 'text' ? block.text : '')).join('\n'),
    )
    expect(shown[0]).toContain('note://1')
    expect(shown[1]).toBe('Resource note://1:\nthe note')
    expect(shown[2]).toContain('greet')
    expect(shown[3]).toBe('user:\nGreet Ann.')
    const got = server.received.find((message: Message) => message.method === 'prompts/get')
    expect(got?.params).toMatchObject({ name: 'greet', arguments: { who: 'Ann' } })
  })

  test('its health is reported as last verified', async () => {
    const server = await rawServer()
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [
      callOf('look'),
      callOf('look'),
      { text: 'Told.' },
    ])
    const before = it.servers.status()[0]!.lastVerified!
    server.intercept = ({ method }) => {
      if (method === 'tools/call') server.intercept = undefined
      return false
    }
    await it.session.run('Go.')
    const { lastVerified, implementation, protocolVersion } = it.servers.status()[0]!
    expect(lastVerified! >= before).toBe(true)
    expect({ implementation, protocolVersion }).toEqual({
      implementation: { name: 'raw', version: '1.0.0' },
      protocolVersion: '2025-11-25',
    })
  })
})

describe('Y12: a server that asks the user in the middle of a call', () => {
  test.each([
    ['approved', 'accept {"sure":true}'],
    ['denied', 'decline {}'],
  ] as const)('has its question decided by a person: %s', async (verdict, told) => {
    const it = await talking({ p: program('good') }, [callOf('confirm'), { text: 'Told.' }])
    const paused = await it.session.run('Go.', { turnId: 't1' })
    const [approval] = paused.approvals
    expect(approval).toMatchObject({
      reason: 'The MCP server p asks: Really delete it? Approving sends sure: true.',
      arguments: {
        server: 'p',
        tool: 'confirm',
        questions: [{ message: 'Really delete it?', labels: {}, answer: { sure: true } }],
      },
    })
    await it.session.decide(approval!.approvalId, { verdict })
    expect((await it.session.wait('t1')).status).toBe('finished')
    expect((await it.finished())[0]!.content).toEqual([{ type: 'text', text: told }])
  })

  test('is declined where nobody can be asked', async () => {
    const it = await talking({ p: program('good', { allow: ['confirm'] }) }, [callOf('confirm'), { text: 'Told.' }], {
      mode: 'dont-ask',
    })
    await it.session.run('Go.')
    expect((await it.finished())[0]!.content).toEqual([{ type: 'text', text: 'decline {}' }])
  })

  test('may be answered at once by a function of the operator', async () => {
    const onQuestion = () => ({ action: 'accept' as const, content: { sure: false } })
    const it = await talking({ p: program('good', { onQuestion }) }, [callOf('confirm'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]!.content).toEqual([{ type: 'text', text: 'accept {"sure":false}' }])
  })
})

describe('Y12: the predecessor of streamable HTTP', () => {
  test('is used where configured', async () => {
    let stream: import('node:http').ServerResponse | undefined
    const http = createServer(async (request, response) => {
      if (request.method === 'GET') {
        stream = response.writeHead(200, { 'content-type': 'text/event-stream' })
        stream.write('event: endpoint\ndata: /messages\n\n')
        return
      }
      const { id, method } = (await new Response(request as never).json()) as Message
      response.writeHead(202).end()
      const result =
        method === 'initialize'
          ? { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'sse', version: '1' } }
          : method === 'tools/list'
            ? { tools: [reading('look')] }
            : { content: [{ type: 'text', text: 'over SSE' }] }
      const answer = method === 'server/discover' ? { error: { code: -32601, message: 'unknown' } } : { result }
      if (id !== undefined)
        stream?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n\n`)
    })
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      http.closeAllConnections()
      http.close()
    })
    const { port } = http.address() as import('node:net').AddressInfo
    const it = await talking({ old: { url: `http://127.0.0.1:${port}/sse`, transport: 'sse' } }, [
      callOf('look'),
      { text: 'Told.' },
    ])
    await it.session.run('Go.')
    expect((await it.finished())[0]!.content).toEqual([{ type: 'text', text: 'over SSE' }])
    expect(it.servers.status()[0]).toMatchObject({ transport: 'sse', protocolVersion: '2024-11-05' })
  })
})

describe('schemas of any draft', () => {
  const schema = (more: object) => modernSchema({ type: 'object', ...more })

  test('are read as 2020-12', () => {
    expect(
      schema({
        $schema: 'http://json-schema.org/draft-07/schema#',
        definitions: {
          pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false },
        },
        properties: { p: { $ref: '#/definitions/pair' }, n: { type: 'number', minimum: 1, exclusiveMinimum: true } },
        dependencies: { a: ['b'], c: { required: ['d'] } },
      }),
    ).toEqual({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      definitions: {
        pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false },
      },
      properties: { p: { $ref: '#/definitions/pair' }, n: { type: 'number', minimum: 1, exclusiveMinimum: 1 } },
      dependentRequired: { a: ['b'] },
      dependentSchemas: { c: { required: ['d'] } },
    })
  })

  test('lose their regular expressions, but not properties of that name', () => {
    expect(
      schema({
        properties: {
          pattern: { type: 'string', pattern: '^(a+)+$' },
          o: { patternProperties: { '(a+)+$': true }, additionalProperties: false },
        },
      }),
    ).toEqual({ type: 'object', properties: { pattern: { type: 'string' }, o: {} } })
  })

  test('are refused when they are infinite', () => {
    let deep: object = {}
    for (let at = 0; at < 100; at++) deep = { not: deep }
    expect(() => schema({ properties: { deep } })).toThrow('nested deeper')
  })
})

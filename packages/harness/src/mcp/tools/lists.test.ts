// Real servers' lists that violate the protocol: one bad entry costs one entry.
import { until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { callOf, connected, program, rawServer, talking } from '../mcp.fixture.ts'
import { modernSchema } from './schema.ts'

const good = { name: 'good', inputSchema: { type: 'object' } }

/** A server that lists these tools, and `good`. */
async function listing(...tools: unknown[]) {
  const server = await rawServer()
  server.tools = [...tools, good] as never
  return server
}

async function offering(...tools: unknown[]) {
  const { url } = await listing(...tools)
  const { servers } = await connected({ raw: { url, tools: ['*'] } })
  const [{ skipped }] = servers.status() as [typeof servers.status extends () => readonly (infer S)[] ? S : never]
  return { names: servers.tools.map((it) => it.name), skipped, servers }
}

describe('Y12: an entry that does not fit the protocol', () => {
  test.each([
    ['without an input schema', {}],
    ['with null', { inputSchema: null }],
    ['with an empty one', { inputSchema: {} }],
    ['without a type', { inputSchema: { properties: { id: { type: 'string' } } } }],
    ['with alternatives at the top', { inputSchema: { anyOf: [{ required: ['id'] }, { required: ['name'] }] } }],
    ['with required: null', { inputSchema: { type: 'object', required: null, properties: null } }],
    ['with a list of types', { inputSchema: { type: ['object', 'null'] } }],
    ['with nulls around it', { inputSchema: good.inputSchema, description: null, annotations: null, title: null }],
    ['with an unusable output schema', { inputSchema: good.inputSchema, outputSchema: 'text' }],
    ['with boolean properties', { inputSchema: { type: 'object', properties: { any: true } } }],
  ])('is offered %s, and can be called', async (_, more) => {
    const server = await listing({ name: 'odd', ...more })
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [
      callOf('odd', { id: 'a' }),
      { text: 'Told.' },
    ])
    expect(it.servers.tools.map((tool) => tool.name)).toEqual(['odd', 'good'])
    await it.session.run('Go.')
    expect((await it.finished())[0]!.status).toBe('success')
  })

  test.each([
    ['', { name: '', inputSchema: {} }, 'entry 1 of tools', 'it has no name'],
    ['without a name', { inputSchema: {} }, 'entry 1 of tools', 'it has no name'],
    ['a text', 'odd', 'entry 1 of tools', 'it is not an object'],
    ['null', null, 'entry 1 of tools', 'it is not an object'],
    [
      'with a schema of a text',
      { name: 'odd', inputSchema: { type: 'string' } },
      'odd',
      'its input schema is for "string", but arguments are an object',
    ],
    [
      'that runs only as a task',
      { ...good, name: 'odd', execution: { taskSupport: 'required' } },
      'odd',
      'it runs only as a task, which is not supported',
    ],
  ])('is skipped with a reason, and the rest is kept: %s', async (_, entry, tool, reason) => {
    const { names, skipped } = await offering(entry)
    expect(names).toEqual(['good'])
    expect(skipped).toEqual([{ tool, reason }])
  })

  test('in a changed list is in neither the status nor the tools', async () => {
    const it = await talking({ p: program('good') }, [callOf('spoil'), { text: 'Told.' }])
    await it.session.run('Go.')
    await until(() => it.servers.status()[0]!.skipped.length > 0)
    expect(it.servers.status()[0]!.skipped).toEqual([{ tool: 'entry 1 of tools', reason: 'it has no name' }])
    expect(it.servers.tools.map((tool) => tool.name)).toContain('spoil')
  })

  test('a null cursor is the end of the list', async () => {
    const server = await rawServer()
    let lists = 0
    server.intercept = ({ id, method }, _request, response) => {
      if (method !== 'tools/list') return false
      lists++
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [good], nextCursor: null } }))
      return true
    }
    const { servers } = await connected({ raw: { url: server.url, tools: ['*'] } })
    expect(servers.tools.map((it) => it.name)).toEqual(['good'])
    expect(lists).toBe(1)
  })

  test('a greeting with nulls and gaps is accepted', async () => {
    const server = await rawServer()
    server.intercept = ({ id, method }, _request, response) => {
      if (method !== 'initialize') return false
      const capabilities = { tools: { listChanged: null }, resources: null, logging: true }
      const result = { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'raw' }, instructions: null }
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': server.session })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      return true
    }
    const { servers } = await connected({ raw: { url: server.url } })
    expect(servers.status()[0]).toMatchObject({ tools: ['look'], implementation: { name: 'raw', version: 'unknown' } })
  })
})

describe('Y12: an answer that does not fit the protocol', () => {
  const shown = async (result: unknown) => {
    const server = await rawServer(() => result)
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [callOf('look'), { text: 'Told.' }])
    await it.session.run('Go.')
    return (await it.finished())[0]!.content.map((block) => (block.type === 'text' ? block.text : block))
  }

  test.each([
    ['a text for the content', { content: 'plain' }, ['plain']],
    ['null for missing values', { content: null, structuredContent: { a: 1 }, isError: null }, ['{"a":1}']],
    ['an unknown kind of block', { content: [{ type: 'chart', points: [1] }] }, ['{"type":"chart","points":[1]}']],
    [
      'a block without its text',
      { content: [{ type: 'text' }, { type: 'text', text: 'b' }] },
      ['{"type":"text"}', 'b'],
    ],
    ['a list as structured content', { content: [], structuredContent: [1, 2] }, ['[1,2]']],
  ])('is shown as far as possible: %s', async (_, result, expected) => {
    expect(await shown(result)).toEqual(expected)
  })

  test.each([
    ['the keys in another order', '{"b":2,"a":1}', { a: 1, b: 2 }],
    ['a text in "result"', 'hello', { result: 'hello' }],
    ['a number in "result"', '12', { result: 12 }],
    ['an object in "result"', '{"a":1}', { result: { a: 1 } }],
  ])('structured content that the text repeats is shown once: %s', async (_, text, structuredContent) => {
    expect(await shown({ content: [{ type: 'text', text }], structuredContent })).toEqual([text])
  })

  test('structured content whose items are one text each is shown once', async () => {
    const content = ['{"a":1}', 'two'].map((text) => ({ type: 'text', text }))
    expect(await shown({ content, structuredContent: { result: [{ a: 1 }, 'two'] } })).toEqual(['{"a":1}', 'two'])
    expect(await shown({ content, structuredContent: { result: [{ a: 1 }] } })).toHaveLength(3)
  })
})

describe('references by name', () => {
  const schema = (more: object) => modernSchema({ type: 'object', ...more })

  test.each([
    ['$anchor', { $defs: { a: { $anchor: 'here', type: 'string' } }, properties: { x: { $ref: '#here' } } }],
    ['id of draft 4', { $defs: { a: { id: '#here', type: 'string' } }, properties: { x: { $ref: '#here' } } }],
    [
      '$dynamicAnchor',
      { $defs: { a: { $dynamicAnchor: 'here', type: 'string' } }, properties: { x: { $dynamicRef: '#here' } } },
    ],
    [
      '$id',
      {
        $defs: { a: { $id: 'https://e.com/a.json', type: 'string' } },
        properties: { x: { $ref: 'https://e.com/a.json' } },
      },
    ],
    [
      'relative $id',
      {
        $id: 'https://e.com/s/root.json',
        $defs: { a: { $id: 'a.json', type: 'string' } },
        properties: { x: { $ref: 'a.json' } },
      },
    ],
    [
      '$id of the root',
      {
        $id: 'https://e.com/root.json',
        $defs: { a: { type: 'string' } },
        properties: { x: { $ref: 'https://e.com/root.json#/$defs/a' } },
      },
    ],
    [
      'a place below an $id',
      {
        $defs: { a: { $id: 'urn:x:a', $defs: { b: { type: 'string' } } } },
        properties: { x: { $ref: 'urn:x:a#/$defs/b' } },
      },
    ],
  ])('become places in the schema: %s', (_, more) => {
    const { properties } = schema(more) as { properties: { x: { $ref: string } } }
    expect(properties.x).toEqual({ $ref: expect.stringMatching(/^#\/\$defs\/a(?:\/\$defs\/b)?$/) })
  })

  test('that do not resolve in the schema are refused', () => {
    expect(() => schema({ properties: { x: { $ref: '#nowhere' } } })).toThrow('"#nowhere" leads to no schema')
    expect(() => schema({ properties: { x: { $ref: 'https://e.com/a.json' } } })).toThrow('leads to no schema')
  })
})

// The request as the server receives it.
import type { Block, Message, ModelRequest } from '@oxbow/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anthropicAt, ask, request, serve, userMessage } from '../asking.fixture.ts'
import { assistant, call, histories, result, text, tool, user } from '../history/histories.fixture.ts'
import { type AnthropicOptions, repairHistory } from '../index.ts'
import { type AnthropicWriterOptions, messagesRequestWriter } from './request.ts'

// biome-ignore lint/suspicious/noExplicitAny: these tests assert on the wire format.
type Body = Record<string, any>

async function sent(overrides: Partial<ModelRequest> = {}, options: Partial<AnthropicOptions> = {}): Promise<Body> {
  const server = await serve({ text: 'ok' })
  await ask(anthropicAt(server, { promptCache: false, ...options }), overrides)
  return server.requests[0]!.body
}
const messages = async (history: Message[], overrides: Partial<ModelRequest> = {}) =>
  (await sent({ messages: history, ...overrides })).messages

const spec = (name: string) => ({ name, description: `Does ${name}.`, input: { properties: {} } })
const thought = (signature: string): Block => ({ type: 'thinking', text: 'hm', signature })
const by = (model: string, message: Message): Message => ({ ...message, model })

test('a plain question is sent', async () => {
  const server = await serve({ text: 'ok' })
  await ask(anthropicAt(server, { promptCache: false, headers: { 'anthropic-beta': 'new-2026' } }), {
    system: 'Be terse.',
  })
  const { path, headers, body } = server.requests[0]!
  expect(path).toBe('/v1/messages')
  expect(headers).toMatchObject({
    'x-api-key': 'sk-secret',
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'new-2026',
  })
  expect(body).toEqual({
    model: 'any',
    stream: true,
    max_tokens: 32_000,
    system: [{ type: 'text', text: 'Be terse.' }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
  })
})

describe('messages', () => {
  test('a turn with tools: results come first in the user’s message, the user’s text after them', async () => {
    expect(
      await messages([
        userMessage('add'),
        assistant(text('Let me see.'), { ...call('c1'), arguments: '{"a": 1}' }, call('c2')),
        tool({ ...result('c1'), status: 'error' }, { ...result('c2'), content: [] }),
        user(text('and then?')),
      ]),
    ).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'add' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me see.' },
          { type: 'tool_use', id: 'c1', name: 'add', input: { a: 1 } },
          { type: 'tool_use', id: 'c2', name: 'add', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: 'done' }], is_error: true },
          { type: 'tool_result', tool_use_id: 'c2', content: '(success, no output)' },
          { type: 'text', text: 'and then?' },
        ],
      },
    ])
  })

  test('roles alternate, starting with the user', async () => {
    const roles = (await messages([assistant(text('a')), user(text('b')), user(text('c'))])).map((it: Body) => it.role)
    expect(roles).toEqual(['user', 'assistant', 'user'])
  })

  test('arguments that are not an object are sent as an empty one; names and ids are made valid', async () => {
    const history = [user(text('a')), assistant({ type: 'call', callId: 'a:1', tool: 'fs.read', arguments: '{"a":' })]
    const [, answer, results] = await messages(history)
    expect(answer.content[0]).toEqual({
      type: 'tool_use',
      id: expect.stringMatching(/^\w+$/),
      name: 'fs_read',
      input: {},
    })
    expect(results.content[0].tool_use_id).toBe(answer.content[0].id)
  })

  test('images, PDFs and texts are sent as data or by URL; other files are named', async () => {
    const data = (mediaType: string, more: object): Block => ({ type: 'data', mediaType, ...more })
    const [{ content }] = await messages([
      user(
        data('image/png', { data: 'AAAA' }),
        data('image/webp', { url: 'https://example.com/a.webp' }),
        data('application/pdf', { data: 'BBBB', name: 'a.pdf' }),
        data('text/csv', { data: Buffer.from('a,b').toString('base64') }),
        data('image/svg+xml', { data: 'CCCC', name: 'a.svg' }),
      ),
    ])
    expect(content).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
      { type: 'image', source: { type: 'url', url: 'https://example.com/a.webp' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'BBBB' }, title: 'a.pdf' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a,b' } },
      { type: 'text', text: '[file a.svg image/svg+xml]' },
    ])
  })

  test('a result can hold an image', async () => {
    const image = { type: 'data' as const, mediaType: 'image/png', data: 'AAAA' }
    const [, , results] = await messages([
      user(text('a')),
      assistant(call('c')),
      tool({ ...result('c'), content: [image] }),
    ])
    expect(results.content[0].content[0]).toMatchObject({ type: 'image', source: { data: 'AAAA' } })
  })
})

describe('thinking', () => {
  const loop = (...answer: Message[]) => [user(text('a')), ...answer.flatMap((it, i) => [it, tool(result(`c${i}`))])]
  const thinkingOn = { options: { thinking: { type: 'enabled', budget_tokens: 2_000 } } }

  test('of this or an unnamed model is sent back unchanged, even encrypted or without text', async () => {
    const blocks: Block[] = [
      { type: 'thinking', text: ' h\u2028m ', signature: 'sig+/=' },
      { type: 'thinking', text: '', signature: 'only' },
      { type: 'thinking', text: '', redacted: 'sealed' },
    ]
    for (const answer of [by('test:any', assistant(...blocks, call('c0'))), assistant(...blocks, call('c0'))]) {
      const [, { content }] = await messages(loop(answer), thinkingOn)
      expect(content.slice(0, 3)).toEqual([
        { type: 'thinking', thinking: ' h\u2028m ', signature: 'sig+/=' },
        { type: 'thinking', thinking: '', signature: 'only' },
        { type: 'redacted_thinking', data: 'sealed' },
      ])
    }
  })

  test('of another model is never sent back', async () => {
    const history = [
      ...loop(by('test:other', assistant(thought('s'), call('c0')))),
      assistant(text('b')),
      user(text('c')),
    ]
    expect(JSON.stringify(await messages(history))).not.toContain('thinking')
  })

  test('without a signature is not sent back, unless the provider does not sign', async () => {
    const history = loop(assistant({ type: 'thinking', text: 'hm' }, call('c0')))
    expect(JSON.stringify(await messages(history))).not.toContain('thinking')
    const body = await sent({ messages: history }, { quirks: { unsignedThinking: true } })
    expect(body.messages[1].content[0]).toEqual({ type: 'thinking', thinking: 'hm', signature: '' })
  })

  test('at the end of a message is omitted: the API refuses it', async () => {
    const history = [user(text('a')), assistant(text('b'), thought('s')), assistant(thought('t')), user(text('c'))]
    expect((await messages(history))[1].content).toEqual([{ type: 'text', text: 'b' }])
  })

  test('with a budget is off while calls of another model are answered', async () => {
    const foreign = by('openai:gpt-5', assistant(thought('s'), call('c0')))
    const body = await sent({ messages: loop(foreign), ...thinkingOn })
    expect(body.thinking).toEqual({ type: 'disabled' })
    expect(JSON.stringify(body.messages)).not.toContain('thinking')
  })

  test('is on again with this model’s next answer and in the next turn', async () => {
    const foreign = by('openai:gpt-5', assistant(thought('s'), call('c0')))
    const own = by('test:any', assistant(thought('t'), call('c1')))
    for (const history of [loop(foreign, own), [...loop(foreign), assistant(text('b')), user(text('c'))]]) {
      expect((await sent({ messages: history, ...thinkingOn })).thinking).toEqual(thinkingOn.options.thinking)
    }
  })

  test('that is adaptive stays on: the API accepts such a history', async () => {
    const options = { thinking: { type: 'adaptive' } }
    const body = await sent({ messages: loop(by('openai:gpt-5', assistant(call('c0')))), options })
    expect(body.thinking).toEqual({ type: 'adaptive' })
  })

  test('excludes a temperature; models after Opus 4.6 accept none at all', async () => {
    expect(await sent({ temperature: 0.5, ...thinkingOn })).not.toHaveProperty('temperature')
    expect(await sent({ temperature: 0.5 })).toHaveProperty('temperature', 0.5)
    const given = async (model: string) => (await sent({ temperature: 0.5 }, { model })).temperature
    expect(await given('claude-opus-4-7')).toBeUndefined()
    expect(await given('claude-sonnet-5-20260901')).toBeUndefined()
    expect(await given('claude-haiku-4-5-20251001')).toBe(0.5)
    expect(await given('claude-opus-4-20250514')).toBe(0.5)
  })

  test('can be set for every request of a model', async () => {
    const options = { thinking: { type: 'adaptive' }, metadata: { user_id: 'u' } }
    expect(await sent({ options: { metadata: { user_id: 'v' } } }, { options })).toMatchObject({
      thinking: { type: 'adaptive' },
      metadata: { user_id: 'v' },
    })
  })
})

describe('tools', () => {
  test('are sorted by name, with an object as input', async () => {
    const body = await sent({ tools: [spec('b'), spec('a')] })
    expect(body.tools).toEqual(
      ['a', 'b'].map((name) => ({
        name,
        description: `Does ${name}.`,
        input_schema: { type: 'object', properties: {} },
      })),
    )
  })

  test.each([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [{ tool: 'a' }, { type: 'tool', name: 'a' }],
  ] as const)('are sent with the choice %j', async (toolChoice, expected) => {
    expect((await sent({ tools: [spec('a')], toolChoice })).tool_choice).toEqual(expected)
  })

  test('that were called stay declared in a step that offers none: the API requires it', async () => {
    const body = await sent({ messages: [user(text('a')), assistant(call('c')), tool(result('c'))], tools: [] })
    expect(body.tools).toEqual([
      { name: 'add', description: expect.any(String), input_schema: { type: 'object', properties: {} } },
    ])
    expect(body.tool_choice).toEqual({ type: 'none' })
    expect(await sent({ tools: [] })).not.toHaveProperty('tools')
  })

  test('of the provider follow the others', async () => {
    const search = { type: 'web_search_20250305', name: 'web_search' }
    const body = await sent({ tools: [spec('z')], options: { tools: [search] } })
    expect(body.tools.map((it: Body) => it.name)).toEqual(['z', 'web_search'])
  })
})

describe('the prompt cache', () => {
  const mark = { type: 'ephemeral' }
  const marks = (body: Body): string[] => {
    const found: string[] = []
    const look = (value: unknown, path: string) => {
      if (typeof value !== 'object' || value === null) return
      for (const [key, inner] of Object.entries(value)) {
        if (key === 'cache_control') found.push(path)
        else look(inner, `${path}/${key}`)
      }
    }
    look(body, '')
    return found
  }
  const history = [
    user(text('a')),
    assistant(call('c1')),
    tool(result('c1')),
    assistant(call('c2'), call('c3')),
    tool(result('c2'), result('c3')),
  ]

  test('is marked at the end of the tools, the system and the last two user messages', async () => {
    const body = await sent(
      { system: 'Be terse.', tools: [spec('a'), spec('b')], messages: history },
      { promptCache: true },
    )
    expect(marks(body)).toEqual(['/tools/1', '/system/0', '/messages/2/content/0', '/messages/4/content/1'])
    expect(body.tools[1].cache_control).toEqual(mark)
  })

  test('is used unless it is switched off', async () => {
    const server = await serve({ text: 'ok' }, { text: 'ok' })
    await ask(anthropicAt(server))
    expect(marks(server.requests[0]!.body)).toEqual(['/messages/0/content/0'])
    await ask(anthropicAt(server, { promptCache: false }), { messages: history })
    expect(marks(server.requests[1]!.body)).toEqual([])
  })
})

describe('a JSON answer', () => {
  const output = {
    name: 'city',
    schema: { type: 'object', properties: { a: { type: 'integer', minimum: 1 } }, required: ['a'] },
  }

  test('is requested by its schema where the API supports it', async () => {
    const body = await sent({ output, options: { output_config: { effort: 'low' } } })
    expect(body.output_config).toEqual({
      effort: 'low',
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { a: { type: 'integer', description: '{"minimum":1}' } },
          required: ['a'],
          additionalProperties: false,
        },
      },
    })
    expect(body).not.toHaveProperty('tools')
  })

  const quirks = { output: 'tool' as const }
  test('is a tool call where the provider does not support schemas', async () => {
    const body = await sent({ output }, { quirks })
    expect(body.tools).toEqual([{ name: 'city', description: expect.any(String), input_schema: output.schema }])
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'city' })
  })

  test('next to tools is one of them', async () => {
    const body = await sent({ output, tools: [spec('city')] }, { quirks })
    expect(body.tools.map((it: Body) => it.name)).toEqual(['city', 'answer_city'])
    expect(body.tool_choice).toEqual({ type: 'any' })
  })

  test('is not forced where thinking is on', async () => {
    const options = { thinking: { type: 'enabled', budget_tokens: 2_000 } }
    expect((await sent({ output, options }, { quirks })).tool_choice).toEqual({ type: 'auto' })
  })

  test.each([
    ['an open object', { type: 'object', additionalProperties: { type: 'string' } }],
    ['an object without properties', { type: 'object' }],
    ['recursion', { $ref: '#/$defs/a', $defs: { a: { type: 'array', items: { $ref: '#/$defs/a' } } } }],
    ['a reference to another document', { $ref: 'https://example.com/a' }],
    ['tuples', { type: 'array', prefixItems: [{ type: 'string' }] }],
  ])('of %s is a tool call: the API cannot express it', async (_, schema) => {
    const body = await sent({ output: { name: 'out', schema } })
    expect(body).not.toHaveProperty('output_config')
    expect(body.tools[0]).toMatchObject({ name: 'out', input_schema: schema })
  })

  test('the call is streamed as text', async () => {
    const server = await serve({ thinking: 'hm', calls: [{ name: 'city', arguments: '{"a": 1}' }] })
    const { reply, deltas } = await ask(anthropicAt(server, { quirks }), { output })
    expect(reply).toMatchObject({
      finishReason: 'stop',
      blocks: [{ type: 'thinking' }, { type: 'text', text: '{"a": 1}' }],
    })
    expect(deltas.slice(1)).toEqual([
      { type: 'text', block: 1, text: '{"a":' },
      { type: 'text', block: 1, text: ' 1}' },
    ])
  })
})

describe('any history', () => {
  const options: AnthropicWriterOptions = { model: 'any', id: 'test:any', promptCache: true, quirks: {} }
  const thinking = fc.constantFrom(
    undefined,
    { type: 'enabled', budget_tokens: 1_024 },
    { type: 'adaptive' },
    { type: 'disabled' },
  )
  const write = (history: readonly Message[], thinking: object | undefined, offered = true): Body => {
    const further = thinking === undefined ? {} : { options: { thinking } }
    return JSON.parse(
      messagesRequestWriter(options)(
        request({ system: 's', tools: offered ? [spec('add')] : [], messages: history, ...further }),
      ).body,
    )
  }
  const check = (property: (history: Message[], thinking: object | undefined) => void) =>
    fc.assert(fc.property(histories, thinking, property), { numRuns: 2_000 })

  test('is written within the API’s rules', () => {
    check((history, thinking) => {
      expect(broken(write(history, thinking))).toEqual([])
      expect(broken(write(history, thinking, false))).toEqual([])
    })
  })

  test('is written with the reasoning of this model only', () => {
    check((history, thinking) => {
      const others = history.map((it) => ({ ...it, model: 'other:model' }))
      expect(JSON.stringify(write(others, thinking).messages)).not.toMatch(/"(redacted_)?thinking"/)
    })
  })

  test('is written the same when repaired first or written twice', () => {
    check((history, thinking) => {
      const body = write(history, thinking)
      expect(write(repairHistory(history, { userFirst: true }).messages, thinking)).toEqual(body)
      expect(write(history, thinking)).toEqual(body)
    })
  })

  test('only grows at its end, so that the prompt cache is hit', () => {
    const writer = messagesRequestWriter({ ...options, promptCache: false })
    const bodyOf = (history: Message[]) => writer(request({ messages: history })).body
    const history = [user(text('a')), assistant(thought('s'), call('c')), tool(result('c')), assistant(text('b'))]
    const before = bodyOf(history)
    expect(bodyOf([...history, user(text('d'))]).startsWith(before.slice(0, -2))).toBe(true)
  })
})

/** What Anthropic's API would refuse in the shape of a conversation. */
function broken({ messages, thinking, ...body }: Body): string[] {
  const problems: string[] = []
  const must = (right: boolean, rule: string) => {
    if (!right) problems.push(rule)
  }
  const isThinking = (block: Body) => block?.type === 'thinking' || block?.type === 'redacted_thinking'
  const ofType = (content: Body[], type: string) => content.filter((block) => block.type === type)
  const used = new Set<string>()
  let open: string[] = []
  messages.forEach(({ role, content }: Body, index: number) => {
    must(role === (index % 2 === 0 ? 'user' : 'assistant'), 'a user begins and roles alternate')
    must(content.length > 0, 'no message is empty')
    must(!ofType(content, 'text').some((block) => block.text.trim() === ''), 'no text is blank')
    const results = ofType(content, 'tool_result')
    const answered = results.map((block) => block.tool_use_id)
    must(
      content.slice(0, results.length).every((it: Body) => results.includes(it)),
      'results come first',
    )
    must(answered.toSorted().join() === open.toSorted().join(), 'each call has one result in the next message')
    const calls = ofType(content, 'tool_use')
    open = calls.map((block) => block.id)
    for (const { id, input } of calls) {
      must(/^[\w-]+$/.test(id) && !used.has(id), 'ids are valid and unique')
      must(typeof input === 'object' && input !== null && !Array.isArray(input), 'input is an object')
      used.add(id)
    }
    const thoughts = content.filter(isThinking)
    must(role === 'assistant' || thoughts.length + calls.length === 0, 'a user neither thinks nor calls')
    must(!isThinking(content.at(-1)), 'no message ends with thinking')
    must(!thoughts.some((it: Body) => it.signature === '' || it.cache_control), 'thinking is signed and not marked')
    must(thinking?.type !== 'disabled' || thoughts.length === 0, 'no thinking where it is off')
  })
  must(open.length === 0, 'the last calls have results')
  must(used.size === 0 || body.tools.length > 0, 'calls want tools')
  const inLoop = messages.at(-1)?.content[0].type === 'tool_result'
  must(
    thinking?.type !== 'enabled' || !inLoop || isThinking(messages.at(-2).content[0]),
    'open calls begin with thinking',
  )
  const marks = JSON.stringify({ messages, ...body }).match(/"cache_control"/g) ?? []
  must(marks.length <= 4, 'at most four marks')
  return problems
}

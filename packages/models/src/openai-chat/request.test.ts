// The request as the server receives it.
import type { Message, ModelRequest } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { ask, modelAt, request, serve, userMessage } from '../asking.fixture.ts'
import { type Quirks, resolveModel } from '../index.ts'
import { chatRequestWriter } from './request.ts'

async function sent(overrides: Partial<ModelRequest> = {}, quirks: Quirks = {}): Promise<Record<string, unknown>> {
  const server = await serve({ text: 'ok' })
  await ask(modelAt(server, { quirks }), overrides)
  return server.requests[0]!.body
}

const message = (role: Message['role'], ...blocks: Message['blocks']): Message => ({ id: 'm', role, blocks })
const text = (value: string) => ({ type: 'text' as const, text: value })
const call = (callId: string, args = '{}') => ({ type: 'call' as const, callId, tool: 'add', arguments: args })
const result = (callId: string, ...content: { type: 'text'; text: string }[]) => ({
  type: 'result' as const,
  callId,
  tool: 'add',
  status: 'success' as const,
  content,
})
const image = { type: 'data' as const, mediaType: 'image/png', data: 'AAAA' }

test('a plain question is sent', async () => {
  expect(await sent({ system: 'Be terse.' })).toEqual({
    model: 'any',
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: 'system', content: 'Be terse.' },
      { role: 'user', content: 'hi' },
    ],
  })
})

describe('messages', () => {
  const messages = async (history: Message[], quirks: Quirks = {}) =>
    (await sent({ messages: history }, quirks)).messages

  test('a turn with tools: one tool message for each result, directly after the calls', async () => {
    expect(
      await messages([
        userMessage('add'),
        message('assistant', text('Let me '), text('see.'), call('c1', '{"a":1}'), call('c2')),
        message('tool', result('c1', text('one'), text('more')), result('c2')),
        message('assistant', text('Done.')),
      ]),
    ).toEqual([
      { role: 'user', content: 'add' },
      {
        role: 'assistant',
        content: 'Let me see.',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } },
          { id: 'c2', type: 'function', function: { name: 'add', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'one\nmore' },
      { role: 'tool', tool_call_id: 'c2', content: '(success, no output)' },
      { role: 'assistant', content: 'Done.' },
    ])
  })

  test('calls without text have null content', async () => {
    const history = [userMessage('hi'), message('assistant', call('c')), message('tool', result('c', text('x')))]
    expect(await messages(history)).toMatchObject([{}, { content: null, tool_calls: [{ id: 'c' }] }, {}])
  })

  test('images go as data URLs or addresses, files as files', async () => {
    const url = 'https://example.com/a.png'
    const pdf = { type: 'data' as const, mediaType: 'application/pdf', data: 'BBBB', name: 'a.pdf' }
    const remote = {
      type: 'data' as const,
      mediaType: 'application/pdf',
      url: 'https://example.com/b.pdf',
      name: 'b.pdf',
    }
    expect(
      await messages([message('user', text('see'), image, { ...image, data: undefined as never, url }, pdf, remote)]),
    ).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'image_url', image_url: { url } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,BBBB' } },
          { type: 'text', text: '[file b.pdf application/pdf https://example.com/b.pdf]' },
        ],
      },
    ])
  })

  test('images in results follow as a user message, after all results', async () => {
    const shown = { ...result('c', text('here')), content: [text('here'), image] }
    const history = [
      userMessage('hi'),
      message('assistant', call('c'), call('d')),
      message('tool', shown, result('d', text('x'))),
    ]
    expect(((await messages(history)) as unknown[]).slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'c', content: 'here\n[image/png: see the next message]' },
      { role: 'tool', tool_call_id: 'd', content: 'x' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
    ])
  })

  test('several texts of a user become one', async () => {
    expect(await messages([message('user', text('a'), text('b'))])).toEqual([{ role: 'user', content: 'a\n\nb' }])
  })

  test.each(['{"a":', '', '[1]', 'null', '{}{}'])(
    'arguments that are not an object (%j) are sent as `{}`, so that the provider accepts the history',
    async (args) => {
      const history = [
        userMessage('hi'),
        message('assistant', call('c', args)),
        message('tool', result('c', text('refused'))),
      ]
      expect(await messages(history)).toMatchObject([{}, { tool_calls: [{ function: { arguments: '{}' } }] }, {}])
    },
  )

  test('a broken history is repaired', async () => {
    expect(
      await messages([message('assistant', text(' ')), userMessage('hi'), message('assistant', call('c'))]),
    ).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool', tool_call_id: 'c', content: expect.stringContaining('unknown') },
    ])
  })

  test('ids that the provider would refuse are replaced, identically in call and result', async () => {
    const ids = async (callId: string, quirks: Quirks = {}) => {
      const history = [
        userMessage('hi'),
        message('assistant', call(callId)),
        message('tool', result(callId, text('x'))),
      ]
      const [, asked, answered] = (await messages(history, quirks)) as {
        tool_calls: { id: string }[]
        tool_call_id: string
      }[]
      expect(answered!.tool_call_id).toBe(asked!.tool_calls[0]!.id)
      return answered!.tool_call_id
    }
    expect(await ids('turn-1_2-3')).toBe('turn-1_2-3')
    expect(await ids('session/turn:1')).toMatch(/^[a-f0-9]{40}$/)
    expect(await ids('x'.repeat(41))).toMatch(/^[a-f0-9]{40}$/)
    expect(await ids('turn-1', { callIds: 'nine' })).toMatch(/^[a-zA-Z0-9]{9}$/)
  })

  test.each([
    ['functions.get_weather', 'functions_get_weather'],
    ['get weather 天气 🌤', 'get_weather_____'],
    ['half \ud83d', 'half__'],
    ['', '_'],
    ['x'.repeat(80), 'x'.repeat(64)],
    ['get_weather-2', 'get_weather-2'],
  ])('an invalid tool name in a call (%j) is sent as a valid one (%j)', async (tool, wire) => {
    const history = [
      userMessage('hi'),
      message('assistant', { ...call('c'), tool }),
      message('tool', result('c', text('no such tool'))),
    ]
    expect(await messages(history)).toMatchObject([{}, { tool_calls: [{ function: { name: wire } }] }, {}])
  })

  test('a lone surrogate is sent as U+FFFD anywhere, and whole characters stay', async () => {
    const half = 'half \ud83d, whole 🌤'
    const args = (escaped: string) => `{"raw":"${half}","${escaped}":"\\\\ud83d \\ud83C\\uDF24 \\u00e9"}`
    const server = await serve({ text: 'ok' })
    await ask(modelAt(server), {
      system: half,
      messages: [
        message('user', text(half), { ...image, mediaType: 'application/pdf', name: half }),
        message('assistant', text(half), { type: 'thinking', text: half }, call('c', args('\\uD83d\\ud83d\\uDC00'))),
        message('tool', result('c', text(half))),
      ],
      tools: [{ name: 'add', description: half, input: { title: half } }],
      options: { [half]: half },
    })
    const { body } = server.requests[0]!
    expect(JSON.stringify(body)).not.toMatch(/(?<!\\)\\ud/i)
    expect(JSON.stringify(body).match(/half \ufffd, whole 🌤/g)).toHaveLength(10)
    const sentCall = (body.messages as { tool_calls: { function: { arguments: string } }[] }[])[2]!.tool_calls[0]!
    expect(JSON.parse(sentCall.function.arguments)).toEqual({
      raw: 'half \ufffd, whole 🌤',
      '\ufffd\ud83d\udc00': '\\ud83d 🌤 é',
    })
  })

  test('reasoning is sent back only where the provider wants it', async () => {
    const thought = { type: 'thinking' as const, text: 'hm' }
    const history = [
      userMessage('hi'),
      message('assistant', thought, call('c')),
      message('tool', result('c', text('x'))),
      message('assistant', thought, text('a')),
      message('assistant', text('old')),
    ]
    const reasoning = async (replayReasoning: 'never' | 'with-calls' | 'always') =>
      ((await messages(history, { replayReasoning })) as { role: string; reasoning_content?: string }[])
        .filter(({ role }) => role === 'assistant')
        .map(({ reasoning_content }) => reasoning_content)
    expect(await reasoning('never')).toEqual([undefined, undefined, undefined])
    expect(await reasoning('with-calls')).toEqual(['hm', undefined, undefined])
    expect(await reasoning('always')).toEqual(['hm', 'hm', ''])
  })

  test('a message of thinking alone is not sent', async () => {
    expect(await messages([userMessage('hi'), message('assistant', { type: 'thinking', text: 'hm' })])).toHaveLength(1)
  })
})

describe('settings', () => {
  const tool = (name: string) => ({ name, description: `does ${name}`, input: { type: 'object' } })

  test('tools are sent sorted by name', async () => {
    const { tools } = await sent({ tools: [tool('b'), tool('a')] })
    expect(tools).toEqual(
      ['a', 'b'].map((name) => ({
        type: 'function',
        function: { name, description: `does ${name}`, parameters: { type: 'object', properties: {} } },
      })),
    )
    expect((await sent({ tools: [tool('a'), tool('b')] })).tools).toEqual(tools)
  })

  test('the tool choice is sent', async () => {
    const choice = async (toolChoice: NonNullable<ModelRequest['toolChoice']>) =>
      (await sent({ tools: [tool('a')], toolChoice })).tool_choice
    expect(await choice('required')).toBe('required')
    expect(await choice('none')).toBe('none')
    expect(await choice({ tool: 'a' })).toEqual({ type: 'function', function: { name: 'a' } })
    expect(await sent({ toolChoice: 'required' })).not.toHaveProperty('tool_choice')
  })

  test('output is requested by JSON Schema, or by an instruction where that is refused', async () => {
    const output = { name: 'answer', schema: { type: 'object' } }
    expect((await sent({ output })).response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', schema: { type: 'object' }, strict: false },
    })
    const ruled = await sent({ output, system: 'Be terse.' }, { output: 'json_object' })
    expect(ruled.response_format).toEqual({ type: 'json_object' })
    expect((ruled.messages as { content: string }[])[0]!.content).toMatch(
      /^Be terse\.\n\nAnswer with one JSON .*"type":"object"/s,
    )
  })

  test('limits and temperature are sent; the field of the limit differs', async () => {
    expect(await sent({ maxOutputTokens: 5, temperature: 0 })).toMatchObject({ max_tokens: 5, temperature: 0 })
    const renamed = await sent({ maxOutputTokens: 5 }, { maxTokensField: 'max_completion_tokens' })
    expect(renamed).toMatchObject({ max_completion_tokens: 5 })
    expect(renamed).not.toHaveProperty('max_tokens')
  })

  test('B1: results in several messages are sent together, followed by all their files', async () => {
    const image = { type: 'data' as const, mediaType: 'image/png', data: 'aGk=' }
    const result = (callId: string, content: readonly object[]) =>
      ({ type: 'result', callId, tool: 'get', status: 'success', content }) as never
    const call = (callId: string) => ({ type: 'call' as const, callId, tool: 'get', arguments: '{}' })
    const server = await serve({ text: 'a' })
    await ask(modelAt(server), {
      messages: [
        userMessage('Get both'),
        { id: 'a', role: 'assistant', blocks: [call('c1'), call('c2')] },
        { id: 't1', role: 'tool', blocks: [result('c1', [image])] },
        { id: 't2', role: 'tool', blocks: [result('c2', [{ type: 'text', text: 'b' }])] },
      ],
    })
    const roles = (server.requests[0]!.body.messages as { role: string }[]).map(({ role }) => role)
    expect(roles).toEqual(['user', 'assistant', 'tool', 'tool', 'user'])
  })

  test('`options.tools` is merged with the tools of the request', async () => {
    const server = await serve({ text: 'a' })
    const own = { type: 'web_search', web_search: {} }
    const tool = { name: 'add', description: '', input: { type: 'object', properties: {} } }
    const body: string[] = []
    const model = modelAt(server, {
      fetch: (input, init) => {
        body.push(String(init?.body))
        return fetch(input, init)
      },
    })
    await ask(model, { tools: [tool], options: { tools: [own] } })
    expect(body[0]?.match(/"tools":/g)).toHaveLength(1)
    expect(server.requests[0]?.body.tools).toEqual([expect.objectContaining({ type: 'function' }), own])
  })

  test('custom options pass through; stream options are merged', async () => {
    const options = { seed: 7, stream_options: { include_obfuscation: false } }
    expect(await sent({ options })).toMatchObject({
      seed: 7,
      stream_options: { include_usage: true, include_obfuscation: false },
    })
    expect(await sent({}, { includeUsage: false })).not.toHaveProperty('stream_options')
  })
})

test('a message is serialised once, however often it is sent', () => {
  let reads = 0
  const counted = new Proxy(userMessage('hi'), {
    get(target, field, receiver) {
      if (field === 'role') reads++
      return Reflect.get(target, field, receiver)
    },
  })
  const write = chatRequestWriter('any', {}, 'test:any')
  const first = write(request({ messages: [counted] }))
  const once = reads
  expect(write(request({ messages: [counted] }))).toBe(first)
  // The history check reads the role again; the serialiser does not.
  expect(reads - once).toBeLessThan(once)
})

test('a history of thousands of messages is cheap the second time', () => {
  const history = Array.from({ length: 4_000 }, (_, i) => ({ ...userMessage('a question '.repeat(20)), id: `${i}` }))
  const write = chatRequestWriter('any', {}, 'test:any')
  const time = () => {
    const start = performance.now()
    write(request({ messages: history }))
    return performance.now() - start
  }
  const first = time()
  const later = Math.min(...Array.from({ length: 10 }, time))
  expect(later).toBeLessThan(first / 2)
})

describe('B1: Claude on OpenRouter', () => {
  const marked = (text: string) => [{ type: 'text', text, cache_control: { type: 'ephemeral' } }]
  const sent = async (name: string, messages: readonly Message[]) => {
    const server = await serve({ text: 'ok' })
    const model = resolveModel(name, { OPENROUTER_API_KEY: 'k', OPENROUTER_BASE_URL: server.url })
    await ask(model, { system: 'Be brief.', messages })
    return server.requests[0]!.messages
  }

  test('gets marks for its cache in the system text and the newest message', async () => {
    const messages: Message[] = [
      userMessage('hi'),
      message('assistant', call('c1')),
      message('tool', result('c1', text('seen'))),
    ]
    expect(await sent('openrouter:anthropic/claude-sonnet-5', messages)).toMatchObject([
      { role: 'system', content: marked('Be brief.') },
      { role: 'user', content: 'hi' },
      { role: 'assistant' },
      { role: 'tool', content: marked('seen') },
    ])
  })

  test('and no other model gets them', async () => {
    expect(await sent('openrouter:openai/gpt-5', [userMessage('hi')])).toMatchObject([
      { content: 'Be brief.' },
      { content: 'hi' },
    ])
  })
})

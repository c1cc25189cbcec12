// The oddities of providers, each as its frames.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ask,
  askInVain,
  calls,
  frame,
  modelAt,
  read,
  request,
  serve,
  sse,
  text,
  thinking,
  userMessage,
} from '../asking.fixture.ts'
import { assembleReply } from './reply.ts'

const usage = (prompt: number, completion: number, more: object = {}) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  ...more,
})

describe('the end of an answer', () => {
  test.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['max_tokens', 'length'],
    ['content_filter', 'filtered'],
    ['sensitive', 'filtered'],
    ['refusal', 'refusal'],
    ['model_context_window_exceeded', 'length'],
    ['max_output_tokens', 'length'],
    ['MAX_TOKENS', 'length'],
    ['something new', 'length'],
    ['tool_calls', 'stop'],
  ])('`%s` without calls is `%s`', async (wire, reason) => {
    expect((await read([frame({ content: 'a' }), frame({}, wire)])).reply.finishReason).toBe(reason)
  })

  test.each(['stop', 'tool_calls', 'STOP'])('`%s` after calls is `calls`: calls decide', async (wire) => {
    const { reply } = await read([
      frame({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f' } }] }),
      frame({}, wire),
    ])
    expect(reply.finishReason).toBe('calls')
  })

  test('B1: an unknown reason is an incomplete answer, reported with the provider’s word', async () => {
    const call = { index: 0, id: 'a', function: { name: 'pay', arguments: '{}' } }
    const { reply } = await read([frame({ tool_calls: [call] }), frame({}, 'something new')])
    // Calls of an answer that ended with `length` do not run.
    expect(reply).toMatchObject({ finishReason: 'length', endedWith: 'something new' })
  })

  test.each(['ERROR', 'OTHER', 'MALFORMED_RESPONSE', 'insufficient_system_resource'])(
    'B1: `%s` is a failed answer that is retried',
    async (reason) => {
      const { error } = await askInVain(
        modelAt(await serve({ raw: sse([frame({ content: 'a' }), frame({}, reason)]) })),
      )
      expect(error).toMatchObject({ code: expect.stringMatching(/provider_error|overloaded/), retryable: true })
    },
  )

  test('`[DONE]` without a reason is an end, and calls still decide', async () => {
    expect((await read([frame({ content: 'a' })])).reply.finishReason).toBe('stop')
    const called = await read([frame({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f' } }] })])
    expect(called.reply.finishReason).toBe('calls')
  })

  test('calls cut by the length limit stay `length`, so that they do not run', async () => {
    const cut = { index: 0, id: 'a', function: { name: 'f', arguments: '{"a":' } }
    const { reply } = await read([frame({ tool_calls: [cut] }), frame({}, 'length')])
    expect(reply.finishReason).toBe('length')
    expect(calls(reply)).toEqual([['f', '{"a":']])
  })

  test('a reason without `[DONE]` is an end', async () => {
    const server = await serve({ raw: sse([frame({ content: 'a' }), frame({}, 'stop')], '') })
    expect(text((await ask(modelAt(server))).reply)).toBe('a')
  })

  test('`finish_reason: "null"` as a string does not count as a reason', async () => {
    const server = await serve({ raw: sse([frame({ content: 'a' }, 'null')], '') })
    expect((await askInVain(modelAt(server))).error.code).toBe('stream_cut')
  })

  test('a last `data: [DONE]` without a line end counts', async () => {
    const server = await serve({ raw: sse([frame({ content: 'a' })], 'data: [DONE]') })
    expect(text((await ask(modelAt(server))).reply)).toBe('a')
  })

  test('a refusal is text with the reason `refusal`', async () => {
    const { reply } = await read([frame({ refusal: 'I will not.' }), frame({}, 'stop')])
    expect(reply).toMatchObject({ blocks: [{ type: 'text', text: 'I will not.' }], finishReason: 'refusal' })
  })
})

describe('text', () => {
  test('empty content makes neither block nor fragment', async () => {
    const { reply, deltas } = await read([
      frame({ role: 'assistant', content: '' }),
      frame({ content: '', reasoning_content: 'hm' }),
      frame({ content: null }),
      frame({ content: '', reasoning_content: '' }, 'stop'),
    ])
    expect(reply.blocks).toEqual([{ type: 'thinking', text: 'hm' }])
    expect(deltas).toHaveLength(1)
  })

  test('frames with `delta: null`, without choices, with empty choices and with an empty role are tolerated', async () => {
    const { reply } = await read([
      { choices: [{ index: 0, delta: null }] },
      { choices: null },
      { choices: [null] },
      { choices: [] },
      { id: 'only' },
      frame({ role: '', content: 'a' }),
      frame({ content: 'b', tool_calls: null }),
      frame({}, 'stop'),
    ])
    expect(text(reply)).toBe('ab')
  })

  test('a last frame with the whole message is not appended to the streamed text (MiniMax)', async () => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
    const { reply } = await read([
      frame({ role: 'assistant', content: 'Let me ', reasoning_content: 'hm' }),
      frame({ content: 'see.' }),
      frame({ tool_calls: [call] }),
      {
        object: 'chat.completion',
        model: 'm',
        choices: [
          {
            index: 0,
            finish_reason: 'tool_calls',
            message: { role: 'assistant', content: 'Let me see.', reasoning_content: 'hm', tool_calls: [call] },
          },
        ],
        usage: usage(7, 3),
      },
    ])
    expect(text(reply)).toBe('Let me see.')
    expect(thinking(reply)).toBe('hm')
    expect(calls(reply)).toEqual([['f', '{"a":1}']])
    expect(reply.usage).toMatchObject({ inputTokens: 7, outputTokens: 3, estimated: false })
  })

  test('nor is it when the frame also has an empty or whole delta', async () => {
    const message = { role: 'assistant', content: 'Hi there' }
    for (const delta of [{}, message]) {
      const last = { object: 'chat.completion', choices: [{ index: 0, delta, message, finish_reason: 'stop' }] }
      expect(text((await read([frame({ content: 'Hi ' }), frame({ content: 'there' }), last])).reply)).toBe('Hi there')
    }
  })

  test('a whole message is used where nothing was streamed', async () => {
    const message = { role: 'assistant', content: 'all at once' }
    const { reply } = await read([
      { object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] },
    ])
    expect(text(reply)).toBe('all at once')
  })

  test('frames named `chat.completion` are appended as long as they hold a delta', async () => {
    const named = (content: string) => ({ ...frame({ content }), object: 'chat.completion' })
    expect(text((await read([named('a'), named('b')])).reply)).toBe('ab')
  })

  test('the model is the one named by the provider', async () => {
    expect((await read([{ ...frame({ content: 'a' }), model: 'routed-to' }])).reply.model).toBe('routed-to')
    expect((await read([{ ...frame({ content: 'a' }), model: '' }])).reply.model).toBe('any')
  })
})

describe('reasoning', () => {
  test.each([
    ['reasoning_content', { reasoning_content: 'hm' }],
    ['reasoning', { reasoning: 'hm' }],
    ['reasoning_details', { reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] }],
    ['a summary in reasoning_details', { reasoning_details: [{ type: 'reasoning.summary', summary: 'hm' }] }],
    ['reasoning beside the same reasoning_details', { reasoning: 'hm', reasoning_details: [{ text: 'hm' }] }],
    ['content parts', { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] }],
  ])('is found in %s', async (_, delta) => {
    const { reply } = await read([frame(delta), frame({ content: 'a' }), frame({}, 'stop')])
    expect(reply.blocks).toMatchObject([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'a' },
    ])
  })

  test('B1: OpenRouter’s details are sent back unchanged, only to the model that wrote them', async () => {
    const [first, second] = [
      { type: 'reasoning.text', text: 'hm', signature: 'proof=', id: 'r1', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'sealed', id: 'r2', format: 'openai-responses-v1', index: 1 },
    ]
    const server = await serve({
      raw: sse([
        frame({ reasoning_details: [{ ...first, text: 'h', signature: undefined }] }),
        frame({ reasoning_details: [{ ...first, text: 'm' }] }),
        frame({ reasoning_details: [second] }),
        frame({ content: 'a' }, 'stop'),
      ]),
    })
    server.script('*', [{ text: 'b' }, { text: 'c' }])
    const { reply } = await ask(modelAt(server))
    const messages = [
      userMessage('hi'),
      { id: 'a', role: 'assistant' as const, blocks: reply.blocks, model: 'test:any' },
      { ...userMessage('and?'), id: 'u2' },
    ]
    await ask(modelAt(server), { messages })
    await ask(modelAt(server, { id: 'test:other' }), { messages })
    const [, own, other] = server.requests.map(({ body }) => (body.messages as object[])[1])
    expect(own).toMatchObject({ role: 'assistant', content: 'a', reasoning_details: [first, second] })
    expect(other).not.toHaveProperty('reasoning_details')
  })

  test('signatures and encrypted reasoning are kept', async () => {
    const { reply } = await read([
      frame({ reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] }),
      frame({ reasoning_details: [{ type: 'reasoning.text', text: '', signature: 'proof' }] }),
      frame({ content: 'a' }),
      frame({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'sealed' }] }),
    ])
    const details = [
      { type: 'reasoning.text', text: 'hm', signature: 'proof' },
      { type: 'reasoning.encrypted', data: 'sealed' },
    ]
    expect(reply.blocks).toEqual([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'a' },
      { type: 'thinking', text: '', signature: JSON.stringify({ reasoning_details: details }) },
    ])
  })

  test('`<think>` in content is thinking for providers that use it, and text elsewhere', async () => {
    const frames = ['<thi', 'nk>\nhm', ' hm</', 'think>\n\n', 'an', 'swer'].map((content) => frame({ content }))
    expect((await read(frames, { quirks: { thinkTags: 'open' } })).reply.blocks).toEqual([
      { type: 'thinking', text: 'hm hm' },
      { type: 'text', text: 'answer' },
    ])
    expect(text((await read(frames)).reply)).toBe('<think>\nhm hm</think>\n\nanswer')
  })
})

describe('usage', () => {
  const of = async (...frames: object[]) =>
    (await read([frame({ content: 'answer' }), frame({}, 'stop'), ...frames])).reply.usage

  test('it is read from a last frame without choices', async () => {
    expect(await of({ choices: [], usage: usage(9, 4) })).toMatchObject({
      inputTokens: 9,
      outputTokens: 4,
      estimated: false,
    })
  })

  test('the last counts win; nulls and zeros are ignored', async () => {
    const zero = { choices: [], usage: usage(0, 0) }
    expect(
      await of(zero, { choices: [], usage: usage(9, 2) }, { choices: [], usage: usage(9, 4) }, zero),
    ).toMatchObject({
      inputTokens: 9,
      outputTokens: 4,
    })
    expect(await of({ choices: [], usage: usage(9, 4) }, { choices: [], usage: null })).toMatchObject({
      inputTokens: 9,
    })
  })

  test('it is found inside a choice and in `x_groq`', async () => {
    expect(await of({ choices: [{ index: 0, delta: {}, usage: usage(5, 1), finish_reason: 'stop' }] })).toMatchObject({
      inputTokens: 5,
    })
    expect(await of({ choices: [], x_groq: { usage: usage(6, 1) } })).toMatchObject({ inputTokens: 6 })
  })

  test.each([
    ['OpenAI', { prompt_tokens_details: { cached_tokens: 60 } }, 40, 60],
    ['DeepSeek', { prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 36 }, 36, 64],
    ['Moonshot', { cached_tokens: 10 }, 90, 10],
    ['nobody', { prompt_tokens_details: null }, 100, 0],
  ])('cached input is separated as %s counts it', async (_, details, input, cached) => {
    expect(await of({ choices: [], usage: usage(100, 5, details) })).toEqual({
      inputTokens: input,
      cacheReadTokens: cached,
      cacheWriteTokens: 0,
      outputTokens: 5,
      reasoningTokens: 0,
      estimated: false,
    })
  })

  test('reasoning is part of the output, even where the provider counts it separately (xAI)', async () => {
    const inside = usage(10, 50, { completion_tokens_details: { reasoning_tokens: 40 } })
    const beside = { ...usage(10, 5, { completion_tokens_details: { reasoning_tokens: 40 } }), total_tokens: 55 }
    expect(await of({ choices: [], usage: inside })).toMatchObject({ outputTokens: 50, reasoningTokens: 40 })
    expect(await of({ choices: [], usage: beside })).toMatchObject({ outputTokens: 45, reasoningTokens: 40 })
  })

  test('without usage it is estimated and marked so', async () => {
    const { usage: estimated } = (await read([frame({ content: 'twelve chars' }), frame({}, 'stop')])).reply
    expect(estimated).toEqual({
      inputTokens: 5,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 2,
      reasoningTokens: 0,
      estimated: true,
    })
  })
})

test('frames of any shape never throw and yield well-formed blocks', () => {
  const field = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('a', '', null, 0, 1, 'null', '{}'))
  const object = (...fields: string[]) =>
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record(Object.fromEntries(fields.map((name) => [name, field])), { requiredKeys: [] }),
      },
      { weight: 1, arbitrary: field },
    )
  const list = (item: fc.Arbitrary<unknown>) => fc.oneof(fc.array(item, { maxLength: 3 }), field)
  const fragment = fc.record({ id: field, index: field, function: object('name', 'arguments') }, { requiredKeys: [] })
  const part = fc.record(
    { type: fc.constantFrom('text', 'thinking'), text: field, thinking: list(object('text')) },
    { requiredKeys: [] },
  )
  const delta = fc.record(
    {
      content: fc.oneof(field, list(part)),
      reasoning: field,
      reasoning_details: list(object('text', 'signature', 'data')),
      tool_calls: list(fragment),
    },
    { requiredKeys: [] },
  )
  const choice = fc.record(
    { delta: fc.oneof(delta, field), message: fc.oneof(delta, field), finish_reason: field, usage: field },
    { requiredKeys: [] },
  )
  const anyFrame = fc.record(
    { object: field, model: field, usage: field, choices: list(choice), x_groq: field },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(
      fc.array(anyFrame),
      fc.constantFrom(undefined, 'open' as const, 'implied' as const),
      (frames, thinkTags) => {
        const assembler = assembleReply(request(), 'any', thinkTags ? { thinkTags } : {}, () => {})
        for (const each of frames) assembler.frame(each as object)
        for (const block of assembler.reply().blocks) {
          expect(block).toMatchObject(
            block.type === 'call'
              ? { callId: '', tool: expect.any(String), arguments: expect.any(String) }
              : { text: expect.any(String) },
          )
          if (block.type === 'text') expect(block.text).not.toBe('')
        }
      },
    ),
    { numRuns: 2_000 },
  )
})

describe('B1: content that other drivers read or refuse', () => {
  test('images are blocks', async () => {
    const image = (url: string) => ({ type: 'image_url', image_url: { url } })
    const { reply } = await read([
      frame({ content: 'Here:', images: [image('data:image/png;base64,aGk=')] }),
      frame({ content: [image('https://example.com/a.png')] }),
      frame({}, 'stop'),
    ])
    expect(reply.blocks).toEqual([
      { type: 'text', text: 'Here:' },
      { type: 'data', mediaType: 'image/png', data: 'aGk=' },
      { type: 'data', mediaType: 'image/png', url: 'https://example.com/a.png' },
    ])
  })

  test('the older form of a call is a call', async () => {
    const { reply } = await read([
      frame({ function_call: { name: 'add', arguments: '' } }),
      frame({ function_call: { arguments: '{"a":' } }),
      frame({ function_call: { arguments: '1}' } }, 'function_call'),
    ])
    expect(reply).toMatchObject({ finishReason: 'calls' })
    expect(calls(reply)).toEqual([['add', '{"a":1}']])
  })

  test.each([
    [
      'a call to the custom tool sh',
      { tool_calls: [{ index: 0, id: 'a', type: 'custom', custom: { name: 'sh', input: 'ls' } }] },
    ],
    ['audio', { audio: { id: 'a', data: 'aGk=' } }],
    ['an image', { images: [{ type: 'image_url', image_url: { url: 'blob:1' } }] }],
  ])('an answer of only %s is an error, not an empty answer', async (what, delta) => {
    const { error } = await askInVain(modelAt(await serve({ raw: sse([frame(delta), frame({}, 'stop')]) })))
    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining(what) })
  })

  test('the first of several answers in one stream counts, with a warning', async () => {
    const choice = (index: number, content: string, finish_reason: string | null = null) => ({
      choices: [{ index, delta: { content }, finish_reason }],
    })
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    const { reply } = await read([
      choice(0, 'he'),
      choice(1, 'bon'),
      choice(0, 'llo'),
      choice(1, 'jour', 'stop'),
      choice(0, '', 'length'),
    ])
    expect(reply).toMatchObject({ blocks: [{ type: 'text', text: 'hello' }], finishReason: 'length' })
    expect((await warned).message).toMatch('any gives several answers to one request, and only the first counts')
  })

  test('a name in two pieces under one id is one name', async () => {
    const call = (name: string, args = '') =>
      frame({ tool_calls: [{ index: 0, id: 'a', function: { name, arguments: args } }] })
    expect(calls((await read([call('get_'), call('weather'), call('', '{}'), frame({}, 'stop')])).reply)).toEqual([
      ['get_weather', '{}'],
    ])
  })

  test('two calls without arguments and ids in one frame are two', async () => {
    const fragment = { function: { name: 'now', arguments: '' } }
    expect(calls((await read([frame({ tool_calls: [fragment, fragment] }), frame({}, 'stop')])).reply)).toEqual([
      ['now', ''],
      ['now', ''],
    ])
  })
})

// How the driver reads a stream, event by event.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anthropicAt, ask, askInVain, namedEvents, request, serve } from '../asking.fixture.ts'
import { assembleMessage } from './reply.ts'

type Event = { readonly type: string; readonly [field: string]: unknown }

const start = (usage: object = { input_tokens: 5, output_tokens: 1 }): Event => ({
  type: 'message_start',
  message: { id: 'msg_1', model: 'm', content: [], usage },
})
const block = (index: number, content_block: object): Event => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, type: string, text: string): Event => {
  const field = { text_delta: 'text', thinking_delta: 'thinking', signature_delta: 'signature' }[type] ?? 'partial_json'
  return { type: 'content_block_delta', index, delta: { type, [field]: text } }
}
const stop = (index: number): Event => ({ type: 'content_block_stop', index })
const end = (stop_reason: string, usage: object = { output_tokens: 9 }): Event[] => [
  { type: 'message_delta', delta: { stop_reason }, usage },
  { type: 'message_stop' },
]
const read = async (...events: Event[]) => (await ask(anthropicAt(await serve({ raw: namedEvents(events) })))).reply
const readInVain = async (...events: Event[]) =>
  (await askInVain(anthropicAt(await serve({ raw: namedEvents(events) })))).error

const text = [block(0, { type: 'text', text: '' }), delta(0, 'text_delta', 'a'), stop(0)]

describe('the end', () => {
  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['tool_use', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['pause_turn', 'length'],
    ['refusal', 'refusal'],
    ['something_new', 'length'],
  ])('%s is %s', async (reason, finishReason) => {
    expect((await read(start(), ...text, ...end(reason))).finishReason).toBe(finishReason)
  })

  test('calls decide the finish reason, not the provider’s reason', async () => {
    const call = block(0, { type: 'tool_use', id: 't', name: 'add', input: {} })
    expect((await read(start(), call, stop(0), ...end('end_turn'))).finishReason).toBe('calls')
  })

  test('a connection that ends after the reason has given the whole answer', async () => {
    expect((await read(start(), ...text, end('end_turn')[0]!)).blocks).toEqual([{ type: 'text', text: 'a' }])
  })

  test.each([
    ['overloaded_error', 'overloaded', true],
    ['rate_limit_error', 'rate_limited', true],
    ['api_error', 'provider_error', true],
    ['timeout_error', 'provider_error', true],
    ['invalid_request_error', 'invalid_request', false],
    ['authentication_error', 'auth', false],
    ['permission_error', 'auth', false],
    ['billing_error', 'rate_limited', false],
  ])('an error event of type %s is %s, with the partial answer', async (type, code, retryable) => {
    const error = await readInVain(start(), ...text, { type: 'error', error: { type, message: 'some words' } })
    expect(error).toMatchObject({ code, retryable, partial: { blocks: [{ type: 'text', text: 'a' }] } })
  })

  test('a message that was not streamed is read as one', async () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'text', text: 'hello' },
      { type: 'tool_use', id: 't', name: 'add', input: { a: 1 } },
    ]
    const usage = { input_tokens: 5, output_tokens: 9 }
    const body = { type: 'message', id: 'msg_1', model: 'm', content, stop_reason: 'tool_use', usage }
    const { reply } = await ask(anthropicAt(await serve({ body })))
    expect(reply).toMatchObject({
      model: 'm',
      finishReason: 'calls',
      blocks: [
        { type: 'thinking', text: 'hm', signature: 's' },
        { type: 'thinking', text: '', redacted: 'x' },
        { type: 'text', text: 'hello' },
        { type: 'call', callId: '', tool: 'add', arguments: '{"a":1}' },
      ],
      usage: { inputTokens: 5, outputTokens: 9, estimated: false },
    })
  })
})

describe('blocks', () => {
  test('thinking without text is kept for its signature and dropped without one', async () => {
    const empty = { type: 'thinking', thinking: '', signature: '' }
    const reply = await read(
      start(),
      block(0, empty),
      delta(0, 'signature_delta', 'only'),
      stop(0),
      block(1, empty),
      stop(1),
      block(2, { type: 'redacted_thinking', data: 'x' }),
      stop(2),
      block(3, { type: 'text', text: '' }),
      delta(3, 'text_delta', 'a'),
      ...end('end_turn'),
    )
    expect(reply.blocks).toEqual([
      { type: 'thinking', text: '', signature: 'only' },
      { type: 'thinking', text: '', redacted: 'x' },
      { type: 'text', text: 'a' },
    ])
  })

  test('parallel calls with interleaved fragments are separated by index', async () => {
    const reply = await read(
      start(),
      block(0, { type: 'tool_use', id: 't1', name: 'add', input: {} }),
      block(1, { type: 'tool_use', id: 't2', name: 'sub', input: {} }),
      delta(1, 'input_json_delta', '{"b"'),
      delta(0, 'input_json_delta', '{"a":1}'),
      delta(1, 'input_json_delta', ':2}'),
      ...end('tool_use'),
    )
    expect(reply.blocks).toMatchObject([
      { tool: 'add', arguments: '{"a":1}' },
      { tool: 'sub', arguments: '{"b":2}' },
    ])
  })

  test('a reused index starts another call', async () => {
    const reply = await read(
      start(),
      block(0, { type: 'tool_use', id: 't1', name: 'add', input: {} }),
      delta(0, 'input_json_delta', '{"a":1}'),
      block(0, { type: 'tool_use', id: 't2', name: 'add', input: {} }),
      delta(0, 'input_json_delta', '{"b":2}'),
      ...end('tool_use'),
    )
    expect(reply.blocks).toMatchObject([{ arguments: '{"a":1}' }, { arguments: '{"b":2}' }])
  })

  test('an input that comes with the start of a call counts when no fragment follows', async () => {
    const whole = block(0, { type: 'tool_use', id: 't1', name: 'add', input: { a: 1 } })
    expect((await read(start(), whole, stop(0), ...end('tool_use'))).blocks).toMatchObject([{ arguments: '{"a":1}' }])
    const streamed = [whole, delta(0, 'input_json_delta', '{"b":2}'), stop(0)]
    expect((await read(start(), ...streamed, ...end('tool_use'))).blocks).toMatchObject([{ arguments: '{"b":2}' }])
  })

  test('fragments whose start was lost are kept, as a call without a name', async () => {
    const reply = await read(
      start(),
      delta(0, 'thinking_delta', 'hm'),
      delta(1, 'text_delta', 'a'),
      delta(2, 'input_json_delta', '{}'),
      ...end('end_turn'),
    )
    expect(reply.blocks).toEqual([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'a' },
      { type: 'call', callId: '', tool: '', arguments: '{}' },
    ])
  })

  test('too many calls end the answer', async () => {
    const raw = namedEvents(Array.from({ length: 9 }, (_, i) => block(i, { type: 'tool_use', id: `t${i}`, name: 'a' })))
    const { error } = await askInVain(anthropicAt(await serve({ raw }), { limits: { calls: 8 } }))
    expect(error).toMatchObject({ code: 'provider_error', message: expect.stringContaining('8 tool calls') })
  })
})

describe('usage', () => {
  test('cached input is counted outside the input; final usage wins, except for missing counts', async () => {
    const first = { input_tokens: 5, cache_read_input_tokens: 60, cache_creation_input_tokens: 10, output_tokens: 1 }
    const last = {
      input_tokens: 7,
      cache_read_input_tokens: null,
      output_tokens: 50,
      output_tokens_details: { thinking_tokens: 20 },
    }
    expect((await read(start(first), ...text, ...end('end_turn', last))).usage).toEqual({
      inputTokens: 7,
      cacheReadTokens: 60,
      cacheWriteTokens: 10,
      outputTokens: 50,
      reasoningTokens: 20,
      estimated: false,
    })
  })

  test('of a cut answer has the reported input and an estimated output', async () => {
    const error = await readInVain(
      start({ input_tokens: 500, output_tokens: 1 }),
      block(0, { type: 'text', text: 'one two three' }),
    )
    expect(error.partial?.usage).toMatchObject({ inputTokens: 500, outputTokens: 3, estimated: true })
  })

  test('that was not reported is estimated', async () => {
    expect((await read(start({}), ...text, ...end('end_turn', {}))).usage.estimated).toBe(true)
  })
})

test('events of any shape never throw and yield well-formed blocks', () => {
  const content = fc.record({
    type: fc.constantFrom('text', 'thinking', 'redacted_thinking', 'tool_use', 'server_tool_use', 'fallback'),
    id: fc.anything(),
    name: fc.anything(),
    text: fc.anything(),
    thinking: fc.anything(),
    input: fc.anything(),
    data: fc.anything(),
    to: fc.anything(),
  })
  const fragment = fc.record({
    type: fc.constantFrom('text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta'),
    text: fc.oneof(fc.string(), fc.anything()),
    thinking: fc.anything(),
    signature: fc.anything(),
    partial_json: fc.oneof(fc.string(), fc.anything()),
  })
  const event = fc.record(
    {
      type: fc.constantFrom(
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'message_start',
        'message_delta',
        'ping',
      ),
      index: fc.oneof(fc.nat(2), fc.anything()),
      content_block: fc.oneof(content, fc.anything()),
      delta: fc.oneof(fragment, fc.anything()),
      message: fc.oneof(fc.record({ content: fc.array(fc.oneof(content, fc.anything())) }), fc.anything()),
      usage: fc.anything(),
    },
    { requiredKeys: ['type'] },
  )
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      const assembler = assembleMessage({ request: request(), model: 'any', onDelta: () => {} })
      for (const it of [...events, { type: 'message_stop' }]) assembler.frame(it)
      const wrong = assembler.reply().blocks.filter((it) => {
        if (it.type === 'call') return typeof it.tool !== 'string' || typeof it.arguments !== 'string'
        return it.type === 'text' && it.text === ''
      })
      expect(wrong).toEqual([])
    }),
    { numRuns: 2_000 },
  )
})

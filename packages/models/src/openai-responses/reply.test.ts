// How the driver reads a stream, event by event.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ask, askInVain, namedEvents, request, responsesAt, serve } from '../asking.fixture.ts'
import { assembleResponse } from './reply.ts'

type Event = { readonly type: string; readonly [field: string]: unknown }

const completed = (response: object = {}): Event => ({
  type: 'response.completed',
  response: { status: 'completed', ...response },
})
const read = async (...events: Event[]) => (await ask(responsesAt(await serve({ raw: namedEvents(events) })))).reply
const readInVain = async (...events: Event[]) =>
  (await askInVain(responsesAt(await serve({ raw: namedEvents(events) })))).error

const textDelta = (delta: string, output_index = 0): Event => ({
  type: 'response.output_text.delta',
  output_index,
  content_index: 0,
  delta,
})
const callAdded = (output_index: number, call_id: string): Event => ({
  type: 'response.output_item.added',
  output_index,
  item: { type: 'function_call', call_id, name: 'add', arguments: '' },
})
const callDelta = (output_index: number, delta: string): Event => ({
  type: 'response.function_call_arguments.delta',
  output_index,
  delta,
})

describe('the end', () => {
  test.each([
    [{ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }, 'length'],
    [{ status: 'incomplete', incomplete_details: { reason: 'content_filter' } }, 'filtered'],
  ])('%j is %s', async (response, finishReason) => {
    const reply = await read(textDelta('a'), { type: 'response.incomplete', response })
    expect(reply).toMatchObject({ finishReason, blocks: [{ type: 'text', text: 'a' }] })
  })

  test('B1: content that only the final output holds is added to the streamed content', async () => {
    const output = [
      {
        type: 'message',
        content: [
          { type: 'output_text', text: 'hello' },
          { type: 'output_text', text: ' there' },
        ],
      },
      { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a":1}' },
      { type: 'function_call', call_id: 'c2', name: 'sub', arguments: '{}' },
    ]
    const reply = await read(textDelta('hello'), callAdded(1, 'c1'), callDelta(1, '{"a"'), completed({ output }))
    expect(reply.finishReason).toBe('calls')
    expect(reply.blocks).toEqual([
      { type: 'text', text: 'hello' },
      { type: 'call', callId: '', tool: 'add', arguments: '{"a":1}' },
      { type: 'call', callId: '', tool: 'sub', arguments: '{}' },
      { type: 'text', text: ' there' },
    ])
  })

  test.each([
    [{ status: 'queued', output: [] }, 'stream_cut'],
    [{ status: 'failed', error: { message: 'no' } }, 'provider_error'],
  ])('B1: a document that is not a finished response is an error: %j', async (response, code) => {
    const server = await serve({ body: { object: 'response', ...response } })
    expect((await askInVain(responsesAt(server))).error.code).toBe(code)
  })

  test('B1: an incomplete response is cut, whatever its reason', async () => {
    for (const reason of ['something_new', undefined]) {
      const response = { status: 'incomplete', incomplete_details: reason === undefined ? null : { reason } }
      expect(await read(textDelta('a'), { type: 'response.incomplete', response })).toMatchObject({
        finishReason: 'length',
      })
    }
  })

  test('a refusal is text, with its own finish reason', async () => {
    const reply = await read(
      { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'No' },
      { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: '.' },
      completed(),
    )
    expect(reply).toMatchObject({ finishReason: 'refusal', blocks: [{ type: 'text', text: 'No.' }] })
  })

  test.each([
    [
      { type: 'response.failed', response: { status: 'failed', error: { code: 'server_error', message: 'x' } } },
      'provider_error',
    ],
    [{ type: 'response.failed', response: { error: { code: 'rate_limit_exceeded', message: 'x' } } }, 'rate_limited'],
    [{ type: 'response.failed', response: null }, 'provider_error'],
    [{ type: 'error', code: 'context_length_exceeded', message: 'x' }, 'context_overflow'],
    [{ type: 'error', error: { type: 'invalid_request_error', message: 'x' } }, 'invalid_request'],
  ])('%j is reported with the partial answer', async (event, code) => {
    const error = await readInVain(textDelta('a'), event)
    expect(error).toMatchObject({ code, partial: { blocks: [{ type: 'text', text: 'a' }], finishReason: 'error' } })
  })

  test('a response that was not streamed is read as one', async () => {
    const output = [
      { type: 'reasoning', id: 'rs', summary: [{ text: 'a' }, { text: 'b' }], encrypted_content: 'x' },
      { type: 'message', content: [{ type: 'output_text', text: 'hello' }] },
      { type: 'function_call', call_id: 'c', name: 'add', arguments: '{"a":1}' },
    ]
    const response = { object: 'response', status: 'completed', model: 'm', output }
    const { reply } = await ask(responsesAt(await serve({ body: response })))
    expect(reply).toMatchObject({
      model: 'm',
      finishReason: 'calls',
      blocks: [
        { type: 'thinking', text: 'a\n\nb', signature: 'rs', redacted: 'x' },
        { type: 'text', text: 'hello' },
        { type: 'call', callId: '', tool: 'add', arguments: '{"a":1}' },
      ],
    })
  })
})

describe('calls', () => {
  test('with interleaved fragments are separated by item index', async () => {
    const reply = await read(
      callAdded(0, 'c1'),
      callAdded(1, 'c2'),
      callDelta(1, '{"b"'),
      callDelta(0, '{"a"'),
      callDelta(1, ':2}'),
      callDelta(0, ':1}'),
      completed(),
    )
    expect(reply.blocks).toMatchObject([{ arguments: '{"a":1}' }, { arguments: '{"b":2}' }])
  })

  test('that share one index are separated by id', async () => {
    const reply = await read(
      callAdded(0, 'c1'),
      callDelta(0, '{"a":1}'),
      callAdded(0, 'c2'),
      callDelta(0, '{"b":2}'),
      completed(),
    )
    expect(reply.blocks).toMatchObject([{ arguments: '{"a":1}' }, { arguments: '{"b":2}' }])
  })

  test('without fragments get their arguments from the final item, if it has any', async () => {
    const done = (output_index: number, call_id: string, args: string): Event => ({
      type: 'response.output_item.done',
      output_index,
      item: { type: 'function_call', call_id, name: 'add', arguments: args },
    })
    const reply = await read(callAdded(0, 'c1'), done(0, 'c1', '{"a":1}'), done(1, 'c2', ''), completed())
    expect(reply.blocks).toMatchObject([{ arguments: '{"a":1}' }, { arguments: '' }])
  })

  test('above the limit end the answer', async () => {
    const raw = namedEvents(Array.from({ length: 9 }, (_, i) => callAdded(i, `c${i}`)))
    const { error } = await askInVain(responsesAt(await serve({ raw }), { limits: { calls: 8 } }))
    expect(error).toMatchObject({ code: 'provider_error', message: expect.stringContaining('8 tool calls') })
  })
})

test('an index of parts that counts fragments, as vLLM has it, does not cut the text or the reasoning', async () => {
  const part = (type: string, content_index: number, delta: string): Event => ({
    type: `response.${type}.delta`,
    output_index: type === 'reasoning_text' ? 0 : 1,
    content_index,
    delta,
  })
  const done = { type: 'response.output_text.done', output_index: 1, content_index: 3, text: 'one two' }
  const reply = await read(
    part('reasoning_text', 0, 'h'),
    part('reasoning_text', 1, 'm'),
    part('output_text', 1, 'one'),
    part('output_text', 2, ' two'),
    done,
    completed(),
  )
  expect(reply.blocks).toEqual([
    { type: 'thinking', text: 'hm' },
    { type: 'text', text: 'one two' },
  ])
})

test('each part of a message is a block', async () => {
  const begins: Event = { type: 'response.content_part.added', output_index: 0 }
  const done: Event = { type: 'response.output_text.done', output_index: 0, text: 'b' }
  const content = [{ text: 'a' }, { text: 'b' }, { text: 'c' }]
  const whole: Event = { type: 'response.output_item.done', output_index: 1, item: { type: 'message', content } }
  const reply = await read(begins, textDelta('a'), begins, done, whole, completed())
  expect(reply.blocks.map((it) => 'text' in it && it.text)).toEqual(['a', 'b', 'a', 'b', 'c'])
})

test('lost text fragments are restored from the final text', async () => {
  const done = (text: string): Event => ({ type: 'response.output_text.done', output_index: 0, content_index: 0, text })
  expect((await read(textDelta('one'), done('one two'), completed())).blocks).toEqual([
    { type: 'text', text: 'one two' },
  ])
})

test('counts of zero are ignored', async () => {
  const usage = { input_tokens: 0, output_tokens: 0 }
  expect((await read(textDelta('one two'), completed({ usage }))).usage).toMatchObject({ estimated: true })
})

test('cached input is part of the input, reasoning of the output', async () => {
  const usage = {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
    output_tokens: 50,
    output_tokens_details: { reasoning_tokens: 20 },
    total_tokens: 150,
  }
  expect((await read(textDelta('a'), completed({ usage }))).usage).toEqual({
    inputTokens: 30,
    cacheReadTokens: 60,
    cacheWriteTokens: 10,
    outputTokens: 50,
    reasoningTokens: 20,
    estimated: false,
  })
})

test('events of any shape never throw and yield well-formed blocks', () => {
  const kind = fc.constantFrom(
    'response.output_text.delta',
    'response.output_item.added',
    'response.output_item.done',
    'response.function_call_arguments.delta',
    'response.function_call_arguments.done',
    'response.reasoning_summary_text.delta',
    'response.output_text.done',
    'response.refusal.done',
    'response.content_part.added',
    'response.created',
    'error',
  )
  const item = fc.record({
    type: fc.constantFrom('message', 'reasoning', 'function_call', 'image_generation_call', 'web_search_call'),
    name: fc.anything(),
    arguments: fc.anything(),
    summary: fc.anything(),
    content: fc.oneof(fc.anything(), fc.array(fc.oneof(fc.constant(null), fc.record({ text: fc.anything() })))),
    encrypted_content: fc.anything(),
    result: fc.anything(),
  })
  const event = fc.record(
    {
      type: kind,
      output_index: fc.oneof(fc.nat(2), fc.anything()),
      delta: fc.oneof(fc.string(), fc.anything()),
      text: fc.anything(),
      item: fc.oneof(item, fc.anything()),
      response: fc.anything(),
    },
    { requiredKeys: ['type'] },
  )
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      const assembler = assembleResponse({ request: request(), model: 'any', onDelta: () => {} })
      for (const it of [...events, completed()]) assembler.frame(it)
      const wrong = assembler.reply().blocks.filter((it) => {
        if (it.type === 'call') return typeof it.tool !== 'string' || typeof it.arguments !== 'string'
        return it.type === 'text' && it.text === ''
      })
      expect(wrong).toEqual([])
    }),
    { numRuns: 2_000 },
  )
})

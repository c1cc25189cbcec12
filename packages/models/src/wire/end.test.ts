// When an answer is whole, and which part of it counts.
import { describe, expect, test } from 'vitest'
import {
  anthropicAt,
  ask,
  askInVain,
  calls,
  frame,
  modelAt,
  namedEvents,
  responsesAt,
  serve,
  sse,
  text,
} from '../asking.fixture.ts'
import { withFallbacks } from '../index.ts'
import { type ServiceAnswer, service } from '../service.fixture.ts'

const done = 'data: [DONE]\n\n'
const halfMessage = namedEvents([
  { type: 'message_start', message: { id: '1', model: 'm', usage: { input_tokens: 3, output_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'half' } },
])
const halfResponse = namedEvents([
  { type: 'response.created', response: { id: '1', model: 'm' } },
  { type: 'response.output_text.delta', output_index: 0, item_id: 'i', delta: 'half' },
])
const call = (piece: string) =>
  frame({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: piece } }] })

describe('`[DONE]` without a finish reason', () => {
  test.each([
    ['nothing, of chat completions', modelAt, done, undefined],
    ['nothing, of messages', anthropicAt, done, undefined],
    ['nothing, of responses', responsesAt, done, undefined],
    ['half a call', modelAt, sse([call('{"a":')]), undefined],
    ['half a message of Anthropic', anthropicAt, halfMessage + done, 'half'],
    ['half a response', responsesAt, halfResponse + done, 'half'],
  ] as const)('after %s is not an end: the answer was cut', async (_, at, raw, kept) => {
    const { error } = await askInVain(at(await serve({ raw })))
    expect(error).toMatchObject({ code: 'stream_cut', retryable: true })
    if (kept !== undefined) expect(text(error.partial!)).toBe(kept)
  })

  test('after nothing at all is retried', async () => {
    const server = await serve({ raw: done }, { text: 'hello' })
    expect(text((await ask(withFallbacks(modelAt(server), { retry: { baseMs: 1 } }))).reply)).toBe('hello')
  })

  test('after a whole call is an end of chat completions', async () => {
    const { reply } = await ask(modelAt(await serve({ raw: sse([call('{"a":'), call('1}')]) })))
    expect(calls(reply)).toEqual([['f', '{"a":1}']])
  })
})

describe('data after the end', () => {
  const whole = [frame({ content: 'whole' }), frame({}, 'stop')]
  const late = { error: { message: 'late' } }
  const event = (it: object) => `data: ${JSON.stringify(it)}\n\n`
  test.each([
    ['an error after `[DONE]`', sse(whole) + event(late)],
    ['an error after the reason', sse([...whole, late])],
    ['text after `[DONE]`', sse(whole) + event(frame({ content: ' and more' }))],
    ['broken JSON after `[DONE]`', `${sse(whole)}data: {"a\n\n`],
    ['a call after `[DONE]`', sse(whole) + event(call('{}'))],
  ])('changes nothing: %s', async (_, raw) => {
    const { reply } = await ask(modelAt(await serve({ raw })))
    expect(reply).toMatchObject({ blocks: [{ type: 'text', text: 'whole' }], finishReason: 'stop' })
  })

  test('changes nothing in a message of Anthropic that has its reason', async () => {
    const end = namedEvents([
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4 } },
      { type: 'error', error: { type: 'overloaded_error', message: 'late' } },
    ])
    const { reply } = await ask(anthropicAt(await serve({ raw: halfMessage + end })))
    expect(reply).toMatchObject({ finishReason: 'stop', usage: { outputTokens: 4 } })
  })
})

describe('a document', () => {
  const completion = { choices: [{ message: { content: 'hello' }, finish_reason: 'stop' }] }
  const slowly = (...parts: string[]): ServiceAnswer => ({ parts, everyMs: 60 })

  test.each([['\n'], [' \r\n'], ['\uFEFF\n']])('is read even when %j precedes it separately', async (before) => {
    const server = await service(() => slowly(before, '\n', JSON.stringify(completion)))
    expect(text((await ask(modelAt(server))).reply)).toBe('hello')
  })

  test('that arrives slowly is not idle as long as data arrives', async () => {
    const json = JSON.stringify(completion)
    const parts = Array.from({ length: 8 }, (_, n) => json.slice((n * json.length) / 8, ((n + 1) * json.length) / 8))
    const server = await service(() => slowly(...parts))
    const { reply } = await ask(modelAt(server, { timeouts: { idleMs: 300 } }))
    expect(text(reply)).toBe('hello')
  })

  test('white space alone is not an answer', async () => {
    const server = await service(() => slowly('\n', '\n'))
    expect((await askInVain(modelAt(server))).error.code).toBe('stream_cut')
  })
})

describe('names from outside', () => {
  const long = 'T'.repeat(2_000_000)
  test('of tools and models are kept up to 256 characters', async () => {
    const raw = sse([
      { model: long, choices: [{ delta: { tool_calls: [{ index: 0, id: 'a', function: { name: long } }] } }] },
      frame({}, 'tool_calls'),
    ])
    const { reply, deltas } = await ask(modelAt(await serve({ raw })))
    expect(calls(reply)).toEqual([['T'.repeat(256), '']])
    expect(reply.model).toHaveLength(256)
    expect(JSON.stringify(deltas).length).toBeLessThan(1_000)
  })

  test('are clipped in the other formats too', async () => {
    const message = namedEvents([
      { type: 'message_start', message: { id: '1', model: long } },
      { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'a', name: long, input: {} } },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
      { type: 'message_stop' },
    ])
    const response = namedEvents([
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'function_call', call_id: 'a', name: long },
      },
      { type: 'response.completed', response: { model: long } },
    ])
    for (const [at, raw] of [
      [anthropicAt, message],
      [responsesAt, response],
    ] as const) {
      const { reply } = await ask(at(await serve({ raw })))
      expect(calls(reply)).toEqual([['T'.repeat(256), '']])
      expect(reply.model).toHaveLength(256)
    }
  })
})

// The formats other than chat completions, read by the providers' official clients.
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Reply, type ReplyFunction, type ScriptedModel, type ScriptedRequest, scriptedModel } from '../index.ts'

async function serve(...replies: (Reply | ReplyFunction<ScriptedRequest>)[]): Promise<ScriptedModel> {
  const server = await scriptedModel({ scripts: { '*': replies } })
  onTestFinished(() => server.close())
  return server
}

const full: Reply = {
  thinking: 'hm well',
  signature: 'proof',
  text: 'hello there',
  calls: [
    { name: 'add', arguments: { a: 1 }, id: 'mine' },
    { name: 'now', arguments: '' },
  ],
  usage: {
    prompt_tokens: 100,
    prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
    completion_tokens: 50,
    completion_tokens_details: { reasoning_tokens: 20 },
  },
}

describe('Anthropic’s messages', () => {
  const client = (server: ScriptedModel) =>
    new Anthropic({ apiKey: 'any', baseURL: server.url.replace('/v1', ''), maxRetries: 0 })
  const params = { model: 'any', max_tokens: 9, messages: [{ role: 'user' as const, content: 'hi' }] }

  const message = {
    role: 'assistant',
    model: 'any',
    stop_reason: 'tool_use',
    content: [
      { type: 'thinking', thinking: 'hm well', signature: 'proof' },
      { type: 'text', text: 'hello there' },
      { type: 'tool_use', id: 'mine', name: 'add', input: { a: 1 } },
      { type: 'tool_use', id: 'call_reply-0_1', name: 'now', input: {} },
    ],
    usage: {
      input_tokens: 30,
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 10,
      output_tokens: 50,
      output_tokens_details: { thinking_tokens: 20 },
    },
  }

  test('a script is streamed as text, thinking, calls and usage', async () => {
    const stream = client(await serve(full)).messages.stream(params)
    const pieces: string[] = []
    stream.on('text', (text) => pieces.push(text))
    expect(await stream.finalMessage()).toMatchObject(message)
    expect(pieces).toEqual(['hello', ' there'])
  })

  test('a request without `stream` gets one message', async () => {
    expect(await client(await serve(full)).messages.create(params)).toMatchObject(message)
  })

  test.each([
    [{ text: 'a' }, 'end_turn'],
    [{ text: 'a', finishReason: 'length' }, 'max_tokens'],
    [{ text: 'a', finishReason: 'refusal' }, 'refusal'],
  ])('%j ends with %s', async (reply, reason) => {
    expect(
      (
        await client(await serve(reply))
          .messages.stream(params)
          .finalMessage()
      ).stop_reason,
    ).toBe(reason)
  })

  test('an error is thrown with its type, even in the middle of a stream', async () => {
    const error = { type: 'overloaded_error', message: 'Overloaded' }
    const server = await serve({ text: 'a', error }, { status: 529, body: { type: 'error', error } })
    await expect(client(server).messages.stream(params).finalMessage()).rejects.toMatchObject({ type: error.type })
    await expect(client(server).messages.create(params)).rejects.toMatchObject({ type: error.type, status: 529 })
  })
})

describe('OpenAI’s responses', () => {
  const client = (server: ScriptedModel) => new OpenAI({ apiKey: 'any', baseURL: server.url, maxRetries: 0 })
  const params = { model: 'any', input: 'hi', include: ['reasoning.encrypted_content' as const] }

  const response = {
    model: 'any',
    status: 'completed',
    output_text: 'hello there',
    output: [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm well' }], encrypted_content: 'proof' },
      { type: 'message', content: [{ type: 'output_text', text: 'hello there' }] },
      { type: 'function_call', call_id: 'mine', name: 'add', arguments: '{"a":1}' },
      { type: 'function_call', name: 'now', arguments: '' },
    ],
    usage: {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60 },
      output_tokens: 50,
      output_tokens_details: { reasoning_tokens: 20 },
      total_tokens: 150,
    },
  }

  test('a script is streamed as text, reasoning, calls and usage', async () => {
    const stream = client(await serve(full)).responses.stream(params)
    const pieces: string[] = []
    stream.on('response.output_text.delta', ({ delta }) => pieces.push(delta))
    expect(await stream.finalResponse()).toMatchObject(response)
    expect(pieces).toEqual(['hello', ' there'])
  })

  test('a request without `stream` gets one response', async () => {
    expect(await client(await serve(full)).responses.create(params)).toMatchObject(response)
  })

  test('reasoning is encrypted only when requested', async () => {
    const { output } = await client(await serve(full)).responses.create({ model: 'any', input: 'hi' })
    expect(output[0]).not.toHaveProperty('encrypted_content')
  })

  test.each([
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ])('the reason %s is an incomplete response', async (finishReason, reason) => {
    const server = await serve({ text: 'a', finishReason })
    const whole = await client(server).responses.stream(params).finalResponse()
    expect(whole).toMatchObject({ status: 'incomplete', incomplete_details: { reason } })
  })

  test('an error in the middle of a stream is thrown', async () => {
    const server = await serve({ text: 'a', error: { code: 'server_is_overloaded', message: 'Busy' } })
    await expect(client(server).responses.stream(params).finalResponse()).rejects.toThrow(/Busy/)
  })
})

test('a script reads the conversation and the tools of every format in the same form', async () => {
  const server = await scriptedModel({ scripts: { '*': { always: { text: 'ok' } } } })
  onTestFinished(() => server.close())
  const post = (path: string, body: object) =>
    fetch(`${server.url}${path}`, { method: 'POST', body: JSON.stringify({ model: 'any', ...body }) })

  const call = { id: 'c1', function: { name: 'add', arguments: '{"a":1}' } }
  await post('/chat/completions', {
    messages: [
      { role: 'system', content: 'Be terse.' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: '', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: '2' },
    ],
    tools: [{ function: { name: 'add', parameters: {} } }],
  })
  await post('/messages', {
    system: [{ type: 'text', text: 'Be terse.' }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'add', input: { a: 1 } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: '2' }] }] },
    ],
    tools: [{ name: 'add', input_schema: {} }],
  })
  await post('/responses', {
    instructions: 'Be terse.',
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      { type: 'reasoning', id: 'rs', summary: [] },
      { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'c1', output: '2' },
    ],
    tools: [{ type: 'function', name: 'add', parameters: {} }],
  })

  const [chat, ...others] = server.requests.map(({ messages, tools }) => ({ messages, tools }))
  for (const other of others) expect(other).toEqual(chat)
})

test('faults are the same in every format', async () => {
  for (const path of ['/messages', '/responses']) {
    const server = await serve({ text: 'one two', cutAfterChunks: 2 }, { text: 'one', finishReason: null, done: false })
    const post = () => fetch(`${server.url}${path}`, { method: 'POST', body: '{"model":"any","stream":true}' })
    await expect(post().then((it) => it.text())).rejects.toThrow('terminated')
    const body = await (await post()).text()
    expect(body).not.toMatch(/message_(delta|stop)|response\.completed/)
  }
})

// Every known oddity of a provider's format has a stream here; a test compares this file with the list of oddities.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { memory } from '@oxbow/backends'
import { agent, createEngine, type Message, type ModelReply, tool } from '@oxbow/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { candidate, googleAt, googleEvents, play } from '../ai-sdk/ai-sdk.fixture.ts'
import {
  anthropicAt,
  ask,
  askInVain,
  calls,
  frame,
  modelAt,
  namedEvents,
  read,
  serve,
  sse,
  text,
  thinking,
  userMessage,
} from '../asking.fixture.ts'
import { aiSdk } from '../index.ts'
import { providers } from './providers.ts'

const quirksOf = (provider: string) => {
  const row = providers[provider]
  return row?.wire === 'chat' ? { quirks: row.quirks ?? {} } : {}
}
const call = (over: object = {}) => ({
  index: 0,
  id: 'c1',
  type: 'function',
  function: { name: 'weather', arguments: '{"city":"Bern"}' },
  ...over,
})
const weather = { name: 'weather', description: '', input: { type: 'object' } }
const bern: [string, string] = ['weather', '{"city":"Bern"}']
const shows = (reply: ModelReply) => ({ text: text(reply), thinking: thinking(reply), calls: calls(reply) })
const usage = { prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 }
const events = (list: readonly object[]): string => namedEvents(list as { type: string }[])

/** Keyed by the beginning of a row: its provider and the first words of the oddity. */
const rows: Readonly<Record<string, () => Promise<void>>> = {
  'MiniMax | the last frame is': async () => {
    const whole = {
      object: 'chat.completion',
      choices: [
        { index: 0, finish_reason: 'tool_calls', message: { content: '<think>hm</think>Hello', tool_calls: [call()] } },
      ],
      usage,
    }
    const { reply } = await read(
      [frame({ content: '<think>hm</think>Hel' }), frame({ content: 'lo' }), frame({ tool_calls: [call()] }), whole],
      quirksOf('minimax'),
    )
    expect(shows(reply)).toEqual({ text: 'Hello', thinking: 'hm', calls: [bern] })
  },
  'MiniMax | a frame with `delta: null`': async () => {
    const { reply } = await read(
      [
        { choices: [{ index: 0, delta: null }] },
        frame({ role: '', content: 'Hello' }),
        frame({}, 'stop'),
        { choices: [], usage },
      ],
      quirksOf('minimax'),
    )
    expect(shows(reply)).toEqual({ text: 'Hello', thinking: '', calls: [] })
    expect(reply.usage).toMatchObject({ inputTokens: 20, outputTokens: 8, estimated: false })
  },
  'MiniMax, Qwen, local models | ': async () => {
    const split = ['<thi', 'nk>h', 'm</', 'think', '>Hel', 'lo'].map((content) => frame({ content }))
    for (const provider of ['minimax', 'vllm', 'ollama', 'lmstudio', 'llamacpp']) {
      const { reply } = await read([...split, frame({}, 'stop')], quirksOf(provider))
      expect(shows(reply)).toEqual({ text: 'Hello', thinking: 'hm', calls: [] })
    }
    const closing = [frame({ content: 'hm</th' }), frame({ content: 'ink>Hello' }), frame({}, 'stop')]
    const { reply } = await ask(
      modelAt(await serve({ raw: sse(closing) }), { quirks: { thinkTags: 'implied' } }),
      {},
      { retyped: true },
    )
    expect(shows(reply)).toEqual({ text: 'Hello', thinking: 'hm', calls: [] })
    // Off unless a provider needs it.
    expect(text((await read([...split, frame({}, 'stop')])).reply)).toBe('<think>hm</think>Hello')
  },
  // Which models get it back is tested in presets.test.ts.
  'DeepSeek, Qwen, GLM, Kimi | reasoning in': async () => {
    for (const delta of [
      { reasoning_content: 'hm' },
      { reasoning: 'hm' },
      { reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] },
      { reasoning: 'hm', reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] },
    ]) {
      const { reply } = await read([frame(delta), frame({ content: 'Hello' }), frame({}, 'stop')])
      expect(shows(reply)).toEqual({ text: 'Hello', thinking: 'hm', calls: [] })
    }
  },
  'Volcengine Ark / Doubao | ': async () => {
    const frames = [
      frame({ content: '', reasoning_content: 'hm' }),
      frame({ content: 'Hello' }),
      frame({ content: '' }, 'stop'),
    ]
    const { reply } = await read(
      [...frames.map((it) => ({ ...it, usage: null })), { choices: [], usage }],
      quirksOf('ark'),
    )
    expect(reply.blocks).toEqual([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'Hello' },
    ])
    expect(reply.usage).toMatchObject({ inputTokens: 20, outputTokens: 8, estimated: false })
  },
  'DashScope (native) | ': async () => {
    const native = { output: { text: 'Hel', finish_reason: 'null' }, usage: {}, request_id: 'r' }
    const server = await serve({ raw: `id:1\nevent:result\ndata:${JSON.stringify(native)}\n\n` })
    const { error } = await askInVain(modelAt(server, quirksOf('dashscope')))
    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('compatible-mode/v1') })
  },
  'Ollama (old) | ': async () => {
    const bare = (city: string) => ({ function: { name: 'weather', arguments: { city } } })
    const { reply } = await read([frame({ tool_calls: [bare('Bern'), bare('Chur')] }, 'stop')], quirksOf('ollama'))
    expect(calls(reply)).toEqual([bern, ['weather', '{"city":"Chur"}']])
  },
  'gateways | `index` 0 reused': async () => {
    const chur = call({ id: 'c2', function: { name: 'weather', arguments: '{"city":"Chur"}' } })
    const both = [bern, ['weather', '{"city":"Chur"}']]
    const reused = [frame({ tool_calls: [call()] }), frame({ tool_calls: [chur] }), frame({}, 'tool_calls')]
    expect(calls((await read(reused)).reply)).toEqual(both)
    const fromOne = [
      frame({ tool_calls: [call({ index: 1 })] }),
      frame({ tool_calls: [{ ...chur, index: 2 }] }, 'tool_calls'),
    ]
    expect(calls((await read(fromOne)).reply)).toEqual(both)
  },
  'gateways | keep-alive comments': async () => {
    const body = `\uFEFF: OPENROUTER PROCESSING\n\n${sse([frame({ content: 'Grüezi 看\u2028!' }), ': ping\n\n', frame({}, 'stop')])}`
    const bytes = Buffer.from(body.replaceAll('\n', '\r\n'))
    const { reply } = await ask(modelAt(await serve({ raw: [...bytes].map((byte) => Uint8Array.of(byte)) })))
    expect(text(reply)).toBe('Grüezi 看\u2028!')
  },
  'Groq, OpenRouter | ': async () => {
    for (const provider of ['groq', 'openrouter']) {
      const server = await serve({ raw: sse([frame({ content: 'Hel' }), { error: { message: 'busy', code: 503 } }]) })
      const { error } = await askInVain(modelAt(server, quirksOf(provider)))
      expect(error).toMatchObject({ code: 'overloaded', partial: { blocks: [{ type: 'text', text: 'Hel' }] } })
    }
  },
  'Gemini | ': async () => {
    const part = { functionCall: { name: 'weather', args: { city: 'Bern' } }, thoughtSignature: 'c2lnbmVk' }
    const answer = (parts: readonly object[]) => ({ body: [googleEvents([candidate(parts, 'STOP')])] })
    const server = await play(answer([part, part]), answer([{ text: 'ok' }]))
    const model = aiSdk(googleAt(server)('gemini-3-pro-preview'))
    const { reply } = await ask(model, { tools: [weather] })
    expect(calls(reply)).toEqual([bern, bern])
    const blocks = reply.blocks.map((it, n) => (it.type === 'call' ? { ...it, callId: `c${n}` } : it))
    const history: Message[] = [userMessage('hi'), { id: 'a', role: 'assistant', blocks }]
    await ask(model, { tools: [weather], messages: history })
    const [, sent, results] = server.requests[1]!.body.contents
    expect(sent.parts).toMatchObject([{ thoughtSignature: 'c2lnbmVk' }, { thoughtSignature: 'c2lnbmVk' }])
    // Parallel calls are separated by generated ids.
    const ids = (parts: Record<string, { id: string }>[], field: string) => parts.map((it) => it[field]!.id)
    expect(new Set(ids(sent.parts, 'functionCall')).size).toBe(2)
    expect(ids(results.parts, 'functionResponse')).toEqual(ids(sent.parts, 'functionCall'))
  },
  'Anthropic | ': async () => {
    const start = { type: 'message_start', message: { model: 'm', usage: { input_tokens: 20, output_tokens: 1 } } }
    const end = (reason: string) => [
      { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 8 } },
      { type: 'message_stop' },
    ]
    const block = (index: number, content: object, ...deltas: object[]) => [
      { type: 'content_block_start', index, content_block: content },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]
    const thought = block(
      0,
      { type: 'thinking', thinking: '' },
      { type: 'thinking_delta', thinking: 'hm' },
      { type: 'signature_delta', signature: 'proof' },
    )
    const sealed = block(1, { type: 'redacted_thinking', data: 'sealed' })
    const said = block(2, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hello' })
    const read = async (list: readonly object[]) => anthropicAt(await serve({ raw: events(list) }))
    const { reply } = await ask(
      await read([start, { type: 'ping' }, ...thought, ...sealed, { type: 'ping' }, ...said, ...end('end_turn')]),
    )
    expect(reply.blocks).toEqual([
      { type: 'thinking', text: 'hm', signature: 'proof' },
      { type: 'thinking', text: '', redacted: 'sealed' },
      { type: 'text', text: 'Hello' },
    ])
    expect((await ask(await read([start, ...said, ...end('refusal')]))).reply.finishReason).toBe('refusal')
    const overload = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    const { error } = await askInVain(await read([start, ...said, overload]))
    expect(error).toMatchObject({ code: 'overloaded', partial: { blocks: [{ type: 'text', text: 'Hello' }] } })
  },
  'many | `finish_reason` absent': async () => {
    for (const reason of [null, 'stop', 'null', '']) {
      const { reply } = await read([frame({ tool_calls: [call()] }), frame({}, reason)])
      expect(reply).toMatchObject({ finishReason: 'calls', blocks: [{ type: 'call', tool: 'weather' }] })
    }
  },
  'many | a tool without parameters': async () => {
    const ran: string[] = []
    const make = (name: string, input: z.ZodType) =>
      tool({ name, description: name, effects: ['read'], input, run: () => void ran.push(name) })
    const named = (name: string, index: number) => call({ index, id: name, function: { name, arguments: '' } })
    const server = await serve(
      { raw: sse([frame({ tool_calls: [named('now', 0), named('weather', 1)] }, 'tool_calls')]) },
      { text: 'done' },
    )
    const tools = [make('now', z.object({})), make('weather', z.object({ city: z.string() }))]
    const helper = agent({ name: 'helper', model: modelAt(server), instructions: 'Help.', tools })
    const engine = createEngine({ backend: memory(), agents: [helper] })
    await engine.start()
    onTestFinished(() => engine.stop())
    expect((await engine.session({ user: 'ann', session: 's' }).run('hi')).text).toBe('done')
    expect(ran).toEqual(['now'])
  },
  'many | stream ends without': async () => {
    const server = await serve({ raw: sse([frame({ content: 'Hel' })], '') })
    const { error } = await askInVain(modelAt(server))
    expect(error).toMatchObject({
      code: 'stream_cut',
      retryable: true,
      partial: { blocks: [{ type: 'text', text: 'Hel' }], finishReason: 'error' },
    })
  },
  'many | context overflow': async () => {
    for (const message of [
      'context_length_exceeded',
      "This model's maximum context length is 8192 tokens.",
      'prompt is too long: 210000 tokens > 200000 maximum',
      'Input length 9000 exceeds the maximum length 8192',
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      'Input is too long for requested model.',
      'Range of input length should be [1, 30720]',
    ]) {
      const { error } = await askInVain(modelAt(await serve({ status: 400, body: { error: { message } } })))
      expect(error).toMatchObject({ code: 'context_overflow', retryable: false })
    }
  },
}

describe('oddities of providers', () => {
  test.each(Object.entries(rows))('%s …', async (_, check) => {
    expect.hasAssertions()
    await check()
  })
})

const list = join(import.meta.dirname, '../../../../../shared/cases/provider-quirks.md')
const missing = existsSync(list) ? '' : ': skipped without the list'

test.skipIf(missing !== '')(`each row of the list of oddities has a stream here${missing}`, () => {
  const known = readFileSync(list, 'utf8')
    .split('\n')
    .filter((line) => /^\| (?!provider |-)/.test(line))
    .map((line) => line.slice(2))
  expect(known.length).toBeGreaterThan(10)
  expect(known.filter((row) => Object.keys(rows).filter((it) => row.startsWith(it)).length !== 1)).toEqual([])
  expect(Object.keys(rows).filter((it) => !known.some((row) => row.startsWith(it)))).toEqual([])
})

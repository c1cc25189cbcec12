// Recorded answers of real providers, judged by OpenAI's own client on the same bytes.
import { scriptedModel } from '@oxbow/testing'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import {
  ask,
  askInVain,
  calls,
  chatRecordings,
  modelAt,
  noRecordings,
  request,
  serve,
  text,
  thinking,
} from '../asking.fixture.ts'
import { sseReader } from '../wire/sse.ts'
import { assembleReply } from './reply.ts'

const recordings = chatRecordings()

/** What OpenAI's client cannot put together, read from the recordings by eye. */
const byHand: Record<string, { text: string; calls: [string, string][]; thinking?: string }> = {
  'mistral/mistral-incremental-tool-call.chunks.txt': {
    text: '',
    calls: [['webSearchTool', '{"query": "current Berlin weather"}']],
  },
  'mistral/mistral-reasoning.chunks.txt': {
    text: '2 + 2 = 4',
    thinking: 'The user is asking for 2+2. This is basic arithmetic. 2+2=4.',
    calls: [],
  },
  'mistral/mistral-tool-call.chunks.txt': { text: '', calls: [['weather', '{"location": "San Francisco"}']] },
  'openai-compatible/chat-anthropic-fallback-tool-call.sse': {
    text: 'Reading it.',
    calls: [['read_file', '{"path": "a.txt"}']],
  },
}

/** The whole way from bytes to a reply, without HTTP, for thousands of runs. */
function parse(pieces: readonly Uint8Array[]) {
  const assembler = assembleReply(request(), 'any', {}, () => {})
  const reader = sseReader((data) => {
    if (data !== '[DONE]') expect(assembler.frame(JSON.parse(data))).toBeUndefined()
  })
  for (const piece of pieces) reader.push(piece)
  reader.end()
  return assembler.reply()
}

async function referee(body: Buffer) {
  const server = await serve({ raw: [body] })
  const client = new OpenAI({ apiKey: 'any', baseURL: server.url, maxRetries: 0 })
  const stream = client.chat.completions.stream({ model: 'any', messages: [] })
  let reasoning = ''
  stream.on('chunk', (chunk) => {
    const delta = chunk.choices[0]?.delta as Record<string, string | null | undefined> | undefined
    reasoning += delta?.reasoning_content ?? delta?.reasoning ?? ''
  })
  const { choices, usage } = await stream.finalChatCompletion()
  const { message, finish_reason: reason } = choices[0]!
  return {
    text: message.content ?? '',
    thinking: reasoning,
    calls: (message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]),
    reason: { stop: 'stop', length: 'length', tool_calls: 'calls' }[reason as string],
    prompt: usage?.prompt_tokens,
    completion: usage?.completion_tokens,
    cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    reasoning: usage?.completion_tokens_details?.reasoning_tokens ?? 0,
  }
}

describe.skipIf(noRecordings)(`recorded answers${noRecordings ? `: skipped, ${noRecordings}` : ''}`, () => {
  test('there are recordings of each provider', () => {
    const folders = new Set(recordings.map(({ name }) => name.split('/')[0]))
    expect([...folders].sort()).toEqual([
      'alibaba',
      'azure',
      'deepseek',
      'groq',
      'mistral',
      'moonshotai',
      'openai',
      'openai-compatible',
      'perplexity',
      'xai',
    ])
  })

  test.each(recordings)('$name is read as OpenAI’s client reads it', async ({ name, body }) => {
    const { reply } = await ask(modelAt(await serve({ raw: [body] })))
    const expected = byHand[name]
    if (expected) {
      expect({ text: text(reply), thinking: thinking(reply), calls: calls(reply) }).toEqual({
        thinking: '',
        ...expected,
      })
      return
    }
    const { usage } = reply
    const official = await referee(body)
    // xAI counts reasoning beside the completion, everybody else inside.
    const completion = name.includes('xai') ? official.completion! + official.reasoning : official.completion
    expect({
      text: text(reply),
      thinking: thinking(reply),
      calls: calls(reply),
      reason: reply.finishReason,
      prompt: usage.inputTokens + usage.cacheReadTokens,
      completion: usage.outputTokens,
      cached: usage.cacheReadTokens,
      reasoning: usage.reasoningTokens,
    }).toEqual({ ...official, completion })
    expect(usage.estimated).toBe(false)
    expect(reply.blocks.every((block) => block.type !== 'text' || block.text !== '')).toBe(true)
  })

  test.each(recordings.filter(({ body }) => body.length < 3_000))(
    '$name is the same wherever it is cut in two',
    ({ body }) => {
      const whole = parse([body])
      for (let cut = 1; cut < body.length; cut++) {
        expect(parse([body.subarray(0, cut), body.subarray(cut)])).toEqual(whole)
      }
      expect(parse([...body].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
    },
  )

  test.each(recordings.filter(({ body }) => body.length >= 3_000))(
    '$name is the same after random cuts',
    ({ body }) => {
      const whole = parse([body])
      const random = generator(body.length)
      for (const size of [3, 50, 1_500]) {
        const pieces: Uint8Array[] = []
        for (let at = 0; at < body.length; at += pieces.at(-1)!.length) {
          pieces.push(body.subarray(at, at + 1 + Math.floor(random() * 2 * size)))
        }
        expect(parse(pieces)).toEqual(whole)
      }
    },
  )

  test('cuts inside frames and characters do not matter over HTTP', async () => {
    for (const { body } of recordings.filter((recording) => recording.body.length < 3_000)) {
      const server = await scriptedModel({ scripts: { '*': [{ raw: [body] }] }, writeBytes: 11, oneWritePerTurn: true })
      expect((await ask(modelAt(server))).reply).toEqual({ ...parse([body]), model: expect.any(String) })
      await server.close()
    }
  })

  test.each(recordings)('$name without its end is a cut stream that keeps what had come', async ({ body }) => {
    const reason = body.lastIndexOf('"finish_reason":"')
    const lastFrame = body.lastIndexOf('data: ', reason)
    const before = parse([body.subarray(0, lastFrame)])
    // Before the frame with the reason, and in the midst of it.
    for (const end of [lastFrame, reason]) {
      const { error } = await askInVain(modelAt(await serve({ raw: [body.subarray(0, end)] })))
      expect(error).toMatchObject({ code: 'stream_cut', retryable: true })
      expect(error.partial?.blocks ?? []).toEqual(before.blocks)
    }
    // A broken connection may lose what was not read yet, but what was shown is what is kept: `askInVain` checks it.
    const { error } = await askInVain(modelAt(await serve({ raw: [body], cutAfterBytes: lastFrame })))
    expect(error).toMatchObject({ code: 'stream_cut', retryable: true })
  })

  test.each([
    ['comments between all frames', (body: string) => body.replaceAll('\n\n', '\n\n: OPENROUTER PROCESSING\n\n')],
    ['CR LF', (body: string) => body.replaceAll('\n', '\r\n')],
    ['a byte order mark', (body: string) => `\uFEFF${body}`],
    ['U+2028 inside a frame', (body: string) => body.replaceAll('"model":', '"note":"a\u2028b\u0085c","model":')],
    ['`delta: null` in the midst', (body: string) => `data: {"choices":[{"index":0,"delta":null}]}\n\n${body}`],
    ['signs of life that are no JSON', (body: string) => `data: ping\n\n${body}`],
  ])('%s changes nothing', async (_, mutate) => {
    for (const { body } of recordings.filter((recording) => recording.body.length < 20_000)) {
      const mutated = Buffer.from(mutate(body.toString()))
      expect(mutated.equals(body)).toBe(false)
      const { reply } = await ask(modelAt(await serve({ raw: [mutated] })))
      expect(reply).toEqual(parse([body]))
    }
  })

  test('an error object after the first half is a typed error with what had come', async () => {
    for (const { body } of recordings.filter((recording) => recording.body.length < 20_000)) {
      const half = body.subarray(0, body.lastIndexOf('data: ', body.lastIndexOf('"finish_reason":"')))
      const raw = [half, Buffer.from('data: {"error":{"message":"no room","code":503}}\n\n')]
      const { error } = await askInVain(modelAt(await serve({ raw })))
      expect(error).toMatchObject({ code: 'overloaded', retryable: true })
      expect(error.partial?.blocks ?? []).toEqual(parse([half]).blocks)
    }
  })
})

/** A small generator of numbers in [0, 1) that are the same in each run. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

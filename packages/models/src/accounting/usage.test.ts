// Providers count tokens differently; here the counts are uniform: input without the cache, output with its reasoning.
// The usage objects are recorded ones.
import type { Model, Usage } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { candidate, googleAt, googleEvents, play } from '../ai-sdk/ai-sdk.fixture.ts'
import { anthropicAt, ask, frame, modelAt, namedEvents, responsesAt, serve, sse } from '../asking.fixture.ts'
import { aiSdk } from '../index.ts'

type Event = { readonly type: string; readonly [field: string]: unknown }
type Wire = Readonly<Record<string, unknown>> | null

/** One-word answers in each format, with this usage where the format puts it. */
const drivers: Readonly<Record<string, (usage: Wire) => Promise<Model>>> = {
  chat: async (usage) =>
    modelAt(await serve({ raw: sse([frame({ content: 'hi' }), frame({}, 'stop'), { choices: [], usage }]) })),
  messages: async (usage) => {
    // Its first output count is provisional.
    const start = usage && 'output_tokens' in usage ? { ...usage, output_tokens: 1 } : usage
    return anthropicAt(
      await serve({
        raw: namedEvents([
          {
            type: 'message_start',
            message: { model: 'm', content: [], usage: start },
          },
          { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'hi' } },
          { type: 'content_block_stop', index: 0 },
          { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
          { type: 'message_stop' },
        ] as readonly Event[]),
      }),
    )
  },
  responses: async (usage) =>
    responsesAt(
      await serve({
        raw: namedEvents([
          { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'hi' },
          { type: 'response.completed', response: { status: 'completed', usage } },
        ] as readonly Event[]),
      }),
    ),
  'AI SDK, Google': async (usage) => {
    const last = { ...candidate([{ text: 'hi' }], 'STOP'), usageMetadata: usage ?? undefined }
    return aiSdk(googleAt(await play({ body: [googleEvents([last])] }))('gemini-3-pro-preview'))
  },
}

/** Input, cache read, cache write, output, reasoning. */
type Figures = readonly [number, number, number, number, number]

const usageOf = ([inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, reasoningTokens]: Figures): Usage => ({
  inputTokens,
  cacheReadTokens,
  cacheWriteTokens,
  outputTokens,
  reasoningTokens,
  estimated: false,
})

const details = (reasoning: number) => ({ completion_tokens_details: { reasoning_tokens: reasoning } })
const cached = (tokens: number) => ({ prompt_tokens_details: { cached_tokens: tokens } })

const rows: [string, keyof typeof drivers, Wire, Figures][] = [
  [
    'OpenAI: all inside',
    'chat',
    { prompt_tokens: 2_006, completion_tokens: 300, total_tokens: 2_306, ...cached(1_920), ...details(192) },
    [86, 1_920, 0, 300, 192],
  ],
  [
    'Azure, router',
    'chat',
    { prompt_tokens: 15, completion_tokens: 78, total_tokens: 93, ...cached(0), ...details(64) },
    [15, 0, 0, 78, 64],
  ],
  [
    'Azure, DeepSeek: reasoning at the top, details null',
    'chat',
    {
      prompt_tokens: 19,
      completion_tokens: 1_720,
      total_tokens: 1_739,
      prompt_tokens_details: null,
      reasoning_tokens: 0,
    },
    [19, 0, 0, 1_720, 0],
  ],
  [
    'DeepSeek: hits and misses',
    'chat',
    {
      prompt_tokens: 339,
      completion_tokens: 219,
      total_tokens: 558,
      ...cached(320),
      ...details(205),
      prompt_cache_hit_tokens: 320,
      prompt_cache_miss_tokens: 19,
    },
    [19, 320, 0, 219, 205],
  ],
  [
    'DashScope',
    'chat',
    { prompt_tokens: 295, completion_tokens: 22, total_tokens: 317, ...cached(0) },
    [295, 0, 0, 22, 0],
  ],
  [
    'Groq: times beside the figures',
    'chat',
    {
      queue_time: 0.17,
      prompt_tokens: 17,
      prompt_time: 0.0008,
      completion_tokens: 1_107,
      completion_time: 3.2,
      total_tokens: 1_124,
      total_time: 3.2,
      ...details(963),
    },
    [17, 0, 0, 1_107, 963],
  ],
  ['Mistral: no details', 'chat', { prompt_tokens: 10, total_tokens: 56, completion_tokens: 46 }, [10, 0, 0, 46, 0]],
  [
    'Moonshot: cached at the top',
    'chat',
    { prompt_tokens: 90, completion_tokens: 12, total_tokens: 102, cached_tokens: 64, ...details(7) },
    [26, 64, 0, 12, 7],
  ],
  [
    'xAI: reasoning beside the completion',
    'chat',
    { prompt_tokens: 12, completion_tokens: 1, total_tokens: 303, ...cached(11), ...details(290) },
    [1, 11, 0, 291, 290],
  ],
  [
    'xAI, with a call',
    'chat',
    { prompt_tokens: 291, completion_tokens: 26, total_tokens: 513, ...cached(290), ...details(196) },
    [1, 290, 0, 222, 196],
  ],
  [
    'OpenRouter: writes to the cache',
    'chat',
    {
      prompt_tokens: 5_000,
      completion_tokens: 50,
      total_tokens: 5_050,
      prompt_tokens_details: { cached_tokens: 1_000, cache_write_tokens: 3_900 },
    },
    [100, 1_000, 3_900, 50, 0],
  ],
  [
    'a proxy for Anthropic',
    'chat',
    {
      prompt_tokens: 5_000,
      completion_tokens: 50,
      total_tokens: 5_050,
      cache_read_input_tokens: 1_000,
      cache_creation_input_tokens: 3_900,
    },
    [100, 1_000, 3_900, 50, 0],
  ],
  [
    'Anthropic: the cache beside the input',
    'messages',
    {
      input_tokens: 6,
      cache_creation_input_tokens: 3_337,
      cache_read_input_tokens: 6_289,
      output_tokens: 198,
      output_tokens_details: { thinking_tokens: 0 },
    },
    [6, 6_289, 3_337, 198, 0],
  ],
  [
    'Anthropic: thinking inside the output',
    'messages',
    {
      input_tokens: 69,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 253,
      output_tokens_details: { thinking_tokens: 200 },
    },
    [69, 0, 0, 253, 200],
  ],
  [
    'Anthropic: everything from the cache',
    'messages',
    { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 6_289, output_tokens: 8 },
    [0, 6_289, 0, 8, 0],
  ],
  [
    'OpenAI responses: all inside',
    'responses',
    {
      input_tokens: 642,
      input_tokens_details: { cached_tokens: 512 },
      output_tokens: 67,
      output_tokens_details: { reasoning_tokens: 64 },
      total_tokens: 709,
    },
    [130, 512, 0, 67, 64],
  ],
  [
    'xAI responses: reasoning inside, other than in chat',
    'responses',
    {
      input_tokens: 216,
      input_tokens_details: { cached_tokens: 192 },
      output_tokens: 863,
      output_tokens_details: { reasoning_tokens: 237 },
      total_tokens: 1_079,
    },
    [24, 192, 0, 863, 237],
  ],
  [
    'Google: thoughts beside the candidates',
    'AI SDK, Google',
    { promptTokenCount: 9, candidatesTokenCount: 23, totalTokenCount: 334, thoughtsTokenCount: 302 },
    [9, 0, 0, 325, 302],
  ],
  [
    'Google: the cache inside the prompt',
    'AI SDK, Google',
    { promptTokenCount: 5_000, cachedContentTokenCount: 4_096, candidatesTokenCount: 23, totalTokenCount: 5_023 },
    [904, 4_096, 0, 23, 0],
  ],
]

describe('C13, X6: token counts are uniform across providers', () => {
  test.each(rows)('%s', async (_, driver, wire, figures) => {
    const { reply } = await ask(await drivers[driver]!(wire))
    expect(reply.usage).toEqual(usageOf(figures))
  })
})

describe('B1: without usage from the provider, tokens are estimated and marked so', () => {
  const nothing: [string, Wire][] = [
    ['none', null],
    ['empty ones', {}],
  ]
  test.each(Object.keys(drivers).flatMap((driver) => nothing.map(([what, wire]) => [driver, what, wire] as const)))(
    '%s: %s',
    async (driver, _, wire) => {
      const { reply } = await ask(await drivers[driver]!(wire), { system: 'word '.repeat(100) })
      expect(reply.usage).toMatchObject({ estimated: true, outputTokens: 1 })
      expect(reply.usage.inputTokens).toBeGreaterThan(90)
    },
  )
})

describe('usage with one impossible count is discarded and estimated', () => {
  const chat = (raw: string) => serve({ raw: sse([frame({ content: 'hi' }), frame({}, 'stop'), `data: ${raw}\n\n`]) })
  test.each([
    ['infinite', '{"prompt_tokens":1e999,"completion_tokens":5}', { estimated: true, outputTokens: 1 }],
    ['beyond all sizes', '{"prompt_tokens":1e300,"completion_tokens":5}', { estimated: true, outputTokens: 1 }],
    ['negative', '{"prompt_tokens":-3,"completion_tokens":5}', { estimated: true, outputTokens: 1 }],
    ['in fractions', '{"prompt_tokens":2.4,"completion_tokens":1.5}', { inputTokens: 2, outputTokens: 2 }],
    ['all of them', '{"prompt_tokens":1e999,"completion_tokens":-1}', { estimated: true, outputTokens: 1 }],
  ])('%s', async (_, usage, expected) => {
    const { reply } = await ask(modelAt(await chat(`{"choices":[],"usage":${usage}}`)))
    expect(reply.usage).toMatchObject(expected)
  })

  test.each([
    ['messages', { input_tokens: 7, output_tokens: 3.5, cache_read_input_tokens: 1e300 }, [7, 0, 0, 4, 0]],
    ['responses', { input_tokens: 9, output_tokens: 3, total_tokens: -1 }, [9, 0, 0, 3, 0]],
  ] as const)('only an impossible secondary count is dropped: %s', async (driver, wire, figures) => {
    const { usage } = (await ask(await drivers[driver]!(wire))).reply
    expect(usage).toEqual(usageOf([...figures]))
  })

  test.each([
    ['messages', { input_tokens: -7, output_tokens: 3 }],
    ['responses', { input_tokens: 1e300, output_tokens: 3 }],
    ['AI SDK, Google', { promptTokenCount: -5, candidatesTokenCount: 5 }],
  ] as const)('%s', async (driver, wire) => {
    const { usage } = (await ask(await drivers[driver]!(wire))).reply
    expect(usage).toMatchObject({ estimated: true, outputTokens: 1 })
    expect(usage.inputTokens).toBeGreaterThan(0)
  })
})

describe('B1: more tokens in the cache than in the prompt', () => {
  const wire = { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 161 } }
  test.each([
    ['is impossible and marked as estimated', 'chat', wire, [0, 161, 3], true],
    ['is outside the prompt where the total shows it', 'chat', { ...wire, total_tokens: 171 }, [7, 161, 3], false],
    [
      'is impossible for Google too',
      'AI SDK, Google',
      { promptTokenCount: 7, cachedContentTokenCount: 161, candidatesTokenCount: 3 },
      [0, 161, 3],
      true,
    ],
  ] as const)('%s', async (_, driver, figures, [inputTokens, cacheReadTokens, outputTokens], estimated) => {
    const { usage } = (await ask(await drivers[driver]!(figures))).reply
    expect(usage).toMatchObject({ inputTokens, cacheReadTokens, outputTokens, estimated })
  })
})

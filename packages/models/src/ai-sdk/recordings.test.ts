// Recorded answers of Gemini and Bedrock, checked against the AI SDK's own client on the same bytes.
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { ModelReply } from '@oxbow/core'
import { streamText } from 'ai'
import { describe, expect, test } from 'vitest'
import { ask, askInVain, calls, text, thinking } from '../asking.fixture.ts'
import { cutAtRandom, generator, recordingsOf } from '../wire/recordings.fixture.ts'
import { bedrockAt, bedrockEvents, googleAt, play } from './ai-sdk.fixture.ts'
import { aiSdk } from './ai-sdk.ts'
import { readSignature } from './signature.ts'

interface Case {
  readonly name: string
  readonly body: Buffer
  readonly modelAt: (server: { readonly url: string }) => LanguageModelV4
}

const gemini: Case['modelAt'] = (server) => googleAt(server)('gemini-3-pro-preview')
const interactions: Case['modelAt'] = (server) => googleAt(server).interactions('gemini-2.5-flash')
const claude: Case['modelAt'] = (server) => bedrockAt(server)('us.anthropic.claude-sonnet-4-5-v1:0')

const asEvents = (lines: string[]): string => lines.map((line) => `data: ${line}\n\n`).join('')
const recorded = (isOwn: (content: string) => boolean, modelAt: Case['modelAt']): Case[] =>
  recordingsOf(isOwn, asEvents).map((it) => ({ ...it, modelAt }))

const google = [
  ...recorded((content) => content.startsWith('{"candidates"'), gemini),
  ...recorded((content) => content.includes('"interaction.created"'), interactions),
]

/** As Bedrock's Converse stream sends it: thinking with its signature, text, two calls. */
const bedrock: Case = {
  name: 'bedrock',
  modelAt: claude,
  body: bedrockEvents([
    ['messageStart', { role: 'assistant' }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'I should ' } } }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'look – 看.' } } }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'c2lnbmVk' } } }],
    ['contentBlockStop', { contentBlockIndex: 0 }],
    ['contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Let me ' } }],
    ['contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'look.' } }],
    ['contentBlockStop', { contentBlockIndex: 1 }],
    ['contentBlockStart', { contentBlockIndex: 2, start: { toolUse: { toolUseId: 'tooluse_1', name: 'weather' } } }],
    ['contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '{"city":' } } }],
    ['contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '"Genève"}' } } }],
    ['contentBlockStop', { contentBlockIndex: 2 }],
    ['contentBlockStart', { contentBlockIndex: 3, start: { toolUse: { toolUseId: 'tooluse_2', name: 'now' } } }],
    ['contentBlockStop', { contentBlockIndex: 3 }],
    ['messageStop', { stopReason: 'tool_use' }],
    [
      'metadata',
      {
        usage: {
          inputTokens: 12,
          outputTokens: 40,
          totalTokens: 152,
          cacheReadInputTokens: 90,
          cacheWriteInputTokens: 10,
        },
        metrics: { latencyMs: 900 },
      },
    ],
  ]),
}

const cases = [...google, bedrock]
const none = google.length === 0 ? ': Gemini’s are skipped without the recordings' : ''

/** The SDK client's result for the same bytes; its calls keep the text of their arguments as JSON. */
async function referee({ body, modelAt }: Case) {
  const server = await play({ body: [body] })
  const result = streamText({
    model: modelAt(server),
    prompt: 'hi',
    maxRetries: 0,
    onError: ({ error }) => expect(error).toBeUndefined(),
  })
  const content = await result.content
  const usage = await result.usage
  return {
    text: content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(''),
    thinking: content.flatMap((part) => (part.type === 'reasoning' ? [part.text] : [])).join(''),
    calls: content.flatMap((part) =>
      part.type === 'tool-call' && !part.providerExecuted ? [[part.toolName, part.input]] : [],
    ),
    proofs: content.flatMap((part) =>
      part.type === 'reasoning' || (part.type === 'tool-call' && !part.providerExecuted) ? [part.providerMetadata] : [],
    ),
    reason: await result.finishReason,
    usage: {
      input: usage.inputTokenDetails.noCacheTokens ?? usage.inputTokens,
      cacheRead: usage.inputTokenDetails.cacheReadTokens ?? 0,
      cacheWrite: usage.inputTokenDetails.cacheWriteTokens ?? 0,
      output: usage.outputTokens,
      reasoning: usage.outputTokenDetails.reasoningTokens ?? 0,
    },
  }
}

const view = (reply: ModelReply) => ({
  text: text(reply),
  thinking: thinking(reply),
  calls: calls(reply).map(([tool, json]) => [tool, JSON.parse(json)]),
  proofs: reply.blocks
    .filter((block) => block.type === 'call' || (block.type === 'thinking' && !block.signature?.startsWith('{"#')))
    .map((block) => readSignature((block as { signature?: string }).signature)),
  reason: { stop: 'stop', calls: 'tool-calls', length: 'length', filtered: 'content-filter' }[
    reply.finishReason as string
  ],
  usage: {
    input: reply.usage.inputTokens,
    cacheRead: reply.usage.cacheReadTokens,
    cacheWrite: reply.usage.cacheWriteTokens,
    output: reply.usage.outputTokens,
    reasoning: reply.usage.reasoningTokens,
  },
})

describe(`answers through the AI SDK${none}`, () => {
  test.each(cases)('$name is read as the SDK’s own client reads it', async (it) => {
    const { reply } = await ask(aiSdk(it.modelAt(await play({ body: [it.body] }))))
    expect(view(reply)).toEqual(await referee(it))
    expect(reply.usage.estimated).toBe(false)
    expect(reply.blocks.every((block) => block.type !== 'text' || block.text !== '')).toBe(true)
  })

  test.each(cases)('$name is the same however its bytes are split', async ({ body, modelAt }) => {
    const { reply: whole } = await ask(aiSdk(modelAt(await play({ body: [body] }))))
    const random = generator(body.length)
    for (const size of [Math.ceil(body.length / 400), 300]) {
      const { reply } = await ask(aiSdk(modelAt(await play({ body: cutAtRandom(body, size, random) }))))
      expect(reply).toEqual(whole)
    }
  })

  test.each(cases)('$name without its end is a cut stream with the partial answer', async ({ body, modelAt }) => {
    const before = body.lastIndexOf(modelAt === claude ? 'messageStop' : 'data: ') - (modelAt === claude ? 60 : 0)
    for (const ending of ['cut', undefined] as const) {
      const server = await play({ body: [body.subarray(0, before)], ...(ending ? { ending } : {}) })
      const { error } = await askInVain(aiSdk(modelAt(server)))
      expect(error).toMatchObject({ code: 'stream_cut', retryable: true, partial: { finishReason: 'error' } })
    }
  })
})

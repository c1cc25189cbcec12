// Recorded answers of Anthropic's API, checked against Anthropic's own client on the same bytes.
import Anthropic from '@anthropic-ai/sdk'
import type { ModelReply } from '@oxbow/core'
import { expect } from 'vitest'
import { anthropicAt, calls, request, serve, text, thinking } from '../asking.fixture.ts'
import { describeRecordings, recordingsOf, toNamedEvents } from '../wire/recordings.fixture.ts'
import { assembleMessage } from './reply.ts'

const reasons: Record<string, ModelReply['finishReason']> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'calls',
  max_tokens: 'length',
  refusal: 'refusal',
}

/** Some recordings hold the answers of a whole conversation; a stream ends with the first. */
const firstAnswer = (body: string): string => {
  const stop = body.indexOf('data: {"type":"message_stop"')
  return body.slice(0, body.indexOf('\n\n', stop) + 2)
}

async function referee(body: string) {
  const server = await serve({ raw: body })
  const client = new Anthropic({ apiKey: 'any', baseURL: server.url.replace('/v1', ''), maxRetries: 0 })
  const stream = client.messages.stream({ model: 'any', max_tokens: 1, messages: [] })
  const message = await stream.finalMessage()
  const { usage, content } = message
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    thinking: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    proofs: content.flatMap((block) =>
      block.type === 'thinking' ? [block.signature] : block.type === 'redacted_thinking' ? [block.data] : [],
    ),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [[block.name, block.input]] : [])),
    reason: reasons[message.stop_reason ?? ''],
    input: usage.input_tokens,
    read: usage.cache_read_input_tokens ?? 0,
    write: usage.cache_creation_input_tokens ?? 0,
    output: usage.output_tokens,
    reasoning: usage.output_tokens_details?.thinking_tokens ?? 0,
  }
}

describeRecordings({
  recordings: recordingsOf((content) => content.includes('"message_start"'), toNamedEvents),
  providers: ['anthropic'],
  modelAt: anthropicAt,
  assemble: () => assembleMessage({ request: request(), model: 'any', onDelta: () => {} }),
  inVain: {
    // Anthropic's client throws as well: another message begins in the middle of a call.
    'anthropic/spliced-message-start.chunks.txt': { code: 'stream_cut', retryable: true },
    // Checked manually: only calls to the provider's own tools and their results.
    'anthropic/anthropic-advisor-stop-reasons.chunks.txt': {
      code: 'invalid_request',
      message: expect.stringContaining('nothing but server_tool_use, advisor_tool_result,'),
    },
  },
  async judge({ body }, reply) {
    const { usage } = reply
    // Anthropic's client refuses a second start of the same message, which has no effect.
    const bytes = firstAnswer(body.toString()).replace(/^(event: message_start\n.*\n\n)\1/, '$1')
    const found = {
      text: text(reply),
      thinking: thinking(reply),
      proofs: reply.blocks.flatMap((it) => (it.type === 'thinking' ? [it.signature ?? it.redacted] : [])),
      // A tool without parameters sends no arguments, which the client reads as an empty object.
      calls: calls(reply).map(([tool, args]) => [tool, args === '' ? {} : JSON.parse(args)]),
      reason: reply.finishReason,
      input: usage.inputTokens,
      read: usage.cacheReadTokens,
      write: usage.cacheWriteTokens,
      output: usage.outputTokens,
      reasoning: usage.reasoningTokens,
      estimated: usage.estimated,
    }
    return { found, official: { ...(await referee(bytes)), estimated: false } }
  },
  endOf(body) {
    const within = body.indexOf('"stop_reason":"', body.indexOf('"type":"message_delta"'))
    return { frame: body.lastIndexOf('event: ', within), within }
  },
  mayDouble: (frame) => !frame.includes('"content_block_delta"') && !frame.includes('"type":"text","text":"'),
  index: /(?<="type":"content_block_\w+",)"index":\d+/g,
  signOfLife: 'event: ping\ndata: {"type":"ping"}\n\n',
  errorFrame: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
})

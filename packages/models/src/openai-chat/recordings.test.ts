// Recorded answers of real providers, checked against OpenAI's own client on the same bytes.
import OpenAI from 'openai'
import { calls, modelAt, request, serve, text, thinking } from '../asking.fixture.ts'
import { describeRecordings, recordingsOf } from '../wire/recordings.fixture.ts'
import { assembleReply } from './reply.ts'

/** Answers that OpenAI's client cannot assemble, checked manually against the recordings. */
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

describeRecordings({
  recordings: recordingsOf(
    (content) => content.includes('"choices"') && !content.includes('"text_completion"'),
    (lines) => `${lines.map((line) => `data: ${line}\n\n`).join('')}data: [DONE]\n\n`,
  ),
  providers: [
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
  ],
  modelAt,
  assemble: () => assembleReply(request(), 'any', {}, () => {}),
  async judge({ name, body }, reply) {
    const seen = { text: text(reply), thinking: thinking(reply), calls: calls(reply) }
    const expected = byHand[name]
    if (expected) return { found: seen, official: { thinking: '', ...expected } }
    const { usage } = reply
    const official = await referee(body)
    // xAI counts reasoning outside the completion, all others inside.
    const completion = name.includes('xai') ? official.completion! + official.reasoning : official.completion
    const found = {
      ...seen,
      reason: reply.finishReason,
      prompt: usage.inputTokens + usage.cacheReadTokens,
      completion: usage.outputTokens,
      cached: usage.cacheReadTokens,
      reasoning: usage.reasoningTokens,
      estimated: usage.estimated,
    }
    return { found, official: { ...official, completion, estimated: false } }
  },
  endOf(body) {
    const within = body.lastIndexOf('"finish_reason":"')
    return { frame: body.lastIndexOf('data: ', within), within }
  },
  // A fragment cannot be distinguished from its duplicate; a frame that ends the answer can.
  mayDouble: (frame) =>
    frame.includes('[DONE]') || (frame.includes('"finish_reason":"') && /"delta":\{\}|"content":""/.test(frame)),
  errorFrame: 'data: {"error":{"message":"no room","code":503}}\n\n',
})

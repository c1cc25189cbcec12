// Recorded answers in OpenAI's responses format, checked against OpenAI's own client on the same bytes.
import OpenAI from 'openai'
import type { Response } from 'openai/resources/responses/responses'
import { expect } from 'vitest'
import { calls, request, responsesAt, serve, text, thinking } from '../asking.fixture.ts'
import { describeRecordings, recordingsOf, toNamedEvents } from '../wire/recordings.fixture.ts'
import { assembleResponse } from './reply.ts'

/** Some recordings hold the answers of a whole conversation; a stream ends with the first. */
const firstAnswer = (body: string): string => {
  const end = body.indexOf('event: response.completed')
  return body.slice(0, body.indexOf('\n\n', end) + 2)
}

/**
 * OpenAI's client throws on these: one recording lacks pieces in the middle, the others have events unknown to the
 * client. The last frame holds the provider's own assembly.
 */
const beyondTheClient = /openai-phase|shell-container\.1|shell-skills/

async function officialResponse(name: string, body: string): Promise<Response> {
  const server = await serve({ raw: body })
  const client = new OpenAI({ apiKey: 'any', baseURL: server.url, maxRetries: 0 })
  const response = client.responses.stream({ model: 'any', input: [] }).finalResponse()
  if (!beyondTheClient.test(name)) return response
  await expect(response).rejects.toThrow(/missing output|Unhandled response stream event/)
  return JSON.parse(/event: response.completed\ndata: (.*)/.exec(body)![1]!).response
}

async function referee(name: string, body: string) {
  const { output, usage } = await officialResponse(name, body)
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
  const reasoning = output.flatMap((item) => (item.type === 'reasoning' ? [item] : []))
  const hasCalls = output.some((item) => item.type === 'function_call')
  return {
    text: parts.map((part) => (part.type === 'output_text' ? part.text : part.refusal)).join(''),
    thinking: reasoning.map((item) => item.summary.map((part) => part.text).join('\n\n')).join(''),
    sealed: reasoning.filter((item) => item.encrypted_content).length,
    calls: output.flatMap((item) => (item.type === 'function_call' ? [[item.name, item.arguments]] : [])),
    files: output.flatMap((item) => (item.type === 'image_generation_call' ? [item.result] : [])),
    reason: hasCalls ? 'calls' : 'stop',
    input: usage?.input_tokens,
    cached: usage?.input_tokens_details.cached_tokens,
    output: usage?.output_tokens,
    reasoning: usage?.output_tokens_details.reasoning_tokens,
  }
}

const foreign = (kinds: string) => ({
  code: 'invalid_request' as const,
  message: expect.stringContaining(`nothing but ${kinds}, which`),
})

describeRecordings({
  recordings: recordingsOf((content) => content.includes('"response.created"'), toNamedEvents),
  providers: ['azure', 'openai', 'xai'],
  modelAt: responsesAt,
  assemble: () => assembleResponse({ request: request(), model: 'any', onDelta: () => {} }),
  inVain: {
    'openai/responses-openai-error.1.chunks.txt': { code: 'rate_limited', retryable: false },
    // Checked manually: the first and the last line lack a brace.
    'openai/responses-parallel-tool-call-wrapper.1.chunks.txt': {
      code: 'provider_error',
      retryable: true,
      message: expect.stringContaining('broken JSON'),
    },
    // Checked manually: only items that OpenAI's own client would have to run or approve.
    'openai/responses-openai-apply-patch-tool.1.chunks.txt': foreign('apply_patch_call'),
    'openai/responses-openai-apply-patch-tool-delete.1.chunks.txt': foreign('apply_patch_call'),
    'openai/responses-openai-client-tool-search.1.chunks.txt': foreign('tool_search_call'),
    'openai/responses-openai-custom-tool.1.chunks.txt': foreign('custom_tool_call'),
    'openai/responses-openai-local-shell-tool.1.chunks.txt': foreign('local_shell_call'),
    'openai/responses-openai-mcp-tool-approval.1.chunks.txt': foreign('mcp_list_tools, mcp_approval_request'),
    'openai/responses-openai-mcp-tool-approval.3.chunks.txt': foreign('mcp_list_tools, mcp_approval_request'),
    'openai/responses-openai-shell-tool.1.chunks.txt': foreign('shell_call'),
  },
  async judge({ name, body }, reply) {
    const { usage } = reply
    // Encrypted anew in each frame; the one that ends the item counts.
    const sealed = reply.blocks.flatMap((it) => (it.type === 'thinking' && it.redacted ? [it.redacted] : []))
    const ended = body.toString().match(/^data: .*"type":"response.output_item.done".*$/gm)!
    const found = {
      text: text(reply),
      thinking: thinking(reply),
      sealed: sealed.filter((text) => ended.some((frame) => frame.includes(text))).length,
      calls: calls(reply),
      files: reply.blocks.flatMap((it) => (it.type === 'data' ? [it.data] : [])),
      reason: reply.finishReason,
      input: usage.inputTokens + usage.cacheReadTokens,
      cached: usage.cacheReadTokens,
      output: usage.outputTokens,
      reasoning: usage.reasoningTokens,
      estimated: usage.estimated,
    }
    const official = await referee(name, firstAnswer(body.toString()))
    // Checked manually: the fragments are not a prefix of the final text.
    if (name.includes('shell-container.1')) Object.assign(official, { text: 'The command ran successfully.' })
    // Zero counts are meaningless.
    const estimated = official.input === 0 && official.output === 0
    if (estimated) Object.assign(official, { input: found.input, output: found.output })
    return { found, official: { ...official, estimated } }
  },
  endOf(body) {
    const within = body.indexOf('"type":"response.completed"')
    return { frame: body.lastIndexOf('event: ', within), within }
  },
  mayDouble: (frame) => !frame.includes('.delta\n'),
  index: /"output_index":\d+/g,
  signOfLife: 'data: {"type":"keepalive","sequence_number":3}\n\n',
  errorFrame:
    'event: error\ndata: {"type":"error","code":"server_is_overloaded","message":"Our servers are busy."}\n\n',
})

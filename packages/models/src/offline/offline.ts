// The model that answers when none is configured. It is no language model: it plans by words, so that a first run shows
// the whole machine at work (tools, permissions, streaming), and it says what it is.
import { setImmediate } from 'node:timers/promises'
import {
  type Block,
  type CallBlock,
  type Model,
  type ModelCallOptions,
  ModelError,
  type ModelReply,
  type ModelRequest,
  type ResultBlock,
} from '@oxbow/core'
import { estimateRequestTokens, estimateTokens } from '../estimate.ts'
import { answerFrom, introduce } from './answer.ts'
import { planCalls } from './plan.ts'
import { sampleOf } from './sample.ts'

/**
 * The offline model, `offline:offline`. Deterministic: picks at most two tools by the words of the question, then tells
 * their results in plain sentences. Needs no key and no network.
 *
 * @example
 * const model = offline()
 */
export const offline = (): Model => ({ id: 'offline:offline', generate })

async function generate(request: ModelRequest, options: ModelCallOptions): Promise<ModelReply> {
  return stream(request, blocksFor(request), options)
}

function blocksFor(request: ModelRequest): Block[] {
  const { question, results } = lastQuestion(request)
  if (results.length === 0 && request.toolChoice !== 'none') {
    const calls = planCalls(question, request.tools, request.toolChoice)
    if (calls.length > 0) {
      return calls.map(
        (call): CallBlock => ({ type: 'call', callId: '', tool: call.tool, arguments: JSON.stringify(call.arguments) }),
      )
    }
  }
  if (request.output) {
    const value = sampleOf(request.output.schema, question, results.map(textOf).join(' '))
    return [{ type: 'text', text: JSON.stringify(value) }]
  }
  const told = results.map((result) => ({ tool: result.tool, ok: result.status === 'success', text: textOf(result) }))
  return [{ type: 'text', text: told.length > 0 ? answerFrom(question, told) : introduce(question, request.tools) }]
}

/** The text of the last message of the user that has one, and the results that came after it. */
function lastQuestion(request: ModelRequest): { question: string; results: ResultBlock[] } {
  const results: ResultBlock[] = []
  for (const message of request.messages.toReversed()) {
    const blocks = message.blocks
    if (message.role === 'tool') results.unshift(...blocks.filter((block) => block.type === 'result'))
    if (message.role !== 'user') continue
    const question = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
    if (question.trim() !== '') return { question, results }
  }
  return { question: '', results }
}

const textOf = (result: ResultBlock): string =>
  result.content.map((part) => (part.type === 'text' ? part.text : `[${part.name ?? part.mediaType}]`)).join(' ')

/** Gives the blocks out in fragments, one a turn of the event loop, so that a viewer sees a stream. */
async function stream(request: ModelRequest, blocks: Block[], options: ModelCallOptions): Promise<ModelReply> {
  const { signal, onDelta } = options
  const shown: Block[] = []
  const reply = (finishReason: ModelReply['finishReason']): ModelReply => ({
    blocks: shown,
    finishReason,
    usage: {
      inputTokens: estimateRequestTokens(request),
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: estimateTokens(JSON.stringify(shown)),
      reasoningTokens: 0,
      estimated: true,
    },
    model: 'offline',
  })
  for (const [block, whole] of blocks.entries()) {
    const isCall = whole.type === 'call'
    if (isCall) onDelta({ type: 'call', block, tool: whole.tool })
    const parts: string[] = []
    for (const text of fragments(isCall ? whole.arguments : whole.type === 'text' ? whole.text : '')) {
      if (signal.aborted) {
        throw new ModelError('cancelled', 'The model call was cancelled.', { partial: reply('cancelled') })
      }
      parts.push(text)
      shown[block] = isCall ? { ...whole, arguments: parts.join('') } : { type: 'text', text: parts.join('') }
      onDelta({ type: isCall ? 'arguments' : 'text', block, text })
      await setImmediate()
    }
  }
  return reply(shown.some((block) => block.type === 'call') ? 'calls' : 'stop')
}

/** Words with the space before them; Chinese has no spaces, so two characters at a time. */
const fragments = (text: string): readonly string[] =>
  text.match(/\s*(?:[\u3400-\u9fff]{1,2}|[^\s\u3400-\u9fff]+)|\s+/gu) ?? []

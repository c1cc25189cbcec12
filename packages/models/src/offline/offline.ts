// The model that answers when none is configured. It is not a language model: it plans by keywords, so that a first run
// shows the whole system at work (tools, permissions, streaming), and it states what it is.
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
import { estimateUsage } from '../accounting/estimate.ts'
import { answerFrom, introduce } from './answer.ts'
import { planCalls } from './plan.ts'
import { sampleOf } from './sample.ts'

/**
 * The offline model, `offline:offline`. Deterministic: picks at most two tools by the words of the question, then
 * reports their results in plain sentences. Needs no key and no network.
 *
 * @example
 * const model = offline()
 */
export const offline = (): Model => ({ id: 'offline:offline', generate })

async function generate(request: ModelRequest, options: ModelCallOptions): Promise<ModelReply> {
  return stream(request, blocksFor(request), options)
}

function blocksFor(request: ModelRequest): Block[] {
  const { question, calls, results } = lastQuestion(request)
  if (calls.length === 0 && request.toolChoice !== 'none') {
    const planned = planCalls(question, request.tools, request.toolChoice)
    if (planned.length > 0) {
      return planned.map((call) => ({
        type: 'call',
        callId: '',
        tool: call.tool,
        arguments: JSON.stringify(call.arguments),
      }))
    }
  }
  if (request.output) {
    const value = sampleOf(request.output.schema, question, results.map(textOf).join(' '))
    return [{ type: 'text', text: JSON.stringify(value) }]
  }
  const told = results.map((result) => ({ tool: result.tool, ok: result.status === 'success', text: textOf(result) }))
  return [{ type: 'text', text: told.length > 0 ? answerFrom(question, told) : introduce(question, request.tools) }]
}

/** The last user message with text, and the calls and results after it. */
function lastQuestion(request: ModelRequest): { question: string; calls: CallBlock[]; results: ResultBlock[] } {
  const calls: CallBlock[] = []
  const results: ResultBlock[] = []
  for (const { role, blocks } of request.messages.toReversed()) {
    calls.unshift(...blocks.filter((block) => block.type === 'call'))
    results.unshift(...blocks.filter((block) => block.type === 'result'))
    const question = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
    if (role === 'user' && question.trim() !== '') return { question, calls, results }
  }
  return { question: '', calls, results }
}

/** Without the markers around data: this model cannot be misled by instructions in it. */
const textOf = (result: ResultBlock): string =>
  result.content
    .map((part) => (part.type === 'text' ? part.text : `[${part.name ?? part.mediaType}]`))
    .join(' ')
    .replace(/^<\/?data id="[^\n]*>\n?/gm, '')

/** Streams the blocks in fragments, one per turn of the event loop. */
async function stream(request: ModelRequest, blocks: Block[], options: ModelCallOptions): Promise<ModelReply> {
  const { signal, onDelta } = options
  const shown: { block: Block; parts: string[] }[] = []
  for (const [index, block] of blocks.entries()) {
    const isCall = block.type === 'call'
    const parts: string[] = []
    shown.push({ block, parts })
    if (isCall) onDelta({ type: 'call', block: index, tool: block.tool })
    for (const text of fragments(isCall ? block.arguments : block.type === 'text' ? block.text : '')) {
      if (signal.aborted) {
        const partial = replyOf(request, shown, 'cancelled')
        throw new ModelError('cancelled', 'The model call was cancelled.', { partial })
      }
      parts.push(text)
      onDelta({ type: isCall ? 'arguments' : 'text', block: index, text })
      await setImmediate()
    }
  }
  return replyOf(request, shown, blocks.some((block) => block.type === 'call') ? 'calls' : 'stop')
}

function replyOf(
  request: ModelRequest,
  shown: readonly { readonly block: Block; readonly parts: readonly string[] }[],
  finishReason: ModelReply['finishReason'],
): ModelReply {
  const blocks = shown.flatMap(({ block, parts }): Block[] => {
    const text = parts.join('')
    if (block.type === 'call') return [{ ...block, arguments: text }]
    return text === '' ? [] : [{ type: 'text', text }]
  })
  return { blocks, finishReason, usage: estimateUsage(request, blocks), model: 'offline' }
}

/** Words with the space before them; Chinese has no spaces, so two characters at a time. */
const fragments = (text: string): readonly string[] =>
  text.match(/\s*(?:[\u3400-\u9fff]{1,2}|[^\s\u3400-\u9fff]+)|\s+/gu) ?? []

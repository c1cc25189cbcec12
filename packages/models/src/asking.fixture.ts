// How the tests of this package call a model.
import type { Block, Message, Model, ModelDelta, ModelError, ModelReply, ModelRequest } from '@oxbow/core'
import { type Reply, type ScriptedModel, scriptedModel } from '@oxbow/testing'
import { afterEach, expect } from 'vitest'
import {
  type AnthropicOptions,
  anthropic,
  type OpenAiChatOptions,
  type OpenAiResponsesOptions,
  openaiChat,
  openaiResponses,
} from './index.ts'

const open: ScriptedModel[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()))
})

/** A server that sends these replies for every model, closed after the test. */
export async function serve(...replies: Reply[]): Promise<ScriptedModel> {
  const server = await scriptedModel({ scripts: { '*': replies } })
  open.push(server)
  return server
}

export const modelAt = (server: { readonly url: string }, options: Partial<OpenAiChatOptions> = {}): Model =>
  openaiChat({ provider: 'test', model: 'any', baseUrl: server.url, apiKey: 'sk-secret', ...options })

export const anthropicAt = (server: { readonly url: string }, options: Partial<AnthropicOptions> = {}): Model =>
  anthropic({ provider: 'test', model: 'any', baseUrl: server.url, apiKey: 'sk-secret', ...options })

export const responsesAt = (server: { readonly url: string }, options: Partial<OpenAiResponsesOptions> = {}): Model =>
  openaiResponses({ provider: 'test', model: 'any', baseUrl: server.url, apiKey: 'sk-secret', ...options })

export const userMessage = (text: string): Message => ({ id: 'u', role: 'user', blocks: [{ type: 'text', text }] })

export const request = (overrides: Partial<ModelRequest> = {}): ModelRequest => ({
  system: '',
  messages: [userMessage('hi')],
  tools: [],
  ...overrides,
})

export interface Asked {
  readonly reply: ModelReply
  readonly deltas: ModelDelta[]
}

/** Calls the model, and checks that the fragments add up to the blocks of the reply. */
export async function ask(
  model: Model,
  overrides: Partial<ModelRequest> = {},
  options: { readonly signal?: AbortSignal; readonly retyped?: boolean } = {},
): Promise<Asked> {
  const signal = options.signal ?? new AbortController().signal
  const deltas: ModelDelta[] = []
  const reply = await model.generate(request(overrides), { signal, onDelta: (delta) => deltas.push(delta) })
  if (!options.retyped) expect(addUp(deltas)).toEqual(reply.blocks.flatMap(shown))
  return { reply, deltas }
}

/** Calls a model that must fail; returns the error and the fragments before it. */
export async function askInVain(
  model: Model,
  overrides: Partial<ModelRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<{ error: ModelError; deltas: ModelDelta[] }> {
  const deltas: ModelDelta[] = []
  try {
    await model.generate(request(overrides), { signal, onDelta: (delta) => deltas.push(delta) })
  } catch (error) {
    expect(error).toMatchObject({ name: 'ModelError' })
    const { partial } = error as ModelError
    expect(addUp(deltas)).toEqual((partial?.blocks ?? []).flatMap(shown))
    return { error: error as ModelError, deltas }
  }
  throw new Error('the model answered')
}

/** Serves these frames unchanged and returns the driver's reply. */
export async function read(frames: readonly unknown[], options: Partial<OpenAiChatOptions> = {}): Promise<Asked> {
  return ask(modelAt(await serve({ raw: sse(frames) }), options))
}

/** A body of events as Anthropic and OpenAI's responses send them, each with its name. */
export const namedEvents = (events: readonly { readonly type: string; readonly [field: string]: unknown }[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')

/** A body of frames; strings are inserted unchanged. */
export const sse = (frames: readonly unknown[], end = 'data: [DONE]\n\n'): string =>
  frames.map((frame) => (typeof frame === 'string' ? frame : `data: ${JSON.stringify(frame)}\n\n`)).join('') + end

export const frame = (delta: unknown, finishReason: string | null = null): object => ({
  object: 'chat.completion.chunk',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finishReason }],
})

export const text = (reply: ModelReply): string =>
  reply.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
export const thinking = (reply: ModelReply): string =>
  reply.blocks.flatMap((block) => (block.type === 'thinking' ? [block.text] : [])).join('')
export const calls = (reply: ModelReply): [string, string][] =>
  reply.blocks.flatMap((block): [string, string][] => (block.type === 'call' ? [[block.tool, block.arguments]] : []))

/** The visible part of a block; encrypted reasoning has no text to show. */
function shown(block: Block, index: number): (string | number)[][] {
  if (block.type === 'call') return [[index, 'call', block.tool, block.arguments]]
  return (block.type === 'text' || block.type === 'thinking') && block.text !== ''
    ? [[index, block.type, block.text]]
    : []
}

/** The blocks that fragments add up to. */
function addUp(deltas: readonly ModelDelta[]): (string | number)[][] {
  const blocks = new Map<number, { head: (string | number)[]; text: string }>()
  for (const delta of deltas) {
    if (delta.type === 'call') {
      blocks.set(delta.block, { head: [delta.block, 'call', delta.tool], text: '' })
      continue
    }
    const head = delta.type === 'arguments' ? blocks.get(delta.block)!.head : [delta.block, delta.type]
    const block = blocks.get(delta.block) ?? { head, text: '' }
    expect(block.head).toEqual(head)
    block.text += delta.text
    blocks.set(delta.block, block)
  }
  return [...blocks.values()].map(({ head, text }) => [...head, text])
}

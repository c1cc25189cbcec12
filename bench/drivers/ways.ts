// The same streamed answer read in different ways: each gives the characters of text that it received.
import type { Model } from '@oxbow/core'

export const FORMATS = ['chat', 'messages', 'responses'] as const
export type Format = (typeof FORMATS)[number]
export const WAYS = ['bare parser', 'Oxbow', 'official SDK', 'AI SDK'] as const

type Answer = () => Promise<number>

const QUESTION = 'Say it.'
const key = 'k'

/** Loads only what this way needs. */
export function open(way: string, format: Format, url: string): Promise<Answer> {
  const ways: Readonly<Record<string, (format: Format, url: string) => Promise<Answer>>> = {
    'bare parser': async () => bare(format, url),
    Oxbow: oxbow,
    'official SDK': official,
    'AI SDK': aiSdk,
  }
  return ways[way]!(format, url)
}

const bodies: Readonly<Record<Format, { readonly path: string; readonly body: object }>> = {
  chat: {
    path: '/chat/completions',
    body: { model: 'm', stream: true, messages: [{ role: 'user', content: QUESTION }] },
  },
  messages: {
    path: '/messages',
    body: { model: 'm', stream: true, max_tokens: 8_192, messages: [{ role: 'user', content: QUESTION }] },
  },
  responses: { path: '/responses', body: { model: 'm', stream: true, input: QUESTION } },
}

// biome-ignore lint/suspicious/noExplicitAny: direct access to the text, for this server only.
const textOf: Readonly<Record<Format, (event: any) => string | undefined>> = {
  chat: (event) => event.choices[0]?.delta?.content,
  messages: (event) => (event.type === 'content_block_delta' ? event.delta.text : undefined),
  responses: (event) => (event.type === 'response.output_text.delta' ? event.delta : undefined),
}

/** fetch, one decoder, a line splitter, `JSON.parse`. */
function bare(format: Format, url: string): Answer {
  const { path, body } = bodies[format]
  const take = textOf[format]
  return async () => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const reader = response.body!.getReader()
    const decoder = new TextDecoder()
    let rest = ''
    let received = 0
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return received
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
      rest = lines.pop()!
      for (const line of lines) {
        if (!line.startsWith('data: {')) continue
        received += take(JSON.parse(line.slice(6)))?.length ?? 0
      }
    }
  }
}

async function oxbow(format: Format, url: string): Promise<Answer> {
  const { anthropic, openaiChat, openaiResponses } = await import('@oxbow/models')
  const options = { provider: 'bench', model: 'm', baseUrl: url, apiKey: key }
  const drivers = { chat: openaiChat, messages: anthropic, responses: openaiResponses }
  const model: Model = drivers[format](options)
  const request = {
    system: '',
    messages: [{ id: '1', role: 'user' as const, blocks: [{ type: 'text' as const, text: QUESTION }] }],
    tools: [],
  }
  return async () => {
    let received = 0
    await model.generate(request, {
      signal: new AbortController().signal,
      onDelta(delta) {
        if (delta.type === 'text') received += delta.text.length
      },
    })
    return received
  }
}

async function official(format: Format, url: string): Promise<Answer> {
  if (format === 'messages') {
    const { default: Anthropic } = await import('@anthropic-ai/sdk')
    // It adds /v1 itself.
    const client = new Anthropic({ apiKey: key, baseURL: url.replace(/\/v1$/, ''), maxRetries: 0 })
    return async () => {
      let received = 0
      const stream = await client.messages.create({
        model: 'm',
        max_tokens: 8_192,
        messages: [{ role: 'user', content: QUESTION }],
        stream: true,
      })
      for await (const event of stream) received += textOf.messages(event)?.length ?? 0
      return received
    }
  }
  const { default: OpenAI } = await import('openai')
  const client = new OpenAI({ apiKey: key, baseURL: url, maxRetries: 0 })
  return async () => {
    let received = 0
    const stream =
      format === 'chat'
        ? await client.chat.completions.create({
            model: 'm',
            messages: [{ role: 'user', content: QUESTION }],
            stream: true,
          })
        : await client.responses.create({ model: 'm', input: QUESTION, stream: true })
    for await (const event of stream) received += textOf[format](event)?.length ?? 0
    return received
  }
}

async function aiSdk(format: Format, url: string): Promise<Answer> {
  const { streamText } = await import('ai')
  globalThis.AI_SDK_LOG_WARNINGS = false
  const model = await sdkModel(format, url)
  return async () => {
    let received = 0
    const { textStream } = streamText({ model, prompt: QUESTION, maxOutputTokens: 8_192, maxRetries: 0 })
    for await (const text of textStream) received += text.length
    return received
  }
}

async function sdkModel(format: Format, url: string) {
  if (format === 'messages') {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    return createAnthropic({ apiKey: key, baseURL: url })('m')
  }
  const { createOpenAI } = await import('@ai-sdk/openai')
  const openai = createOpenAI({ apiKey: key, baseURL: url })
  return format === 'chat' ? openai.chat('m') : openai.responses('m')
}

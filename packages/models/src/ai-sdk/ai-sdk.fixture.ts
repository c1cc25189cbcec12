// Servers that answer as Google and Amazon Bedrock do, and AI SDK models that call them.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type AmazonBedrockProvider, createAmazonBedrock } from '@ai-sdk/amazon-bedrock'
import { createGoogle, type GoogleProvider } from '@ai-sdk/google'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { onTestFinished } from 'vitest'

export interface Played {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Written one by one, each in its own turn of the event loop. */
  readonly body: readonly Uint8Array[]
  /** The connection is destroyed after the last piece, or nothing more comes. */
  readonly ending?: 'cut' | 'silence'
}

export interface Player {
  readonly url: string
  readonly requests: {
    readonly path: string
    readonly headers: Readonly<Record<string, unknown>>
    // biome-ignore lint/suspicious/noExplicitAny: the tests assert on the wire format.
    readonly body: any
  }[]
  /** Resolves when a client has left before its answer was complete. */
  readonly left: Promise<void>
}

/** A server that sends these answers in order, closed after the test. */
export async function play(...answers: Played[]): Promise<Player> {
  const requests: Player['requests'] = []
  const left = Promise.withResolvers<void>()
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const { url: path = '', headers } = incoming
    requests.push({ path, headers, body: JSON.parse(Buffer.concat(chunks).toString()) })
    const { status = 200, headers: own, body, ending } = answers.shift() ?? { status: 500, body: [] }
    response.on('close', () => response.writableFinished || left.resolve())
    response.writeHead(status, own).flushHeaders()
    for (const piece of body) {
      response.write(piece)
      await new Promise(setImmediate)
    }
    if (ending === 'cut') incoming.socket.destroySoon()
    else if (ending !== 'silence') response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, left: left.promise }
}

/** An address without a listener. */
export async function nobody(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

export const googleAt = ({ url }: { readonly url: string }): GoogleProvider =>
  createGoogle({ apiKey: 'google-secret', baseURL: url })

/** With a key pair, so that requests are signed for Amazon. */
export const bedrockAt = ({ url }: { readonly url: string }): AmazonBedrockProvider =>
  createAmazonBedrock({
    region: 'us-east-1',
    accessKeyId: 'AKIAEXAMPLE',
    secretAccessKey: 'bedrock-secret',
    baseURL: url,
  })

/** Events as Google streams them. */
export const googleEvents = (events: readonly object[]): Buffer =>
  Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))

/** One event of Google's with these parts. */
export const candidate = (parts: readonly object[], finishReason?: string): object => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...(finishReason ? { finishReason } : {}) }],
  usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 },
  modelVersion: 'gemini-3-pro-preview',
  responseId: 'r1',
})

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)
const header = (value: string) => ({ type: 'string' as const, value })

/** Events as Bedrock streams them, in Amazon's binary frames. */
export const bedrockEvents = (
  events: readonly (readonly [type: string, payload: object])[],
  kind: 'event' | 'exception' = 'event',
): Buffer =>
  Buffer.concat(
    events.map(([type, payload]) =>
      codec.encode({
        headers: {
          ':message-type': header(kind),
          [`:${kind}-type`]: header(type),
          ':content-type': header('application/json'),
        },
        body: Buffer.from(JSON.stringify(payload)),
      }),
    ),
  )

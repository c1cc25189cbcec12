// A model server over real HTTP that sends scripted replies.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Hold, Reply, Script } from './reply.ts'
import { anthropicWire } from './wires/anthropic.ts'
import { openaiChatWire } from './wires/openai-chat.ts'
import { openaiResponsesWire } from './wires/openai-responses.ts'
import type { ModelWire, WireMessage, WireOptions, WireTool } from './wires/wire.ts'

export interface ScriptedModelOptions {
  /** By key; `*` answers for every key without a script. */
  readonly scripts?: Readonly<Record<string, Script<ScriptedRequest>>>
  /** The key of a request. Default: its `model`. */
  readonly key?: (request: ScriptedRequest) => string
  /** Characters per fragment. Default: whole words of the text and of the arguments. */
  readonly chunkChars?: number
  /** Bytes per write to the socket, even where that splits a frame. Default: whole frames. */
  readonly writeBytes?: number
  /** One write per turn of the event loop, so that the client receives them one by one. Default: at full speed. */
  readonly oneWritePerTurn?: boolean
}

/** One request as received. */
export interface ScriptedRequest {
  /** 0 for the first request of the server. */
  readonly number: number
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The parsed body. */
  readonly body: Record<string, unknown>
  readonly model: string
  /** Converted to chat completions from any format; `body` has the original. */
  readonly messages: readonly WireMessage[]
  readonly tools: readonly WireTool[]
  /** The client left before the answer was complete. */
  readonly aborted: boolean
  /** Resolves when the client leaves before the answer was complete; rejects when the answer completed. */
  waitForAbort(): Promise<void>
  /** Resolves when the connection has finished with this request, either way. */
  readonly closed: Promise<void>
}

export interface ScriptedModel {
  /** The base URL, with `/v1`. */
  readonly url: string
  readonly requests: readonly ScriptedRequest[]
  /** The first request that no earlier `nextRequest` returned; waits until there is one. */
  nextRequest(): Promise<ScriptedRequest>
  /** Sets the script of a key, or adds replies to a list. */
  script(key: string, script: Script<ScriptedRequest>): void
  /** Ends every silent stream. */
  release(): void
  /** Throws when replies are left over, or when a request had no reply. */
  assertDrained(): void
  close(): Promise<void>
}

/**
 * Starts a scripted model on 127.0.0.1. It speaks OpenAI's `POST /v1/chat/completions` and `POST /v1/responses` and
 * Anthropic's `POST /v1/messages`, streamed or not. A request without a reply gets a 500 that names the cause.
 *
 * @example
 * const server = await scriptedModel({ scripts: { '*': [{ text: 'hello' }] } })
 * const model = openaiChat({ provider: 'test', model: 'any', baseUrl: server.url, apiKey: 'test' })
 * // … use the model …
 * server.assertDrained()
 * await server.close()
 */
export async function scriptedModel(options: ScriptedModelOptions = {}): Promise<ScriptedModel> {
  const scripts = new Map<string, Script<ScriptedRequest>>()
  const requests: ScriptedRequest[] = []
  const unexpected: string[] = []
  const waiting: ((request: ScriptedRequest) => void)[] = []
  let handedOut = 0
  let released = Promise.withResolvers<void>()

  const setScript = (key: string, script: Script<ScriptedRequest>) => {
    const old = scripts.get(key)
    if (!Array.isArray(script)) scripts.set(key, script)
    else if (Array.isArray(old)) old.push(...script)
    else scripts.set(key, [...script])
  }
  for (const [key, script] of Object.entries(options.scripts ?? {})) setScript(key, script)

  /** The reply, or the reason that there is none. */
  const nextReply = async (request: ScriptedRequest): Promise<Reply | string> => {
    const key = options.key?.(request) ?? request.model
    const script = scripts.get(key) ?? scripts.get('*')
    if (!script) return `no script for ${JSON.stringify(key)}; there are scripts for: ${[...scripts.keys()].join(', ')}`
    if ('always' in script) return script.always
    const next = typeof script === 'function' ? script : (script as Mutable<typeof script>).shift()
    if (next === undefined) return `the replies for ${JSON.stringify(key)} are used up`
    const reply = typeof next === 'function' ? await next(request) : next
    return reply ?? `the script for ${JSON.stringify(key)} has no reply to this request`
  }

  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const parts: Buffer[] = []
    for await (const part of incoming) parts.push(part as Buffer)
    const text = Buffer.concat(parts).toString()
    const [path] = (incoming.url ?? '').split('?')
    const wire = incoming.method === 'POST' ? wires.find((it) => path!.endsWith(it.path)) : undefined
    if (!wire) {
      unexpected.push(`${incoming.method} ${incoming.url}`)
      const known = wires.map((it) => `POST /v1${it.path}`).join(', ')
      return sendJson(response, 404, `{"error":{"message":"the scripted model only knows ${known}"}}`)
    }
    const request = recordRequest(incoming, response, wire, JSON.parse(text), requests.length)
    requests.push(request)
    if (waiting.length > 0) {
      handedOut++
      waiting.shift()!(request)
    }
    const reply = await nextReply(request)
    if (typeof reply === 'string') {
      unexpected.push(`request ${request.number}: ${reply}`)
      return sendJson(response, 500, JSON.stringify({ error: { message: `scripted model: ${reply}` } }))
    }
    await send(reply, wire, request, response, options, () => released.promise)
  }

  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: unknown) => {
      unexpected.push(`the script failed: ${String(error)}`)
      if (response.headersSent) response.destroy()
      else sendJson(response, 500, JSON.stringify({ error: { message: `scripted model: ${String(error)}` } }))
    })
  })
  server.on('connection', (socket) => socket.setNoDelay(true))
  // Longer than any client keeps an idle connection, so that no request meets a connection that is being closed.
  server.keepAliveTimeout = 120_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    nextRequest: () => {
      const request = requests[handedOut]
      if (!request) return new Promise((resolve) => waiting.push(resolve))
      handedOut++
      return Promise.resolve(request)
    },
    script: setScript,
    release: () => {
      released.resolve()
      released = Promise.withResolvers<void>()
    },
    assertDrained: () => {
      const left = [...scripts].flatMap(([key, script]) =>
        Array.isArray(script) && script.length > 0 ? [`${script.length} unused for ${JSON.stringify(key)}`] : [],
      )
      if (left.length + unexpected.length > 0) throw new Error(`scripted model: ${[...unexpected, ...left].join('; ')}`)
    },
    close: () =>
      new Promise((resolve) => {
        released.resolve()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const wires: readonly ModelWire[] = [openaiChatWire, anthropicWire, openaiResponsesWire]

type Mutable<List> = List extends readonly (infer Item)[] ? Item[] : never

function recordRequest(
  incoming: IncomingMessage,
  response: ServerResponse,
  wire: ModelWire,
  body: Record<string, unknown>,
  number: number,
): RecordedRequest {
  let cut = false
  const closed = new Promise<void>((resolve) => response.once('close', resolve))
  return {
    number,
    path: incoming.url ?? '',
    headers: incoming.headers,
    body,
    model: String(body.model),
    messages: wire.messages(body),
    tools: wire.tools(body),
    get aborted() {
      return response.destroyed && !response.writableFinished && !cut
    },
    waitForAbort: async () => {
      await closed
      if (cut) throw new Error(`request ${number} was cut by its script, not aborted`)
      if (response.writableFinished) throw new Error(`request ${number} was answered completely, not aborted`)
    },
    closed,
    cut: () => {
      cut = true
      response.socket?.destroySoon()
    },
  }
}

/** The server side of a request. */
interface RecordedRequest extends ScriptedRequest {
  /** Destroys the connection after everything written has been sent. */
  cut(): void
}

const sendJson = (response: ServerResponse, status: number, body: string) => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}

async function send(
  reply: Reply,
  wire: ModelWire,
  request: RecordedRequest,
  response: ServerResponse,
  options: ScriptedModelOptions,
  released: () => Promise<void>,
): Promise<void> {
  const streamed = request.body.stream === true
  const wireOptions: WireOptions = {
    id: `reply-${request.number}`,
    model: request.model,
    body: request.body,
    chunkChars: options.chunkChars,
  }
  await held(reply.beforeHeaders)
  if (response.destroyed) return
  if (reply.body !== undefined || (reply.status ?? 200) >= 400) {
    const body = reply.body ?? { error: { message: `scripted status ${reply.status}` } }
    const isText = typeof body === 'string'
    response.writeHead(reply.status ?? 200, {
      'content-type': isText ? 'text/plain' : 'application/json',
      ...reply.headers,
    })
    response.end(isText ? body : JSON.stringify(body))
    return
  }
  if (!streamed && reply.raw === undefined)
    return sendJson(response, reply.status ?? 200, wire.json(reply, wireOptions))

  response.writeHead(reply.status ?? 200, { 'content-type': 'text/event-stream', ...reply.headers })
  response.flushHeaders()
  await held(reply.beforeFirstByte)
  const chunks = reply.raw === undefined ? wire.frames(reply, wireOptions) : rawChunks(reply.raw)
  let bytes = 0
  for (let i = 0; i <= chunks.length; i++) {
    if (reply.hold?.atChunk === i) await held(reply.hold.gate)
    if (reply.silentAfterChunks === i) await Promise.race([request.closed, released()])
    if (reply.cutAfterChunks === i) return request.cut()
    if (response.destroyed) return
    if (i === chunks.length) break
    if (i > 0) await held(reply.betweenChunks)
    const extra = ': keep-alive\n\n'.repeat(reply.keepAlives ?? 0)
    const garbage = reply.garbageAt === i ? 'data: {"choices":[{"delta\n\n' : ''
    for (const chunk of reply.duplicateAt === i ? [chunks[i]!, chunks[i]!] : [chunks[i]!]) {
      let data = Buffer.concat([Buffer.from(extra + garbage), Buffer.from(chunk as string)])
      const cut = reply.cutAfterBytes !== undefined && bytes + data.length >= reply.cutAfterBytes
      if (cut) data = data.subarray(0, reply.cutAfterBytes! - bytes)
      bytes += data.length
      await write(data, response, options)
      if (cut) return request.cut()
    }
  }
  response.end()
}

function rawChunks(raw: NonNullable<Reply['raw']>): readonly (string | Uint8Array)[] {
  if (typeof raw === 'string') return raw.match(/[\s\S]*?(?:\n\n|\r\n\r\n|$)/g)?.filter((frame) => frame !== '') ?? []
  return raw instanceof Uint8Array ? [raw] : raw
}

async function write(data: Buffer, response: ServerResponse, options: ScriptedModelOptions): Promise<void> {
  const size = options.writeBytes ?? data.length
  for (let start = 0; start < data.length; start += size) {
    if (response.destroyed) return
    if (!response.write(data.subarray(start, start + size))) await drained(response)
    if (options.oneWritePerTurn) await new Promise(setImmediate)
  }
}

const drained = (response: ServerResponse) =>
  new Promise<void>((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.once('drain', done).once('close', done)
  })

function held(hold: Hold | undefined): Promise<void> | undefined {
  if (hold === undefined) return undefined
  return typeof hold === 'number' ? new Promise((resolve) => setTimeout(resolve, hold)) : hold.pass()
}

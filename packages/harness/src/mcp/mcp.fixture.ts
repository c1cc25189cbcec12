// Servers written message by message, because no library would misbehave like this, and an agent that uses them.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { memory } from '@oxbow/backends'
import { type AgentDefinition, agent, createEngine, type Event, type Session } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { type Reply, type ScriptedModel, scriptedModel } from '@oxbow/testing'
import { onTestFinished } from 'vitest'
import {
  type McpCapability,
  type McpNotice,
  type McpOptions,
  type McpServer,
  type McpStdioServer,
  mcp,
} from '../index.ts'

export interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: {
    readonly name?: string
    readonly arguments?: Record<string, unknown>
    readonly [key: string]: unknown
  }
  readonly result?: unknown
}

export interface ServerTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: unknown
  readonly annotations?: Record<string, unknown>
}

type Answer = (message: Message, request: IncomingMessage, response: ServerResponse) => unknown

export interface RawServer {
  readonly url: string
  /** The received messages, without the handshake. */
  readonly received: Message[]
  readonly headers: IncomingMessage['headers'][]
  tools: ServerTool[]
  /** The known session; any other one is answered with 404. */
  session: string
  /** Called before everything else: may answer a request itself, and then returns true. */
  intercept: Answer | undefined
  stop(): Promise<void>
  start(): Promise<void>
}

const tools: ServerTool[] = [
  { name: 'look', description: 'Looks.', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
  { name: 'change', description: 'Changes.', inputSchema: { type: 'object' } },
]

/** A server of 2025-11-25 over streamable HTTP, which answers with JSON. `call` returns the result of `tools/call`. */
export async function rawServer(
  call: Answer = () => ({ content: [{ type: 'text', text: 'seen' }] }),
): Promise<RawServer> {
  let http: Server
  let port = 0
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = request.method === 'POST' ? await text(request) : ''
    // Form-encoded requests go to an authorization server.
    const message = (body.startsWith('{') ? JSON.parse(body) : {}) as Message
    if ((await it.intercept?.(message, request, response)) === true) return
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method } = message
    const reply = (content: unknown): void => {
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': it.session })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(content as object) }))
    }
    if (method === 'server/discover') return reply({ error: { code: -32601, message: 'Method not found' } })
    if (method === 'initialize')
      return reply({
        result: {
          protocolVersion: '2025-11-25',
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'raw', version: '1.0.0' },
        },
      })
    it.received.push(message)
    it.headers.push(request.headers)
    if (request.headers['mcp-session-id'] !== it.session) return void response.writeHead(404).end()
    if (id === undefined) return void response.writeHead(202).end()
    if (method === 'tools/list') return reply({ result: { tools: it.tools } })
    const result = await call(message, request, response)
    if (result !== undefined) reply({ result })
  }
  const it: RawServer = {
    url: '',
    received: [],
    headers: [],
    tools,
    session: 'first',
    intercept: undefined,
    async stop() {
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
    async start() {
      http = createServer((request, response) => void handle(request, response))
      await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve))
      port = (http.address() as AddressInfo).port
    },
  }
  await it.start()
  onTestFinished(() => it.stop())
  return Object.assign(it, { url: `http://127.0.0.1:${port}/mcp` })
}

/** A program that speaks over its standard input and output, and misbehaves as its argument says. */
export const program = (behaviour: string, more: Partial<McpStdioServer> = {}): McpStdioServer => ({
  command: process.execPath,
  args: [fileURLToPath(new URL('./program.fixture.ts', import.meta.url)), behaviour],
  tools: ['*'],
  ...more,
})

export interface Connected {
  readonly servers: McpCapability
  readonly notices: McpNotice[]
}

export async function connected(given: Record<string, McpServer>, options: McpOptions = {}): Promise<Connected> {
  const notices: McpNotice[] = []
  const servers = await mcp(given, { onNotice: (it) => notices.push(it), ...options })
  onTestFinished(() => servers.close())
  return { servers, notices }
}

export interface Talking extends Connected {
  readonly session: Session
  readonly model: ScriptedModel
  events(): Promise<Event[]>
  /** The outcomes of the calls, in order. */
  finished(): Promise<Event<'call.finished'>[]>
}

export const callOf = (name: string, input: Record<string, unknown> = {}): Reply => ({
  calls: [{ name, arguments: input }],
})

/** An agent with the servers and permission for all their tools. */
export async function talking(
  given: Record<string, McpServer>,
  replies: readonly Reply[],
  definition: Partial<AgentDefinition> = {},
): Promise<Talking> {
  const { servers, notices } = await connected(given)
  const model = await scriptedModel({ scripts: { model: replies } })
  const backend = memory()
  const engine = createEngine({
    backend,
    agents: [
      agent({
        name: 'agent',
        model: openaiChat({ provider: 'test', model: 'model', baseUrl: model.url }),
        instructions: 'You work.',
        capabilities: [servers],
        mode: 'bypass',
        ...definition,
      }),
    ],
  })
  onTestFinished(async () => {
    await engine.stop(0)
    await backend.close()
    await model.close()
  })
  const session = engine.session({ user: 'ann', session: 's1' })
  const events = (): Promise<Event[]> => session.events(0)
  return {
    servers,
    notices,
    session,
    model,
    events,
    finished: async () => (await events()).filter((it) => it.type === 'call.finished'),
  }
}

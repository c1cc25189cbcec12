// The MCP server of one request: a tool for each agent, and the caller's sessions as resources.
import { hash, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import {
  type CallToolResult,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  ResourceTemplate,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { type Engine, findTurn, isEvent, type SessionItem, type TurnResult } from '@oxbow/core'
import { isId } from '@oxbow/core/internal'
import { z } from 'zod'
import { WAY_OUT } from '../chat/chat.ts'
import { sessionForRetry } from '../chat/session-for-retry.ts'
import { existing } from '../existing-session.ts'
import { failureOfError, failureOfResult, failureOfStop, sentence, unknownCalls } from '../failures.ts'
import { HttpError } from '../http/errors.ts'
import { id, messageText, only, unknownOutcomes } from '../http/schemas.ts'
import type { TurnSlots } from '../identity/limits/turn-slots.ts'
import type { Caller } from '../principal.ts'
import { shown } from '../sessions/reading.ts'
import type { Audience } from '../stream/audience.ts'

export interface AgentServing {
  readonly engine: Engine
  readonly audience: Audience
  readonly slots: TurnSlots
  readonly maxMessageLength: number
  readonly report: (error: unknown) => string
  /** Calls that clients of the older protocol may still cancel, by `nameOfCall`. */
  readonly running: Map<string, AbortController>
}

/** The caller, and the connection of the request. */
export interface McpCaller extends Caller {
  /** The client id that we gave a client of the older protocol. */
  readonly client: string | undefined
  readonly outgoing: ServerResponse
}

/** Names a call among those of its client. Without a client id no later request can refer to the call. */
export const nameOfCall = ({ owner, client }: McpCaller, requestId: string | number): string | undefined =>
  client && JSON.stringify([owner.tenant, owner.user, client, requestId])

const PROGRESS_MS = 250
const LISTED_SESSIONS = 50

export function agentServer(deps: AgentServing, caller: McpCaller & { readonly era: 'legacy' | 'modern' }): McpServer {
  const server = new McpServer({ name: 'oxbow', version: '0.1.0' })
  const inputSchema = only({
    message: messageText(deps.maxMessageLength).describe('The message to the agent.'),
    session_id: id
      .optional()
      .describe('The session_id of an earlier answer, to continue that conversation. Default: a new conversation.'),
    turn_id: id.optional().describe('Makes a retry safe: the same id returns the same turn.'),
  })
  for (const [name, tool] of toolNames([...deps.engine.agents.keys()]))
    server.registerTool(
      tool,
      {
        title: name,
        description: `Sends a message to the agent ${name} and waits for its answer.`,
        inputSchema,
        // An agent may use any of its tools.
        annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
        outputSchema: z.object({
          session_id: z.string().describe('Send it to continue this conversation.'),
          turn_id: z.string(),
          status: z.enum(['finished', 'waiting', 'cancelled', 'failed']),
          reason: z.string().optional().describe('Why the answer is incomplete, for example `length`.'),
          unknown_outcomes: unknownOutcomes,
        }),
      },
      (input, context) => ask(deps, caller, name, input, context),
    )
  server.registerResource(
    'session',
    new ResourceTemplate('oxbow://sessions/{sessionId}', {
      list: async () => {
        const sessions = await deps.engine.sessions({ ...caller.owner, limit: LISTED_SESSIONS })
        return {
          resources: sessions.map(({ key, title }) => ({
            uri: `oxbow://sessions/${encodeURIComponent(key.session)}`,
            name: title === '' ? key.session : title,
            mimeType: 'application/json',
          })),
        }
      },
    }),
    { title: 'Sessions', description: 'Your conversations, as the model sees them.', mimeType: 'application/json' },
    async (uri, { sessionId }) => {
      const { messages } = await existing(deps.engine, sessionOfUri(uri, String(sessionId)), caller.owner).catch(
        (error: unknown) => {
          throw error instanceof HttpError ? new ResourceNotFoundError(uri.href, error.message) : error
        },
      )
      return { contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify(messages.map(shown)) }] }
    },
  )
  return server
}

const MAX_NAME = 64

/**
 * Agent names are ids, which may be long and contain dots. Names that would collide as tool names get a digest suffix.
 */
function toolNames(agents: readonly string[]): [agent: string, tool: string][] {
  const plain = agents.map((it) => `ask_${it.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`)
  const isFit = (name: string): boolean => name.length <= MAX_NAME && plain.indexOf(name) === plain.lastIndexOf(name)
  return agents.map((agent, at) => {
    const name = plain[at]!
    if (isFit(name)) return [agent, name]
    const digest = hash('sha256', agent).slice(0, 8)
    return [agent, `${name.slice(0, MAX_NAME - digest.length - 1)}_${digest}`]
  })
}

function sessionOfUri({ href }: URL, encoded: string): string {
  const fault = new ProtocolError(ProtocolErrorCode.InvalidParams, `${href} is not the URI of a session.`)
  try {
    const session = decodeURIComponent(encoded)
    if (isId(session)) return session
  } catch {
    throw fault
  }
  throw fault
}

interface Asked {
  readonly message: string
  readonly session_id?: string | undefined
  readonly turn_id?: string | undefined
}

async function ask(
  { engine, audience, slots, running, report }: AgentServing,
  caller: McpCaller & { readonly era: 'legacy' | 'modern' },
  agent: string,
  { message, session_id, turn_id }: Asked,
  { mcpReq }: ServerContext,
): Promise<CallToolResult> {
  const { owner, principal, outgoing } = caller
  const known = nameOfCall(caller, mcpReq.id)
  // Request ids are the client's own: the same id with the same words is the same turn. A restarted client counts from
  // the beginning again.
  const asked = JSON.stringify([known, agent, message, session_id ?? null])
  const retryKey = turn_id ?? (known && `mcp-${hash('sha256', asked).slice(0, 32)}`)
  const turnId = retryKey ?? randomUUID()
  const sessionId = session_id ?? (retryKey === undefined ? randomUUID() : sessionForRetry(owner.user, retryKey))
  const answer: Answer = (status, text, more) => ({
    content: [{ type: 'text', text }],
    structuredContent: { session_id: sessionId, turn_id: turnId, status, ...more },
    ...((status === 'failed' || status === 'cancelled') && { isError: true }),
  })

  let release: (() => void) | undefined
  let leave: ((over: boolean) => void) | undefined
  const stop = new AbortController()
  try {
    const session = engine.session({ ...owner, session: sessionId }, { agent })
    const state = await session.state()
    if (state.seq > 0 && state.agent !== agent)
      throw new HttpError(409, 'other_agent', `Session ${sessionId} is a conversation with the agent ${state.agent}.`)
    release = slots.take(principal, session.key, turnId)
    leave = audience.enter(session, turnId, findTurn(state, turnId) === undefined ? 'starter' : 'reconnected')
    const left = (): void => leave?.(false)
    if (outgoing.destroyed) left()
    outgoing.once('close', left)
    if (known !== undefined) running.set(known, stop)
    // In the newer protocol a client cancels by closing the stream; in the older one closing it means nothing.
    const cancelled = caller.era === 'modern' ? AbortSignal.any([stop.signal, mcpReq.signal]) : stop.signal
    cancelled.addEventListener('abort', () => {
      session.interrupt({ turnId, principal, reason: 'cancelled by the client' }).catch(report)
    })
    const turn = session.stream(message, { turnId, principal, surface: 'mcp' })
    // Handled below; a failure must not also break the reader of the stream.
    turn.result.catch(() => {})
    const show = progressOf(mcpReq)
    for await (const item of turn) await show(item)
    return resultOf(await turn.result, answer)
  } catch (error) {
    if (error instanceof HttpError) return answer('failed', error.message)
    return answer('failed', sentence(failureOfError(error, report)))
  } finally {
    leave?.(true)
    release?.()
    if (known !== undefined) running.delete(known)
  }
}

type Answer = (status: 'finished' | 'waiting' | 'cancelled' | 'failed', text: string, more?: object) => CallToolResult

function resultOf(result: TurnResult, answer: Answer): CallToolResult {
  const { status, reason, text } = result
  if (status === 'cancelled') return answer('cancelled', sentence(failureOfStop(reason)))
  if (status === 'paused')
    return answer(
      'waiting',
      `${text}\nThe agent is waiting (${reason}). ${WAY_OUT[reason as keyof typeof WAY_OUT]}, then repeat this call with the same turn_id.`.trim(),
    )
  const empty = failureOfResult(result)
  if (empty !== undefined) return answer('failed', empty.message)
  const unknown = unknownCalls(result)
  return answer('finished', text, {
    ...(reason !== 'completed' && { reason }),
    ...(unknown && { unknown_outcomes: unknown }),
  })
}

/** Sends progress to a client that requested it: each tool call, and the text as it is written. */
function progressOf({ _meta, notify }: ServerContext['mcpReq']): (item: SessionItem) => Promise<void> {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return async () => {}
  let progress = 0
  let text = ''
  let shownAt = 0
  const say = (message: string): Promise<void> =>
    notify({ method: 'notifications/progress', params: { progressToken, progress: ++progress, message } })
  const flush = async (): Promise<void> => {
    if (text === '') return
    const written = text
    text = ''
    shownAt = performance.now()
    await say(written)
  }
  return async (item) => {
    if (item.type === 'text.delta') {
      text += item.text
      if (performance.now() - shownAt > PROGRESS_MS) await flush()
    } else if (item.type === 'progress.delta') await say(item.text)
    else if (item.type === 'call.delta') await say(`calls ${item.tool}`)
    else if (isEvent(item)) await flush()
  }
}

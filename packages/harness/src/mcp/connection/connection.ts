// One supervised server: connected, listed, and reconnected when the connection is lost. A request is never sent twice
// unless the server is known not to have executed it.
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '@modelcontextprotocol/client'
import { OxbowError } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { authProvider } from '../auth/oauth.ts'
import { currentCall, type Elicitation } from '../elicitation.ts'
import { mayBeUnknownSession, mcpError, type Trouble, troubleOf, wordsFor } from '../errors.ts'
import {
  CALL_TIMEOUT_MS,
  CONNECT_TIMEOUT_MS,
  isStdio,
  type McpOptions,
  type McpServer,
  type McpState,
  type McpStatus,
} from '../options.ts'
import { secretsRedactor } from '../redact.ts'
import type { Listed } from '../tools/listing.ts'
import { httpTransport } from '../transport/http-transport.ts'
import type { Unusable } from '../transport/repair.ts'
import { aborted, chosenEra, DialError, type Dialled, dial, faultIn, noiseOf, type Offers, wordsIn } from './dial.ts'

const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 30_000
/** A connection that lasted this long was good: the next delay is short again. */
const STABLE_MS = 30_000
const MAX_NOTICE = 2_000
/** Within one connection: the server may have moved to another authorization server since. */
const MAX_SIGN_INS = 2

export interface Request {
  readonly signal: AbortSignal
  readonly asking?: Elicitation
  /** True when it changes nothing: a lost answer then leaves no doubt. */
  readonly onlyReads: boolean
  /** The server executes a repetition only once: a request without an answer is sent again. */
  readonly mayRepeat?: boolean
  readonly what: string
}

export interface Connection {
  readonly name: string
  /** @throws OxbowError `mcp_unreachable` `mcp_unauthorized` … */
  open(): Promise<void>
  /** The server's current tools, resources and prompts. */
  offers(): Offers
  /** @throws OxbowError `outcome_unknown` when no answer says whether the call took effect */
  request<T>(request: Request, work: (client: Client) => Promise<T>): Promise<T>
  health(): Omit<McpStatus, 'server' | 'required' | 'tools' | 'skipped' | 'added' | 'gone'>
  close(): Promise<void>
}

export function connection(name: string, server: McpServer, options: McpOptions): Connection {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, onNotice } = options
  const redact = secretsRedactor(server)
  const notice = (level: 'info' | 'warn', message: string): void =>
    onNotice?.({ level, server: name, message: redact(message).slice(0, MAX_NOTICE) })
  let state: McpState = 'connecting'
  let line: Dialled | undefined
  let opening: Promise<Dialled> | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let lastOffers: Offers = { tools: [], hasResources: false, hasPrompts: false }
  let lastVerified: string | undefined
  let problem: { code: string; message: string } | undefined
  /** Cancels the connection attempt when the connection is closed. */
  const closing = new AbortController()
  const isClosed = (): boolean => closing.signal.aborted

  const verified = (): void => {
    lastVerified = new Date().toISOString()
    problem = undefined
  }
  const failed = (fault: OxbowError): OxbowError => {
    problem = { code: fault.code, message: fault.message }
    return fault
  }

  /** The error without the name of the server. */
  function wordsOf(error: unknown): string {
    const [cause, said] = error instanceof DialError ? [error.cause, error.said] : [error, '']
    return [wordsFor(cause, redact), redact(said)].filter((it) => it !== '').join('; server output:  ')
  }

  function faultOf(trouble: Trouble, error: unknown): OxbowError {
    const cause = error instanceof DialError ? error.cause : error
    if (cause instanceof OxbowError && cause.code !== 'mcp_too_long') return cause
    const words = wordsOf(error)
    return trouble === 'unauthorized'
      ? mcpError('mcp_unauthorized', `MCP server ${name}: sign-in required: ${words}. Check its headers or auth.`)
      : mcpError('mcp_unreachable', `MCP server ${name}: unreachable: ${words}`, { retryable: true })
  }

  function listChanged(tools: readonly Listed[] | Error): void {
    if (tools instanceof Error) {
      notice('warn', `Cannot read the changed tool list: ${wordsFor(tools, redact)}`)
      return
    }
    lastOffers = { ...lastOffers, tools }
    verified()
    notice('info', 'The tool list changed. Running agents keep the tools they were built with.')
  }

  function unusable(method: string, entries: readonly Unusable[]): void {
    const list = entries.slice(0, 5).map((it) => `${JSON.stringify(it.name.slice(0, 128))} (${it.reason})`)
    if (entries.length > list.length) list.push(`and ${entries.length - list.length} more`)
    if (list.length > 0) notice('warn', `Skipped in ${method}: ${list.join(', ')}.`)
  }

  async function connectOnce(): Promise<Dialled> {
    let era = chosenEra(server)
    let deadline = performance.now() + connectTimeoutMs
    for (let signIns = 0; ; ) {
      const timeoutMs = Math.max(1, Math.round(deadline - performance.now()))
      try {
        return await dial(
          server,
          era,
          { signal: closing.signal, timeoutMs },
          {
            onTools: (_, tools) => listChanged(tools),
            onUnusable: unusable,
            onClosed: lose,
          },
        )
      } catch (error) {
        const trouble = troubleOf((error as DialError).cause)
        if (trouble === 'unauthorized' && signIns < MAX_SIGN_INS) {
          signIns++
          // After a person has signed in, the connection is retried with a fresh time limit.
          await signIn(error)
          deadline = performance.now() + connectTimeoutMs
          continue
        }
        // Servers of older libraries exit, fail or go silent at the first unknown request.
        const mayFallBack = era === 'auto' && server.protocolVersion === undefined && performance.now() < deadline
        if (!mayFallBack || isClosed() || (trouble !== 'unknown' && trouble !== 'refused')) throw error
        era = 'legacy'
      }
    }
  }

  async function signIn(error: unknown): Promise<void> {
    if (isStdio(server) || server.auth === undefined) throw error
    const callback = authProvider(server.auth, server.url).callback?.()
    if (callback === undefined) throw error
    const query = await Promise.race([callback, aborted(closing.signal)])
    await httpTransport(server).finishAuth(query)
  }

  /** The line; opened if there is none. */
  function ensure(): Promise<Dialled> {
    if (isClosed()) return Promise.reject(closed(name))
    if (line !== undefined) return Promise.resolve(line)
    opening ??= (async () => {
      clearTimeout(timer)
      try {
        const made = await connectOnce()
        line = made
        lastOffers = made.offers
        state = 'connected'
        verified()
        return made
      } catch (error) {
        const cause = error instanceof DialError ? error.cause : error
        const fault = failed(isClosed() ? closed(name) : faultOf(troubleOf(cause), error))
        failures++
        if (state === 'reconnecting') retryLater()
        throw fault
      } finally {
        opening = undefined
      }
    })()
    return opening
  }

  function lose(which: Dialled, error: unknown): void {
    if (which.lost) return
    which.lost = true
    if (line === which) line = undefined
    // Other calls may still receive their answers on it.
    if (which.calls.size === 0) void hangUp(which)
    if (isClosed()) return
    if (performance.now() - which.since > STABLE_MS) failures = 0
    state = 'reconnecting'
    const ended = new DialError(faultIn(which.transport) ?? error, wordsIn(which.transport))
    failed(faultOf(troubleOf(error), ended))
    notice('warn', `${wordsOf(ended)}. Retrying in ${retryLater()} s.`)
  }

  /** @returns the wait in seconds, as text */
  function retryLater(): string {
    const isFirst = lastVerified === undefined
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** failures, MAX_WAIT_MS) * (0.75 + Math.random() / 2)
    clearTimeout(timer)
    if (!isClosed())
      timer = setTimeout(() => {
        ensure().then(
          () => notice('info', isFirst ? 'Connected. Agents built from now on have its tools.' : 'Connected again.'),
          () => {},
        )
      }, waitMs).unref()
    return (waitMs / 1_000).toFixed(1)
  }

  async function hangUp({ client, transport }: Dialled): Promise<void> {
    // The session ended with its server.
    if ('terminateSession' in transport) await withinASecond(transport.terminateSession?.())
    await client.close().catch(() => {})
  }

  async function attempt<T>(on: Dialled, { asking }: Request, work: (client: Client) => Promise<T>): Promise<T> {
    const mark = {}
    on.calls.add(mark)
    if (asking !== undefined) on.asking.add(asking)
    try {
      const result = await (asking === undefined ? work(on.client) : currentCall.run(asking, () => work(on.client)))
      verified()
      return result
    } finally {
      on.calls.delete(mark)
      if (asking !== undefined) on.asking.delete(asking)
      if (on.lost && on.calls.size === 0) void hangUp(on)
    }
  }

  /** A restarted server answers 400 to any request of its old session. A ping distinguishes that from a bad request. */
  async function hasLostSession({ client, transport }: Dialled, error: unknown, signal: AbortSignal): Promise<boolean> {
    if (!mayBeUnknownSession(error) || transport.sessionId === undefined) return false
    return client.ping({ signal, timeout: CALL_TIMEOUT_MS }).then(() => false, mayBeUnknownSession)
  }

  return {
    name,
    async open() {
      try {
        await ensure()
      } catch (error) {
        if (server.required === false && !isClosed()) {
          state = 'reconnecting'
          const words = (error as Error).message.replace(`MCP server ${name}: `, '')
          notice('warn', `${words}. Continuing without its tools. Retrying in ${retryLater()} s.`)
        }
        throw error
      }
    },
    offers: () => lastOffers,
    async request(request, work) {
      const { signal, onlyReads, mayRepeat = false, what } = request
      for (let again = false; ; again = true) {
        const on = await Promise.race([ensure(), aborted(signal)])
        try {
          return await attempt(on, request, work)
        } catch (error) {
          signal.throwIfAborted()
          let trouble = troubleOf(error)
          if (!again && trouble === 'refused' && (await hasLostSession(on, error, signal))) trouble = 'session'
          if (trouble === 'session' || trouble === 'not_sent') lose(on, error)
          // The server did not execute the request, which may succeed in a new session, after sign-in or on a new
          // connection.
          if (!again && trouble === 'unauthorized') {
            await signIn(error).catch(() => {
              throw failed(faultOf(trouble, error))
            })
            continue
          }
          if (!again && (trouble === 'session' || trouble === 'not_sent')) continue
          if (!again && trouble === 'unknown' && mayRepeat) continue
          const words = wordsFor(faultIn(on.transport) ?? error, redact)
          if (trouble === 'refused') {
            verified()
            throw mcpError('mcp_refused', `MCP server ${name}: ${what} refused: ${words}`)
          }
          if (trouble !== 'unknown') throw failed(faultOf(trouble, error))
          const lead = `MCP server ${name}: no usable answer to ${what}: ${words}`
          throw failed(
            onlyReads
              ? mcpError('mcp_no_answer', lead, { retryable: true })
              : mcpError('outcome_unknown', `${lead}. It may have taken effect. Check before repeating it.`),
          )
        }
      }
    },
    health() {
      const { client, transport } = line ?? {}
      const implementation = client?.getServerVersion()
      const protocolVersion = client?.getNegotiatedProtocolVersion()
      const noise = noiseOf(transport)
      return {
        transport: isStdio(server) ? 'stdio' : (server.transport ?? 'http'),
        state,
        ...(implementation && { implementation: { name: implementation.name, version: implementation.version } }),
        ...defined({ protocolVersion, lastVerified, problem }),
        ...(noise !== undefined && noise.lines > 0 && { stdoutNoise: { ...noise, last: redact(noise.last ?? '') } }),
      }
    },
    async close() {
      if (isClosed()) return
      closing.abort()
      state = 'closed'
      clearTimeout(timer)
      const open = line
      line = undefined
      await opening?.catch(() => {})
      if (open !== undefined && !open.lost) {
        open.lost = true
        await hangUp(open)
      }
    },
  }
}

const closed = (name: string): OxbowError => mcpError('mcp_closed', `MCP server ${name}: the connection was closed.`)

async function withinASecond(work: Promise<unknown> | undefined): Promise<void> {
  await Promise.race([work, delay(1_000, undefined, { ref: false })]).catch(() => {})
}

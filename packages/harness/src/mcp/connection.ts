// One server, supervised: connected, listed, and connected again when it was lost. What was sent is never sent twice, unless
// the server is known not to have taken it.
import { setTimeout as delay } from 'node:timers/promises'
import { Client, type ClientOptions, type JsonSchemaValidator, type Tool } from '@modelcontextprotocol/client'
import { OxbowError } from '@oxbow/core'
import { authProvider } from './auth/oauth.ts'
import { type Asking, answerTo, currentCall } from './elicitation.ts'
import { mcpError, type Trouble, troubleOf, wordsFor } from './errors.ts'
import {
  CONNECT_TIMEOUT_MS,
  isStdio,
  type McpOptions,
  type McpServer,
  type McpState,
  type McpStatus,
} from './options.ts'
import { redactor } from './redact.ts'
import { type Listed, listed } from './tools/listing.ts'
import { type HttpTransport, httpTransport } from './transport/http-transport.ts'
import { type StdioTransport, stdioTransport } from './transport/stdio-transport.ts'

const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 30_000
/** A connection that has lived so long was a good one: the next wait is short again. */
const STABLE_MS = 30_000
/** How long a program may keep silent about a question of the newer protocol before it is taken to know only the older. */
const PROBE_MS = 5_000
const MAX_NOTICE = 2_000
/** In one connection: a server may have moved to another authorization server in the meantime. */
const MAX_SIGN_INS = 2

export interface Request {
  readonly signal: AbortSignal
  readonly asking?: Asking
  /** It changes nothing: an answer that was lost leaves no doubt behind. */
  readonly onlyReads: boolean
  readonly what: string
}

export interface Connection {
  readonly name: string
  /** @throws OxbowError `mcp_unreachable` `mcp_unauthorized` … */
  open(): Promise<void>
  /** What the server offers now. */
  offers(): Offers
  /** @throws OxbowError `outcome_unknown` when nobody can say what became of it */
  request<T>(request: Request, work: (client: Client) => Promise<T>): Promise<T>
  health(): Omit<McpStatus, 'server' | 'tools' | 'skipped' | 'added' | 'gone'>
  close(): Promise<void>
}

export interface Offers {
  readonly tools: readonly Listed[]
  readonly hasResources: boolean
  readonly hasPrompts: boolean
}

type AnyTransport = HttpTransport | StdioTransport

/** One connection of the library, with what is under way on it. */
interface Line {
  readonly client: Client
  readonly transport: AnyTransport
  readonly since: number
  readonly calls: Set<object>
  readonly asking: Set<Asking>
  lost: boolean
}

export function connection(name: string, server: McpServer, options: McpOptions): Connection {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, onNotice } = options
  const redact = redactor(server)
  const notice = (level: 'info' | 'warn', message: string): void =>
    onNotice?.({ level, server: name, message: redact(message).slice(0, MAX_NOTICE) })
  let state: McpState = 'connecting'
  let line: Line | undefined
  let opening: Promise<Line> | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let offers: Offers = { tools: [], hasResources: false, hasPrompts: false }
  let lastVerified: string | undefined
  /** The last words of a program that did not start. */
  let said = ''
  let problem: { code: string; message: string } | undefined
  /** Ends whatever is being opened when the connection is closed. */
  const closing = new AbortController()
  const isClosed = (): boolean => closing.signal.aborted

  const verified = (): void => {
    lastVerified = new Date().toISOString()
  }

  const faultOf = (trouble: Trouble, error: unknown, said = ''): OxbowError => {
    if (error instanceof OxbowError) return error
    const words = [wordsFor(error, redact), redact(said)].filter((it) => it !== '').join('; it said: ')
    if (trouble === 'unauthorized')
      return mcpError(
        'mcp_unauthorized',
        `The MCP server ${name} wants a sign-in: ${words}. Check its headers or auth.`,
      )
    return mcpError('mcp_unreachable', `The MCP server ${name} cannot be reached: ${words}`, { retryable: true })
  }

  async function dial(mode: 'auto' | 'legacy'): Promise<Line> {
    const transport: AnyTransport = isStdio(server) ? stdioTransport(server) : httpTransport(server)
    const calls = new Set<object>()
    const asking = new Set<Asking>()
    const client = new Client(
      { name: 'oxbow', version: '0.1.0' },
      {
        // Only forms: a yes or no can be given to them, while nobody can be sent to an address.
        capabilities: { elicitation: { form: { applyDefaults: true } } },
        versionNegotiation: {
          mode,
          ...(isStdio(server) && { probe: { timeoutMs: Math.min(PROBE_MS, connectTimeoutMs) } }),
        },
        jsonSchemaValidator: noValidator,
        listChanged: {
          tools: { onChanged: (error, tools) => void listChanged(error, tools) },
        },
      },
    )
    client.setRequestHandler('elicitation/create', (request) => answerTo(request, asking, server.onQuestion))
    client.onerror = () => {}
    const made: Line = { client, transport, since: performance.now(), calls, asking, lost: false }
    client.onclose = () => lose(made, new Error('it has closed the connection'))
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(connectTimeoutMs)])
    try {
      await Promise.race([client.connect(transport, { timeout: connectTimeoutMs, signal }), aborted(signal)])
      const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
      const limits = { signal, timeout: connectTimeoutMs }
      const offered = tools === undefined ? [] : (await client.listTools(undefined, limits)).tools
      offers = {
        tools: await listed(offered, server),
        hasResources: resources !== undefined,
        hasPrompts: prompts !== undefined,
      }
    } catch (error) {
      made.lost = true
      // A program that is still to end has not said its last word.
      await transport.close().catch(() => {})
      said = 'said' in transport ? transport.said() : ''
      throw error
    }
    void client.autoOpenedSubscription?.closed.then((how) => {
      if (how !== 'local') lose(made, new Error('it has ended its stream of changes'))
    })
    return made
  }

  async function connectOnce(): Promise<Line> {
    let mode: 'auto' | 'legacy' = 'auto'
    for (let signIns = 0; ; ) {
      try {
        return await dial(mode)
      } catch (error) {
        const trouble = troubleOf(error)
        // A person has been sent to sign in: with what they bring back the connection is tried again.
        if (trouble === 'unauthorized' && signIns < MAX_SIGN_INS) {
          signIns++
          await signIn(error)
        }
        // Programs of older libraries end at the first question that they do not know.
        else if (isStdio(server) && !isClosed() && trouble === 'unknown' && mode === 'auto') mode = 'legacy'
        else throw error
      }
    }
  }

  async function signIn(error: unknown): Promise<void> {
    if (isStdio(server) || server.auth === undefined) throw error
    const callback = authProvider(server.auth, server.url).callback?.()
    if (callback === undefined) throw error
    const { signal } = closing
    const query = await Promise.race([callback, aborted(signal)])
    const transport = httpTransport(server)
    await transport.finishAuth(query)
  }

  /** The line, opened if there is none. */
  function ensure(): Promise<Line> {
    if (isClosed()) return Promise.reject(closed(name))
    if (line !== undefined) return Promise.resolve(line)
    opening ??= (async () => {
      clearTimeout(timer)
      try {
        const made = await connectOnce()
        line = made
        state = 'connected'
        problem = undefined
        verified()
        return made
      } catch (error) {
        const fault = isClosed() ? closed(name) : faultOf(troubleOf(error), error, said)
        problem = { code: fault.code, message: fault.message }
        failures++
        if (state === 'reconnecting') retryLater()
        throw fault
      } finally {
        opening = undefined
      }
    })()
    return opening
  }

  function lose(which: Line, error: unknown): void {
    if (which.lost) return
    which.lost = true
    if (line === which) line = undefined
    // Others may still have their answers to come on it.
    if (which.calls.size === 0) void hangUp(which)
    if (isClosed()) return
    if (performance.now() - which.since > STABLE_MS) failures = 0
    state = 'reconnecting'
    const fault = faultOf(troubleOf(error), error, 'said' in which.transport ? which.transport.said() : '')
    problem = { code: fault.code, message: fault.message }
    notice('warn', `${fault.message} It is tried again.`)
    retryLater()
  }

  function retryLater(): void {
    if (isClosed()) return
    const wait = Math.min(FIRST_WAIT_MS * 2 ** failures, MAX_WAIT_MS) * (0.75 + Math.random() / 2)
    clearTimeout(timer)
    timer = setTimeout(() => {
      ensure().then(
        () => notice('info', `The MCP server ${name} is connected again.`),
        () => {},
      )
    }, wait).unref()
  }

  async function listChanged(error: Error | null, tools: readonly Tool[] | null): Promise<void> {
    if (error !== null || tools === null)
      return notice('warn', `The new list of tools cannot be read: ${String(error)}`)
    offers = { ...offers, tools: await listed(tools, server) }
    verified()
    notice(
      'info',
      'The server has changed its tools. An agent keeps those it was built with; its next build has the new ones.',
    )
  }

  async function hangUp({ client, transport }: Line): Promise<void> {
    // The session of a server that is gone is gone with it.
    if ('terminateSession' in transport) await withinASecond(transport.terminateSession?.())
    await client.close().catch(() => {})
  }

  async function attempt<T>(on: Line, { asking }: Request, work: (client: Client) => Promise<T>): Promise<T> {
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

  return {
    name,
    async open() {
      try {
        await ensure()
      } catch (error) {
        if (server.required === false && !isClosed()) {
          state = 'reconnecting'
          retryLater()
        }
        throw error
      }
    },
    offers: () => offers,
    async request(request, work) {
      const { signal, onlyReads, what } = request
      for (let again = false; ; again = true) {
        const on = await Promise.race([ensure(), aborted(signal)])
        try {
          return await attempt(on, request, work)
        } catch (error) {
          signal.throwIfAborted()
          const trouble = troubleOf(error)
          if (trouble === 'session' || trouble === 'not_sent') lose(on, error)
          // The server has not taken it: in a new session, with a new sign-in, over a new connection it may.
          if (!again && trouble === 'unauthorized') {
            await signIn(error).catch(() => {
              throw faultOf(trouble, error)
            })
            continue
          }
          if (!again && (trouble === 'session' || trouble === 'not_sent')) continue
          if (trouble === 'refused') {
            verified()
            throw mcpError('mcp_refused', `The MCP server ${name} refused ${what}: ${wordsFor(error, redact)}`)
          }
          if (trouble !== 'unknown') throw faultOf(trouble, error)
          const words = wordsFor(error, redact)
          if (onlyReads)
            throw mcpError('mcp_no_answer', `The MCP server ${name} gave no answer to ${what}: ${words}`, {
              retryable: true,
            })
          throw mcpError(
            'outcome_unknown',
            `The MCP server ${name} gave no answer to ${what}: ${words}. It may have taken effect: check before repeating it.`,
          )
        }
      }
    },
    health() {
      const { client } = line ?? {}
      const implementation = client?.getServerVersion()
      const protocolVersion = client?.getNegotiatedProtocolVersion()
      return {
        transport: isStdio(server) ? 'stdio' : (server.transport ?? 'http'),
        state,
        ...(implementation && { implementation: { name: implementation.name, version: implementation.version } }),
        ...(protocolVersion !== undefined && { protocolVersion }),
        ...(lastVerified !== undefined && { lastVerified }),
        ...(problem !== undefined && { problem }),
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

const closed = (name: string): OxbowError =>
  mcpError('mcp_closed', `The connection to the MCP server ${name} has been closed.`)

/** Rejects when the signal fires; never resolves. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

async function withinASecond(work: Promise<unknown> | undefined): Promise<void> {
  await Promise.race([work, delay(1_000, undefined, { ref: false })]).catch(() => {})
}

// Results are untrusted text in any case, and the schema of a server can be made to keep the process busy.
const noValidator: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (data) => ({ valid: true, data: data as T, errorMessage: undefined })
  },
}

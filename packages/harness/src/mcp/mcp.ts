// MCP servers as a capability of an agent.
import { type Capability, OxbowError, type Tool } from '@oxbow/core'
import {
  anything,
  callable,
  checkFields,
  checkObject,
  type Fields,
  fieldsOf,
  flag,
  isObject,
  listOf,
  object,
  oneOf,
  positive,
  text,
} from '@oxbow/core/internal'
import type { McpAuth } from './auth/oauth.ts'
import {
  isStdio,
  type McpHttpServer,
  type McpOptions,
  type McpServer,
  type McpStatus,
  type McpStdioServer,
  PROTOCOL_VERSIONS,
} from './options.ts'
import { secretsRedactor } from './redact.ts'
import { NOT_MARKED } from './tools/listing.ts'
import { aliasesOf, namesOf, originOf } from './tools/names.ts'
import { type Offered, offered } from './tools/remote-tools.ts'

export interface McpCapability extends Capability {
  /** The servers' current tools: an agent built later may have others. */
  readonly tools: readonly Tool[]
  readonly allow: readonly string[]
  status(): readonly McpStatus[]
  /** For the health of a service: each server as `mcp:NAME`, with its problem. */
  health(): readonly McpHealth[]
  /** Closes the connections and ends the programs. Calls in flight are aborted. */
  close(): Promise<void>
}

export interface McpHealth {
  readonly name: string
  readonly required: boolean
  readonly ok: boolean
  readonly detail: string
}

/** How many skipped tools a notice names; `status()` has all. */
const MAX_TOLD = 20
const EXAMPLE = "{ docs: { url: 'https://docs.internal/mcp' } }"

const ANY = {
  tools: listOf(text),
  allow: listOf(text),
  trustReadOnly: flag,
  trustIdempotent: flag,
  reconcile: object,
  timeoutMs: positive,
  maxMessageBytes: positive,
  protocolVersion: anything,
  onQuestion: anything,
  required: flag,
}
// The values of headers, environment and sign-in may be secrets, which a message must not show.
const HTTP: Fields<McpHttpServer> = {
  ...ANY,
  url: anything,
  transport: oneOf('http', 'sse'),
  headers: anything,
  auth: anything,
}
const STDIO: Fields<McpStdioServer> = { ...ANY, command: anything, args: anything, env: anything, cwd: text }

const OPTIONS: Fields<McpOptions> = {
  allowStdio: flag,
  reserved: listOf(text),
  connectTimeoutMs: positive,
  onNotice: callable,
}

const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/

/**
 * Connects MCP servers and offers their tools, resources and prompts to an agent. By default only tools that a server
 * marks as read-only are offered, and they ask before they run; `tools`, `allow` and `trustReadOnly` change that.
 *
 * An agent is immutable: a tool that its server no longer has reports that when it is called, and a new one is offered
 * when the agent is built again with the same capability.
 *
 * @example
 * const files = await mcp({ docs: { url: 'https://docs.internal/mcp', trustReadOnly: true } })
 * agent({ name: 'helper', model, instructions: '…', capabilities: [files] })
 * @throws OxbowError `mcp_invalid`, `mcp_stdio_refused`, and when a required server cannot be connected
 *   `mcp_unreachable`, `mcp_unauthorized`
 */
export async function mcp(
  servers: Readonly<Record<string, McpServer>>,
  options: McpOptions = {},
): Promise<McpCapability> {
  const { reserved = [], allowStdio = true } = options
  checkObject(servers, EXAMPLE, (what) => new OxbowError('mcp_invalid', `mcp() ${what}`))
  checkFields(options, OPTIONS, (what) => new OxbowError('mcp_invalid', `mcp(): ${what}`))
  const entries = Object.entries(servers)
  for (const [name, server] of entries) check(name, server, allowStdio)

  // Most agents have no servers: only those that do load the library.
  const { connection } = await import('./connection/connection.ts')
  const all = entries.map(([name, server]) => ({ name, server, connection: connection(name, server, options) }))
  const close = async (): Promise<void> => {
    await Promise.all(all.map((it) => it.connection.close()))
  }
  const opened = await Promise.allSettled(all.map((it) => it.connection.open()))
  const missing = opened.find((it, at) => it.status === 'rejected' && all[at]!.server.required !== false)
  if (missing?.status === 'rejected') {
    await close()
    throw missing.reason
  }

  const origins = new Map(entries.map(([name, server]) => [name, originOf(name, server)]))
  /** The servers' current tools. The agent has those of the last read of `tools`. */
  const build = (): Built => {
    const each = all.map(({ connection, server }) => offered(connection, server))
    const names = namesOf(
      each.flatMap((it) => it.offers),
      reserved,
    )
    return each.map(({ offers, skipped }) => {
      const tools: Offering[] = []
      const left = [...skipped]
      for (const it of offers) {
        const naming = { name: names.shift()!, aliases: aliasesOf(it), origin: origins.get(it.server)! }
        try {
          tools.push({ tool: it.build(naming), allowed: it.allowed })
        } catch (error) {
          left.push({ tool: it.tool, reason: `it cannot be used: ${(error as Error).message}` })
        }
      }
      return { tools, skipped: left }
    })
  }
  let built = build()
  all.forEach(({ name, server }, at) => {
    for (const level of ['info', 'warn'] as const) {
      const skipped = built[at]!.skipped.filter((it) => (it.reason === NOT_MARKED) === (level === 'info'))
      const list = skipped.slice(0, MAX_TOLD).map(({ tool, reason }) => `${JSON.stringify(tool)} (${reason})`)
      if (skipped.length > MAX_TOLD) list.push(`and ${skipped.length - MAX_TOLD} more`)
      if (list.length > 0)
        options.onNotice?.({ level, server: name, message: secretsRedactor(server)(`Skipped: ${list.join(', ')}.`) })
    }
  })
  return {
    name: 'mcp',
    get tools() {
      built = build()
      return built.flatMap((it) => it.tools.map(({ tool }) => tool))
    },
    get allow() {
      return built.flatMap((it) => it.tools.filter(({ allowed }) => allowed).map(({ tool }) => tool.name))
    },
    status() {
      const now = build()
      return all.map(({ name, server, connection }, at) => {
        const [had, has] = [namesIn(built[at]!), namesIn(now[at]!)]
        return {
          server: name,
          required: server.required !== false,
          ...connection.health(),
          tools: had,
          skipped: now[at]!.skipped,
          added: has.filter((it) => !had.includes(it)),
          gone: had.filter((it) => !has.includes(it)),
        }
      })
    },
    health: () =>
      all.map(({ name, server, connection }) => {
        const { state, problem } = connection.health()
        const required = server.required !== false
        return { name: `mcp:${name}`, required, ok: state === 'connected', detail: problem?.message ?? state }
      }),
    close,
  }
}

interface Offering {
  readonly tool: Tool
  /** True when it runs without asking. */
  readonly allowed: boolean
}

/** One entry for each server, in order. */
type Built = readonly { readonly tools: readonly Offering[]; readonly skipped: Offered['skipped'] }[]

const namesIn = ({ tools }: Built[number]): string[] => tools.map((it) => it.tool.name)

function check(name: string, server: McpServer, allowStdio: boolean): void {
  const fault = (what: string) => new OxbowError('mcp_invalid', `MCP server ${JSON.stringify(name)}: ${what}`)
  if (!SERVER_NAME.test(name))
    throw fault('the name is not valid. Use up to 32 of A-Z a-z 0-9 _ -, beginning with a letter or digit.')
  if (!isObject(server)) throw fault(`it must be an object. mcp() has servers by name, for example ${EXAMPLE}.`)
  const problem = fieldsOf(isStdio(server) ? STDIO : HTTP)(server, '')
  if (problem !== undefined) throw fault(problem)
  const { protocolVersion: version } = server
  if (version !== undefined && !PROTOCOL_VERSIONS.includes(version))
    throw fault(`unknown protocolVersion ${JSON.stringify(version)}. Use one of ${PROTOCOL_VERSIONS.join(', ')}.`)
  if (isStdio(server)) {
    if (!allowStdio)
      throw new OxbowError(
        'mcp_stdio_refused',
        `MCP server ${name}: programs are not allowed here, because a configuration could then run any command. Start the server elsewhere and set its url.`,
      )
    if (typeof server.command !== 'string' || server.command.trim() === '')
      throw fault('command is empty. Set it to a program.')
  } else if (!URL.canParse(server.url) || !/^https?:$/.test(new URL(server.url).protocol))
    throw fault('url is not an address. Set it to one that begins with http:// or https://.')
  else if (server.auth !== undefined) {
    const missing = faultOfAuth(server.auth)
    if (missing !== undefined) throw fault(missing)
  }
}

/** The missing part of the sign-in settings. */
function faultOfAuth(auth: McpAuth): string | undefined {
  const { issuer } = auth
  const hasSecret = auth.type !== 'authorization-code' || auth.clientSecret !== undefined
  if (issuer === undefined || issuer === '')
    return hasSecret
      ? 'auth.issuer is missing. Set it to the authorization server that the secret is for; otherwise the MCP server chooses who gets it.'
      : undefined
  return URL.canParse(issuer) ? undefined : 'auth.issuer is not an address.'
}

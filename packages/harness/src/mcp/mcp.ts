// MCP servers as a capability of an agent.
import { type Capability, OxbowError, type Tool } from '@oxbow/core'
import type { McpAuth } from './auth/oauth.ts'
import { isStdio, type McpOptions, type McpServer, type McpStatus } from './options.ts'
import { redactor } from './redact.ts'
import { NOT_MARKED } from './tools/listing.ts'
import { aliasesOf, namesOf, originOf } from './tools/names.ts'
import { type Offered, offered } from './tools/remote-tools.ts'

export interface McpCapability extends Capability {
  /** Of the servers as they are now: an agent that is built later may have other tools. */
  readonly tools: readonly Tool[]
  readonly allow: readonly string[]
  status(): readonly McpStatus[]
  /** Ends connections and programs. What runs is broken off. */
  close(): Promise<void>
}

/** How many tools that are left out a notice names; `status()` has all. */
const MAX_TOLD = 20
const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/

/**
 * Connects MCP servers and offers their tools, resources and prompts to an agent. Only tools that a server marks as read-only
 * are offered, unless `tools` or `allow` name others, and whatever is offered asks before it runs, unless `allow` or
 * `trustReadOnly` says otherwise.
 *
 * The agent is immutable: when a server changes its list, a tool that is gone says so when it is called, and new ones are
 * there when the agent is built again with the same capability.
 *
 * @example
 * const files = await mcp({ docs: { url: 'https://docs.internal/mcp', trustReadOnly: true } })
 * agent({ name: 'helper', model, instructions: '…', capabilities: [files] })
 * @throws OxbowError `mcp_invalid`, `mcp_stdio_refused`, and when a server that is required is not there
 *   `mcp_unreachable`, `mcp_unauthorized`
 */
export async function mcp(
  servers: Readonly<Record<string, McpServer>>,
  options: McpOptions = {},
): Promise<McpCapability> {
  const { reserved = [], allowStdio = true } = options
  const entries = Object.entries(servers)
  for (const [name, server] of entries) check(name, server, allowStdio)

  // Most agents have no servers: the library is loaded by those that do.
  const { connection } = await import('./connection.ts')
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
  /** Of the servers as they are now. The agent's own are those of the last time that somebody has asked. */
  const build = (): Built => {
    const each = all.map(({ connection, server }) => offered(connection, server))
    const offers = each.flatMap((it) => it.offers)
    const names = namesOf(offers, reserved)
    return {
      tools: offers.map((it, at) =>
        it.build({ name: names[at]!, aliases: aliasesOf(it), origin: origins.get(it.server)! }),
      ),
      allow: names.filter((_, at) => offers[at]!.allowed),
      names: each.map(({ offers: own }) => names.splice(0, own.length)),
      skipped: each.map((it) => it.skipped),
    }
  }
  let built: Built
  try {
    built = build()
  } catch (error) {
    await close()
    throw error
  }
  all.forEach(({ name, server }, at) => {
    for (const level of ['info', 'warn'] as const) {
      const skipped = built.skipped[at]!.filter((it) => (it.reason === NOT_MARKED) === (level === 'info'))
      const list = skipped.slice(0, MAX_TOLD).map(({ tool, reason }) => `${JSON.stringify(tool)} (${reason})`)
      if (skipped.length > MAX_TOLD) list.push(`and ${skipped.length - MAX_TOLD} more`)
      if (list.length > 0)
        options.onNotice?.({ level, server: name, message: redactor(server)(`Left out: ${list.join(', ')}.`) })
    }
  })
  return {
    name: 'mcp',
    get tools() {
      built = build()
      return built.tools
    },
    get allow() {
      return built.allow
    },
    status() {
      const now = build()
      return all.map(({ name, connection }, at) => {
        const [had, has] = [built.names[at]!, now.names[at]!]
        return {
          server: name,
          ...connection.health(),
          tools: had,
          skipped: now.skipped[at]!,
          added: has.filter((it) => !had.includes(it)),
          gone: had.filter((it) => !has.includes(it)),
        }
      })
    },
    close,
  }
}

interface Built {
  readonly tools: readonly Tool[]
  readonly allow: readonly string[]
  /** Of each server, in their order. */
  readonly names: readonly (readonly string[])[]
  readonly skipped: readonly Offered['skipped'][]
}

function check(name: string, server: McpServer, allowStdio: boolean): void {
  const fault = (what: string) => new OxbowError('mcp_invalid', `MCP server ${JSON.stringify(name)}: ${what}`)
  if (!SERVER_NAME.test(name))
    throw fault('its name may have up to 32 of A-Z a-z 0-9 _ -, and begins with a letter or digit')
  if (isStdio(server)) {
    if (!allowStdio)
      throw new OxbowError(
        'mcp_stdio_refused',
        `MCP server ${name}: no programs are started here, because whoever may write the configuration could run any command. Start it elsewhere and give its url.`,
      )
    if (server.command.trim() === '') throw fault('command must be a program')
  } else if (!URL.canParse(server.url) || !/^https?:$/.test(new URL(server.url).protocol))
    throw fault('url must be an address that begins with http:// or https://')
  else if (server.auth !== undefined) {
    const missing = faultOfAuth(server.auth)
    if (missing !== undefined) throw fault(missing)
  }
}

/** What is missing in it, as words for whoever has written it. */
function faultOfAuth(auth: McpAuth): string | undefined {
  const { issuer } = auth
  const hasSecret = auth.type !== 'authorization-code' || auth.clientSecret !== undefined
  if (issuer === undefined || issuer === '')
    return hasSecret
      ? 'auth.issuer must name the authorization server that the secret is for; else the MCP server could say who gets it'
      : undefined
  return URL.canParse(issuer) ? undefined : 'auth.issuer must be an address'
}

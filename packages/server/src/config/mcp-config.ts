// MCP servers in the form that `mcp` of the harness accepts; each problem names its key in the file.
import { defined } from '@oxbow/core/internal'
import { mcpServerSettings } from './settings/mcp-settings.ts'
import type { Profile } from './settings/schema.ts'
import { tableReader } from './tables.ts'

interface AnyMcpServer {
  readonly tools?: readonly string[]
  readonly allow?: readonly string[]
  readonly trustReadOnly?: boolean
  readonly trustIdempotent?: boolean
  readonly reconcile?: Readonly<Record<string, string>>
  readonly protocolVersion?: '2026-07-28' | '2025-11-25' | '2025-06-18' | '2025-03-26' | '2024-11-05'
  readonly timeoutMs?: number
  readonly required?: boolean
}

export interface HttpMcpServer extends AnyMcpServer {
  readonly url: string
  readonly transport?: 'http' | 'sse'
  readonly headers?: Readonly<Record<string, string>>
  readonly auth?: {
    readonly type: 'client-credentials'
    readonly clientId: string
    readonly clientSecret: string
    readonly issuer: string
    readonly scope?: string
  }
}

export interface ProgramMcpServer extends AnyMcpServer {
  readonly command: string
  readonly args?: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export type McpServerConfig = HttpMcpServer | ProgramMcpServer
export type McpConfig = Readonly<Record<string, McpServerConfig>>

type Environment = Readonly<Record<string, string | undefined>>

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/
const OF_URL = ['transport', 'headers', 'auth'] as const
const OF_COMMAND = ['args', 'env'] as const
const read = tableReader(mcpServerSettings, { hidden: /^(?:url|headers|args|auth)\b/ })

/** Reads the setting `mcp`. Mistakes are added to `problems`. */
export function mcpConfig(given: unknown, profile: Profile, environment: Environment, problems: string[]): McpConfig {
  // The schema has already reported a value that is not a table.
  if (typeof given !== 'object' || given === null) return {}
  const servers: Record<string, McpServerConfig> = {}
  for (const [name, table] of Object.entries(given)) {
    const at = `mcp.${name}`
    if (!NAME.test(name)) {
      problems.push(
        `mcp: ${JSON.stringify(name)} is not a valid name; allowed: up to 32 of A-Z a-z 0-9 _ -, beginning with a letter or digit`,
      )
      continue
    }
    const settings = read(at, table, problems)
    if (settings === undefined) continue
    const { url, transport, headers, auth, command, args, env = [], timeout, ...rest } = settings
    const common = { ...rest, ...defined({ timeoutMs: timeout }) } as AnyMcpServer
    const fromVariable = (key: string, variable: string): string => {
      const value = environment[variable]
      if (value === undefined || value === '')
        problems.push(`${at}.${key}: the environment variable ${variable} is not set`)
      return value ?? ''
    }
    if ((url === undefined) === (command === undefined)) {
      problems.push(`${at}: needs either url (a server over HTTP) or command (a program on this machine)`)
      continue
    }
    for (const key of url === undefined ? OF_URL : OF_COMMAND)
      if (settings[key] !== undefined)
        problems.push(`${at}.${key}: only allowed with ${url === undefined ? 'url' : 'command'}`)
    if (url !== undefined)
      servers[name] = {
        ...common,
        url,
        ...(transport !== undefined && { transport: transport === 'sse' ? 'sse' : 'http' }),
        ...defined({ headers }),
        ...(auth !== undefined && {
          auth: {
            type: 'client-credentials' as const,
            clientId: auth.clientId,
            clientSecret: fromVariable('auth.secretVariable', auth.secretVariable),
            issuer: auth.issuer,
            ...defined({ scope: auth.scope }),
          },
        }),
      }
    else if (command !== undefined) {
      if (profile === 'prod')
        problems.push(`${at}.command: not allowed in profile prod; run the server elsewhere and set url`)
      servers[name] = {
        ...common,
        command,
        ...defined({ args }),
        env: Object.fromEntries(env.map((variable) => [variable, fromVariable('env', variable)])),
      }
    }
  }
  return servers
}

// The options of MCP servers.
import type { JsonSchema } from '@oxbow/core'
import type { McpAuth } from './auth/oauth.ts'

interface AnyServer {
  /**
   * Tools that are offered besides those marked as read-only: names as the server publishes them, or `prefix*`.
   * Default: none. They ask before they run, unless rules of the agent decide otherwise.
   */
  readonly tools?: readonly string[]
  /** Tools that run without asking, in the same form; they need not be in `tools` as well. */
  readonly allow?: readonly string[]
  /** Tools marked as read-only run without asking. Default false: the mark is the server's own. */
  readonly trustReadOnly?: boolean
  /**
   * Calls of tools marked as idempotent are repeated with the same operation id when their outcome is unknown. Default
   * false. The operation id is in `_meta` of each call, as `oxbow/operationId`.
   */
  readonly trustIdempotent?: boolean
  /**
   * For tools by name, the tool of the same server that reports the outcome of an interrupted call. It receives the
   * operation id as `operation_id` or `operationId`, and the call's arguments that its schema names. It answers with an
   * object: `{ "status": "done", "result": … }`, or `not_done`. Any other answer leaves the outcome unknown.
   */
  readonly reconcile?: Readonly<Record<string, string>>
  /** The time limit of one call in milliseconds. Default 60,000. */
  readonly timeoutMs?: number
  /** The longest accepted message in bytes. Default 10 MiB. */
  readonly maxMessageBytes?: number
  /** The protocol version. Default: the newest that both sides support. */
  readonly protocolVersion?: ProtocolVersion
  /** How the server's questions to the user during a call are answered. Default `ask`. */
  readonly onQuestion?: QuestionPolicy
  /**
   * Whether building the agent fails without the server. Default true; with false the connection is retried in the
   * background.
   */
  readonly required?: boolean
}

/**
 * `ask`: a question that a yes can answer (a confirmation, a form whose fields have defaults) becomes an approval of
 * the call, which is kept in the journal like any other; others are declined. `decline`: all are declined. A function
 * answers at once; missing content is filled with the form's defaults.
 */
export type QuestionPolicy = 'ask' | 'decline' | ((question: McpQuestion) => McpAnswer | Promise<McpAnswer>)

export interface McpQuestion {
  /** The server's text: untrusted. */
  readonly message: string
  /** JSON Schema of the form. */
  readonly form: JsonSchema
}

export interface McpAnswer {
  readonly action: 'accept' | 'decline' | 'cancel'
  readonly content?: Readonly<Record<string, string | number | boolean | string[]>>
}

export interface McpHttpServer extends AnyServer {
  /** `http:` or `https:`. */
  readonly url: string
  /** `http` is streamable HTTP; `sse` its predecessor. Default `http`. */
  readonly transport?: 'http' | 'sse'
  /** Sent with every request and never shown. */
  readonly headers?: Readonly<Record<string, string>>
  readonly auth?: McpAuth
}

export interface McpStdioServer extends AnyServer {
  readonly command: string
  readonly args?: readonly string[]
  /** The environment of the process; by default only PATH. The values are never shown. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export type McpServer = McpHttpServer | McpStdioServer

export interface McpOptions {
  /**
   * Whether servers may be programs on this machine. Default true. Set false where others can edit the configuration.
   */
  readonly allowStdio?: boolean
  /** Names of the agent's other tools; a server's tool with such a name is renamed `server__tool`. */
  readonly reserved?: readonly string[]
  /** How long a server may take to be ready, in milliseconds. Default 30,000. */
  readonly connectTimeoutMs?: number
  /** Receives notices for operators; must not throw. */
  readonly onNotice?: (notice: McpNotice) => void
}

export interface McpNotice {
  readonly level: 'info' | 'warn'
  readonly server: string
  /** Without secrets. It may quote the server. */
  readonly message: string
}

export type McpState = 'connecting' | 'connected' | 'reconnecting' | 'closed'

export interface McpStatus {
  readonly server: string
  readonly transport: 'http' | 'sse' | 'stdio'
  readonly state: McpState
  readonly required: boolean
  /** The server's own name and version. */
  readonly implementation?: { readonly name: string; readonly version: string }
  readonly protocolVersion?: string
  /** The time of the last usable answer, as ISO 8601. */
  readonly lastVerified?: string
  /** The error since the last usable answer. */
  readonly problem?: { readonly code: string; readonly message: string }
  /** For a program: lines on standard output that are not messages, and the last of them. */
  readonly stdoutNoise?: { readonly lines: number; readonly last?: string }
  /** The agent's tools, by the names that the model calls. */
  readonly tools: readonly string[]
  /** Tools of the server that the agent does not have, with the reason. */
  readonly skipped: readonly { readonly tool: string; readonly reason: string }[]
  /**
   * Changes since the agent was built: tools that its next build would add, and tools that the server has removed.
   */
  readonly added: readonly string[]
  readonly gone: readonly string[]
}

export const isStdio = (server: McpServer): server is McpStdioServer => 'command' in server

/** The version whose servers do not need `initialize`. */
export const PROTOCOL_2026 = '2026-07-28'
export const PROTOCOL_VERSIONS = [PROTOCOL_2026, '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
export type ProtocolVersion = (typeof PROTOCOL_VERSIONS)[number]

export const CALL_TIMEOUT_MS = 60_000
export const CONNECT_TIMEOUT_MS = 30_000
export const MAX_MESSAGE_BYTES = 10 * 1024 * 1024

/** `prefix*` or a whole name. */
export const matches = (patterns: readonly string[] = [], name: string): boolean =>
  patterns.some((it) => (it.endsWith('*') ? name.startsWith(it.slice(0, -1)) : it === name))

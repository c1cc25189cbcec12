// The options of MCP servers.
import type { JsonSchema } from '@oxbow/core'
import type { McpAuth } from './auth/oauth.ts'

interface AnyServer {
  /**
   * Tools that are offered besides those that the server marks as read-only: names as the server publishes them, or
   * `prefix*`. Default: none. They ask before they run, unless rules of the agent say otherwise.
   */
  readonly tools?: readonly string[]
  /** Tools that run without asking, in the same form; they need not be in `tools` as well. */
  readonly allow?: readonly string[]
  /** What the server marks as read-only runs without asking. Default false: the server itself sets the mark. */
  readonly trustReadOnly?: boolean
  /**
   * What the server marks as idempotent is sent again, with the same operation id, when its outcome is unknown. Default
   * false. The operation id is in `_meta` of each call, as `oxbow/operationId`.
   */
  readonly trustIdempotent?: boolean
  /**
   * For tools by name, the tool of the same server that says what became of an interrupted call. It gets the operation
   * id as
   * `operation_id` or `operationId`, and the arguments of the call that its schema names. It answers with an object:
   * `{ "status": "done", "result": … }`, or `not_done`. Any other answer leaves the outcome unknown.
   */
  readonly reconcile?: Readonly<Record<string, string>>
  /** How long one call may take. Default 60,000. */
  readonly timeoutMs?: number
  /** The longest message that is read from the server. Default 10 MiB. */
  readonly maxMessageBytes?: number
  /** Which version of the protocol to speak. Default: the newest that both sides know. */
  readonly protocolVersion?: ProtocolVersion
  /** How questions are answered that the server has for the user during a call. Default `ask`. */
  readonly onQuestion?: QuestionPolicy
  /**
   * Whether building the agent fails without the server. Default true; else the connection is retried in the
   * background.
   */
  readonly required?: boolean
}

/**
 * `ask`: a question that a yes can answer (a confirmation, a form whose fields have defaults) becomes an approval of
 * the call, which waits in the journal like any other; others are declined. `decline`: all are. A function answers at
 * once; what it leaves out of the content is filled with the form's defaults.
 */
export type QuestionPolicy = 'ask' | 'decline' | ((question: McpQuestion) => McpAnswer | Promise<McpAnswer>)

export interface McpQuestion {
  /** What the server says: untrusted text. */
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
  /** Sent with every request, and never shown. */
  readonly headers?: Readonly<Record<string, string>>
  readonly auth?: McpAuth
}

export interface McpStdioServer extends AnyServer {
  readonly command: string
  readonly args?: readonly string[]
  /** The environment of the process, without which it has only PATH. The values are never shown. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export type McpServer = McpHttpServer | McpStdioServer

export interface McpOptions {
  /**
   * Whether servers may be programs on this machine. Default true. Set false where others can write the configuration.
   */
  readonly allowStdio?: boolean
  /** Names of the agent's other tools; a tool of a server with such a name is called `server__tool`. */
  readonly reserved?: readonly string[]
  /** How long a server may take to be ready. Default 30,000. */
  readonly connectTimeoutMs?: number
  /** Receives what an operator should know; must not throw. */
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
  /** What has gone wrong since the last usable answer. */
  readonly problem?: { readonly code: string; readonly message: string }
  /** Of a program: lines on standard output that are not messages, and the last of them. */
  readonly stdoutNoise?: { readonly lines: number; readonly last?: string }
  /** The tools of the agent, by the names that the model calls. */
  readonly tools: readonly string[]
  /** Tools of the server that the agent does not have, and why. */
  readonly skipped: readonly { readonly tool: string; readonly reason: string }[]
  /**
   * Since the agent was built: tools that its next build would have as well, and tools that the server no longer has.
   */
  readonly added: readonly string[]
  readonly gone: readonly string[]
}

export const isStdio = (server: McpServer): server is McpStdioServer => 'command' in server

/** The version whose servers need no `initialize`. */
export const PROTOCOL_2026 = '2026-07-28'
export const PROTOCOL_VERSIONS = [PROTOCOL_2026, '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
export type ProtocolVersion = (typeof PROTOCOL_VERSIONS)[number]

export const CALL_TIMEOUT_MS = 60_000
export const CONNECT_TIMEOUT_MS = 30_000
export const MAX_MESSAGE_BYTES = 10 * 1024 * 1024

/** `prefix*` or a whole name. */
export const matches = (patterns: readonly string[] = [], name: string): boolean =>
  patterns.some((it) => (it.endsWith('*') ? name.startsWith(it.slice(0, -1)) : it === name))

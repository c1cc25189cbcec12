// What whoever connects MCP servers can say about them.
import type { JsonSchema } from '@oxbow/core'
import type { McpAuth } from './auth/oauth.ts'

interface AnyServer {
  /**
   * Tools beside those that the server marks as read-only: names as the server publishes them, or `prefix*`. Default: none.
   * They ask before they run, unless rules of the agent say otherwise.
   */
  readonly tools?: readonly string[]
  /** Tools that run without asking, in the same form; they need not stand in `tools` as well. */
  readonly allow?: readonly string[]
  /** What the server marks as read-only runs without asking. Default: false, because the mark is the server's own word. */
  readonly trustReadOnly?: boolean
  /** How long one call may take. Default 60,000. */
  readonly timeoutMs?: number
  /** The longest message that is read from the server. Default 10 MiB. */
  readonly maxMessageBytes?: number
  /** What becomes of questions that the server has for the user in the middle of a call. Default `ask`. */
  readonly onQuestion?: QuestionPolicy
  /** Whether the server must be there when the agent is built. Default true; else it is tried again in the background. */
  readonly required?: boolean
}

/**
 * `ask`: a question that a yes can answer (a confirmation, a form whose fields have defaults) becomes an approval of the call,
 * which waits in the journal like any other; others are declined. `decline`: all are. A function answers at once; what it
 * leaves out of the content is filled with the form's defaults.
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
  readonly url: string
  /** `http` is streamable HTTP; `sse` its predecessor. Default `http`. */
  readonly transport?: 'http' | 'sse'
  /** They go with every request, and are never shown. */
  readonly headers?: Readonly<Record<string, string>>
  readonly auth?: McpAuth
}

export interface McpStdioServer extends AnyServer {
  readonly command: string
  readonly args?: readonly string[]
  /** All that the process has in its environment, beside PATH. The values are never shown. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export type McpServer = McpHttpServer | McpStdioServer

export interface McpOptions {
  /** Whether servers may be programs on this machine. Default true: say false where a file that others write names them. */
  readonly allowStdio?: boolean
  /** Names of the agent's other tools; a tool that has one of them is called `server__tool`. */
  readonly reserved?: readonly string[]
  /** How long a server may take to be ready. Default 30,000. */
  readonly connectTimeoutMs?: number
  /** What an operator should know; must not throw. */
  readonly onNotice?: (notice: McpNotice) => void
}

export interface McpNotice {
  readonly level: 'info' | 'warn'
  readonly server: string
  /** Without secrets. What the server said stands in it as it said it. */
  readonly message: string
}

export type McpState = 'connecting' | 'connected' | 'reconnecting' | 'closed'

export interface McpStatus {
  readonly server: string
  readonly transport: 'http' | 'sse' | 'stdio'
  readonly state: McpState
  /** As the server calls itself. */
  readonly implementation?: { readonly name: string; readonly version: string }
  readonly protocolVersion?: string
  /** When the server last gave an answer that could be used, as ISO 8601. */
  readonly lastVerified?: string
  /** Why it is not connected. */
  readonly problem?: { readonly code: string; readonly message: string }
  /** The tools of the agent, by the names that the model calls. */
  readonly tools: readonly string[]
  /** Tools of the server that the agent does not have, and why. */
  readonly skipped: readonly { readonly tool: string; readonly reason: string }[]
  /** The server has changed its list: what the next build of the agent would have more, and what does not answer any more. */
  readonly added: readonly string[]
  readonly gone: readonly string[]
}

export const isStdio = (server: McpServer): server is McpStdioServer => 'command' in server

export const CALL_TIMEOUT_MS = 60_000
export const CONNECT_TIMEOUT_MS = 30_000
export const MAX_MESSAGE_BYTES = 10 * 1024 * 1024

/** `prefix*` or a whole name. */
export const matches = (patterns: readonly string[] = [], name: string): boolean =>
  patterns.some((it) => (it.endsWith('*') ? name.startsWith(it.slice(0, -1)) : it === name))

// Log lines: one JSON object, or one readable line. Messages, arguments and outputs are never logged; text that errors
// quote is logged at level debug only. Secrets are redacted in the finished line, at any depth.

import { randomUUID } from 'node:crypto'
import type { Middleware, SessionKey } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { type Logger, pino } from 'pino'
import { prettyLine } from './pretty-line.ts'
import { redactor } from './redactor.ts'

export interface LogOptions {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** `auto`: readable on a terminal, else JSON. */
  readonly format: 'auto' | 'pretty' | 'json'
  /** Default: standard output. */
  readonly destination?: { write(line: string): void; readonly isTTY?: boolean }
  /** The environment whose secrets are redacted. Default: that of this process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

export function createLogger(options: LogOptions): Logger {
  const { level, format, destination = process.stdout, environment = process.env } = options
  const redact = redactor(environment)
  const pretty = format === 'pretty' || (format === 'auto' && destination.isTTY === true)
  const write = pretty
    ? (line: string) => destination.write(prettyLine(redact(line)))
    : (line: string) => destination.write(redact(line))
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: level === 'debug' || level === 'trace' ? describeError : withoutQuotes },
    },
    { write },
  )
}

/** An error without the partial answer of the model that it may carry. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack, cause } = error
  const { code, status, details } = error as { code?: unknown; status?: unknown; details?: unknown }
  return {
    type: name,
    message,
    code,
    status,
    details,
    stack,
    ...(cause !== undefined && { cause: describeError(cause) }),
  }
}

/** Details of our errors that are names; any other detail may contain a piece of a conversation. */
const NAMES = [
  'path',
  'errcode',
  'reason',
  'what',
  'problems',
  'requestId',
  'reference',
  'turnId',
  'expectedSeq',
  'seqs',
]
const HIDDEN = '(not shown above log.level debug)'

/** An error without text that it may quote: a provider's message, a broken frame, or invalid JSON. */
function withoutQuotes(error: unknown): unknown {
  if (!(error instanceof Error)) return describeError(error)
  const { message, stack = '', cause, details } = error as Error & { details?: Readonly<Record<string, unknown>> }
  const quoted = error instanceof SyntaxError ? message : details?.said
  const ends = typeof quoted === 'string' && message.endsWith(quoted)
  const shown = ends ? `${message.slice(0, message.length - quoted.length)}${HIDDEN}` : message
  return {
    ...(describeError(error) as object),
    message: shown,
    stack: stack.replace(message, () => shown),
    details: details && Object.fromEntries(Object.entries(details).filter(([name]) => NAMES.includes(name))),
    ...(cause !== undefined && { cause: withoutQuotes(cause) }),
  }
}

/** Logs an error under a new reference, and returns the reference. */
export function reporter(log: Logger): (error: unknown, about?: Readonly<Record<string, unknown>>) => string {
  return (error, about = {}) => {
    const reference = randomUUID()
    log.error({ ...about, reference, err: error }, 'failed')
    return reference
  }
}

/** The engine's `onError`: logs the full error under the reference that end users see. */
export const engineErrors =
  (log: Logger) =>
  (error: unknown, context: { reference: string; session?: SessionKey; turnId?: string }): void => {
    const { reference, session, turnId } = context
    log.error({ reference, ...session, turnId, err: error }, 'engine error')
  }

/** Logs the duration of turns, steps, model calls and tool calls, without their content. */
export function loggingMiddleware(log: Logger): Middleware {
  async function timed<T>(
    what: string,
    about: Record<string, unknown>,
    work: () => Promise<T>,
    outcome: (value: T) => object,
  ): Promise<T> {
    const startedAt = performance.now()
    const ms = (): number => Math.round(performance.now() - startedAt)
    try {
      const value = await work()
      log.info({ ...about, ms: ms(), ...outcome(value) }, what)
      return value
    } catch (error) {
      log.info({ ...about, ms: ms(), error: (error as { code?: unknown }).code ?? (error as Error).name }, what)
      throw error
    }
  }
  return {
    name: 'logging',
    onAgent: ({ session, turnId, agent }, next) =>
      timed('turn', { user: session.user, session: session.session, turnId, agent }, next, () => ({})),
    onReasoning: ({ turnId, step }, next) =>
      timed('step', { turnId, step }, next, ({ finishReason }) => ({ finishReason })),
    onModelCall: (request, { turnId, step, summaryBy }, next) =>
      timed(
        summaryBy === undefined ? 'model call' : 'summary',
        { turnId, step },
        () => next(request),
        ({ model, usage, finishReason, endedWith }) => ({
          model,
          finishReason,
          // An unknown finish reason: the provider may report something that Oxbow does not read.
          ...defined({ endedWith }),
          inputTokens: usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens,
          outputTokens: usage.outputTokens,
        }),
      ),
    onActing: ({ turnId, step, call }, next) =>
      timed('tool call', { turnId, step, callId: call.callId, tool: call.tool.slice(0, 64) }, next, ({ status }) => ({
        status,
      })),
  }
}

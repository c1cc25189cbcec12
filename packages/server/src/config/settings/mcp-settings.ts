// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file has placeholders of its own.
// The settings of MCP servers: one table for each name.
import { z } from 'zod'
import { boolean, choice, duration, list, table, textSetting, url } from './kinds.ts'

const VARIABLE = /^[A-Za-z_]\w{0,63}$/
const PATTERN = /^[^*\s]*\*?$/

/** A table of `[mcp]`. */
export const mcpServerSettings = z.strictObject({
  url: url('Where the server is.').optional(),
  transport: choice(
    ['http', 'streamable-http', 'sse'],
    'Streamable HTTP (two names for it), or its predecessor. Default "http".',
  ).optional(),
  headers: z
    .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string())
    .meta(table('Sent with each request.', 'a table of texts; secrets as "${VARIABLE}"'))
    .optional(),
  auth: z
    .strictObject({
      clientId: textSetting('Of this service, at the authorization server (OAuth client credentials).'),
      secretVariable: z
        .string()
        .regex(VARIABLE)
        .meta(table('The environment variable that holds the secret.', 'the name of an environment variable')),
      issuer: url(
        'The authorization server that the secret is for, as its metadata names it. It is sent nowhere else.',
      ),
      scope: textSetting('The requested scope. Default: what the server names.').optional(),
    })
    .optional(),
  command: textSetting('Instead of url: a program on this machine. Not in profile prod.').optional(),
  args: z.array(z.string()).meta(table('Its arguments.', 'a list of texts')).optional(),
  env: list(
    VARIABLE,
    'Variables of this environment that the program gets in addition to PATH.',
    'names of environment variables',
  ).optional(),
  tools: list(
    PATTERN,
    'Tools to offer in addition to those that the server marks as read-only. They ask before they run.',
    'names of tools, or "prefix*"',
  ).optional(),
  allow: list(PATTERN, 'Tools that run without asking.', 'names of tools, or "prefix*"').optional(),
  trustReadOnly: boolean(
    'Whether tools that the server marks as read-only run without asking. Default false.',
  ).optional(),
  trustIdempotent: boolean(
    'Whether a call of a tool that the server marks as idempotent is sent again when its outcome is unknown. Default false.',
  ).optional(),
  reconcile: z
    .record(z.string().min(1), z.string().min(1))
    .meta(
      table(
        'For tools, the tool of the server that reports what became of an interrupted call.',
        'a table of tool names',
      ),
    )
    .optional(),
  protocolVersion: choice(
    ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
    'The version to speak. Default: the newest that both sides know.',
  ).optional(),
  timeout: duration('1s', '24h', 'How long a call may take. Default 60s.').optional(),
  required: boolean('Whether the start fails, and /readyz reports 503, without the server. Default true.').optional(),
})

export const mcpSetting = z
  .record(z.string(), z.unknown())
  .meta(table('MCP servers by name: see below. In the variable: a JSON object.', 'one table for each name'))

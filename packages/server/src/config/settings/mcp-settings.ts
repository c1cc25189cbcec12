// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file has placeholders of its own.
// The settings of MCP servers: one table for each name.
import { z } from 'zod'
import { boolean, choice, duration, list, table, textSetting, url } from './kinds.ts'

const VARIABLE = /^[A-Za-z_]\w{0,63}$/
const PATTERN = /^[^*\s]*\*?$/

/** A table of `[mcp]`. */
export const mcpServerSettings = z.strictObject({
  url: url('The address of the server.').optional(),
  transport: choice(
    ['http', 'streamable-http', 'sse'],
    'Streamable HTTP ("http" or "streamable-http"), or its predecessor ("sse"). Default "http".',
  ).optional(),
  headers: z
    .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string())
    .meta(table('Headers of each request.', 'a table of strings; secrets as "${VARIABLE}"'))
    .optional(),
  auth: z
    .strictObject({
      clientId: textSetting('The id of this service at the authorization server (OAuth client credentials).'),
      secretVariable: z
        .string()
        .regex(VARIABLE)
        .meta(table('The environment variable that holds the secret.', 'the name of an environment variable')),
      issuer: url('The issuer of the authorization server, as in its metadata. The secret is sent nowhere else.'),
      scope: textSetting('The requested scope. Default: the scope that the server names.').optional(),
    })
    .optional(),
  command: textSetting('A program on this machine, instead of url. Not allowed in profile prod.').optional(),
  args: z.array(z.string()).meta(table('The arguments of the program.', 'a list of strings')).optional(),
  env: list(
    VARIABLE,
    'Environment variables that are passed to the program, in addition to PATH.',
    'names of environment variables',
  ).optional(),
  tools: list(
    PATTERN,
    'Tools to offer in addition to the ones that the server marks as read-only. Their calls need approval.',
    'names of tools, or "prefix*"',
  ).optional(),
  allow: list(PATTERN, 'Tools that run without approval.', 'names of tools, or "prefix*"').optional(),
  trustReadOnly: boolean(
    'Whether tools that the server marks as read-only run without approval. Default false.',
  ).optional(),
  trustIdempotent: boolean(
    'Whether a call of a tool that the server marks as idempotent is sent again when its outcome is unknown. Default false.',
  ).optional(),
  reconcile: z
    .record(z.string().min(1), z.string().min(1))
    .meta(
      table(
        'For each tool, the tool of the same server that reports the outcome of an interrupted call.',
        'a table of tool names',
      ),
    )
    .optional(),
  protocolVersion: choice(
    ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
    'The protocol version. Default: the newest that both sides support.',
  ).optional(),
  timeout: duration('1s', '24h', 'The time limit of a call. Default 60s.').optional(),
  required: boolean(
    'Whether startup fails, and /readyz reports 503, when the server is unavailable. Default true.',
  ).optional(),
})

export const mcpSetting = z
  .record(z.string(), z.unknown())
  .meta(table('MCP servers by name; see below. In the environment variable: a JSON object.', 'one table for each name'))

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file has placeholders of its own.
// The settings of MCP servers: one table for each name.
import { z } from 'zod'
import { boolean, choice, duration, list, table, text, url } from './kinds.ts'

const VARIABLE = /^[A-Za-z_]\w{0,63}$/
const PATTERN = /^[^*\s]*\*?$/

/** A table of `[mcp]`. */
export const mcpServerSettings = z.strictObject({
  url: url('Where the server is.').optional(),
  transport: choice(['http', 'sse'], 'Streamable HTTP, or its predecessor. Default "http".').optional(),
  headers: z
    .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string())
    .meta(table('Sent with each request.', 'a table of texts; secrets as "${VARIABLE}"'))
    .optional(),
  auth: z
    .strictObject({
      clientId: text('Of this service, at the authorization server (OAuth client credentials).'),
      secretVariable: z
        .string()
        .regex(VARIABLE)
        .meta(table('The environment variable that holds the secret.', 'the name of an environment variable')),
      issuer: url('The authorization server that the secret is for, as its metadata names it. Nobody else gets it.'),
      scope: text('What is asked for. Default: what the server names.').optional(),
    })
    .optional(),
  command: text('Instead of url: a program on this machine. Not in profile prod.').optional(),
  args: z.array(z.string()).meta(table('Its arguments.', 'a list of texts')).optional(),
  env: list(
    VARIABLE,
    'Variables of this environment that the program gets; beside PATH it gets no others.',
    'names of environment variables',
  ).optional(),
  tools: list(
    PATTERN,
    'Tools beside those that the server marks as read-only. They ask before they run.',
    'names of tools, or "prefix*"',
  ).optional(),
  allow: list(PATTERN, 'Tools that run without asking.', 'names of tools, or "prefix*"').optional(),
  trustReadOnly: boolean(
    'Whether tools that the server marks as read-only run without asking. Default false.',
  ).optional(),
  timeout: duration('1s', '24h', 'How long a call may take. Default 60s.').optional(),
  required: boolean('Whether the start fails when the server is not there. Default true.').optional(),
})

export const mcpSetting = z
  .record(z.string(), z.unknown())
  .meta(table('MCP servers by name: see below. In the variable: a JSON object.', 'one table for each name'))

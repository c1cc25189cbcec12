// One server's tools, resources and prompts as tools of an agent. The server's annotations are hints, which are not
// trusted by default.

import type { Tool as McpTool } from '@modelcontextprotocol/client'
import {
  type JsonSchema,
  needsApproval,
  OxbowError,
  type Tool,
  type ToolContext,
  type ToolResult,
  tool,
} from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import type { Connection } from '../connection/connection.ts'
import { type ElicitationQuestion, newAsking, wordsOfQuestion } from '../elicitation.ts'
import { CALL_TIMEOUT_MS, type McpServer, matches } from '../options.ts'
import { blocksOf, errorText, promptBlocks, resourceBlocks } from './content.ts'
import { MAX_DESCRIPTION } from './listing.ts'
import type { Naming } from './names.ts'
import { metaFor, reconcileWith } from './reconcile.ts'

const MAX_PROGRESS = 200

/** A server's tool before it has its name for the model. */
export interface Offer {
  readonly server: string
  readonly tool: string
  /** True when a rule of the operator lets it run without asking. */
  readonly allowed: boolean
  readonly build: (naming: Naming) => Tool
}

export interface Offered {
  readonly offers: readonly Offer[]
  readonly skipped: readonly { readonly tool: string; readonly reason: string }[]
}

/** The tools that the operator allows, and why the agent does not have the others. */
export function offered(connection: Connection, server: McpServer): Offered {
  const { tools, hasResources, hasPrompts } = connection.offers()
  const offers: Offer[] = []
  const skipped: { tool: string; reason: string }[] = []
  const seen = new Set<string>()
  for (const listed of tools) {
    const { tool: it } = listed
    seen.add(it.name)
    if ('skip' in listed) skipped.push({ tool: it.name, reason: listed.skip })
    else
      offers.push({
        server: connection.name,
        tool: it.name,
        allowed: matches(server.allow, it.name),
        build: (naming) => serverTool(naming, listed.tool, listed.input, connection, server),
      })
  }
  for (const { tool: name, build } of [
    ...(hasResources ? [LIST_RESOURCES, READ_RESOURCE] : []),
    ...(hasPrompts ? [LIST_PROMPTS, GET_PROMPT] : []),
  ])
    if (!seen.has(name))
      offers.push({
        server: connection.name,
        tool: name,
        allowed: matches(server.allow, name),
        build: (naming) => build(naming, connection, server),
      })
  return { offers, skipped }
}

/** The hint counts only where the operator trusts it: any effect but `read` asks by default. */
const effectsOf = (server: McpServer, readOnly: boolean): Tool['effects'] =>
  readOnly && server.trustReadOnly === true ? ['read'] : readOnly ? ['net'] : ['write', 'net']

function serverTool(
  naming: Naming,
  { name: published, description = '', annotations }: McpTool,
  input: JsonSchema,
  connection: Connection,
  server: McpServer,
): Tool {
  const { timeoutMs = CALL_TIMEOUT_MS } = server
  const readOnly = annotations?.readOnlyHint === true
  const onlyReads = readOnly && server.trustReadOnly === true
  const about = description.trim().slice(0, MAX_DESCRIPTION)
  const idempotent = onlyReads || (annotations?.idempotentHint === true && server.trustIdempotent === true)
  const witness = Object.hasOwn(server.reconcile ?? {}, published) ? server.reconcile![published] : undefined
  return tool({
    ...naming,
    description: about === '' ? `The tool ${published} of the MCP server ${connection.name}.` : about,
    input,
    effects: effectsOf(server, readOnly),
    timeoutMs,
    idempotent,
    ...(witness !== undefined && { reconcile: reconcileWith(connection, witness, timeoutMs) }),
    async run(given, context) {
      if (!connection.offers().tools.some((it) => it.tool.name === published))
        throw new OxbowError(
          'mcp_tool_gone',
          `MCP server ${connection.name} no longer offers ${published}. Continue without it.`,
        )
      return withQuestions(connection, published, given, context, { onlyReads, mayRepeat: idempotent, timeoutMs })
    },
  })
}

async function withQuestions(
  connection: Connection,
  published: string,
  given: Readonly<Record<string, unknown>>,
  context: ToolContext,
  { timeoutMs, ...how }: { readonly onlyReads: boolean; readonly mayRepeat: boolean; readonly timeoutMs: number },
): Promise<ToolResult> {
  const { signal } = context
  const asking = newAsking(context.decision)
  const result = await connection.request({ signal, asking, ...how, what: published }, (client) =>
    client.callTool(
      { name: published, arguments: given, _meta: metaFor(context.operationId) },
      { ...limits(context, timeoutMs), onprogress: progressTo(context) },
    ),
  )
  // The call ended with an unanswered question: its result is meaningless.
  if (asking.open !== undefined) return ask(connection.name, published, given, asking.decided, asking.open)
  if (result.isError === true) throw new OxbowError('mcp_tool_error', errorText(result))
  return blocksOf(result)
}

function ask(
  server: string,
  name: string,
  given: Readonly<Record<string, unknown>>,
  decided: readonly ElicitationQuestion[],
  open: ElicitationQuestion,
): ToolResult {
  return needsApproval({
    arguments: { server, tool: name, arguments: given, questions: [...decided, open] },
    reason: `The MCP server ${server} asks: ${wordsOfQuestion(open)}`,
  })
}

/** The tool has its own time limit, which fires before the library's. */
const limits = ({ signal }: Pick<ToolContext, 'signal'>, timeoutMs: number) => ({ signal, timeout: timeoutMs + 1_000 })

const progressTo =
  ({ progress }: ToolContext) =>
  ({
    progress: done,
    total,
    message,
  }: {
    progress: number
    total?: number | undefined
    message?: string | undefined
  }): void => {
    const share = total === undefined ? String(done) : `${done} of ${total}`
    progress((message === undefined ? share : `${message} (${share})`).slice(0, MAX_PROGRESS))
  }

interface BuiltIn {
  readonly tool: string
  build(naming: Naming, connection: Connection, server: McpServer): Tool
}

/** A built-in tool for resources and prompts. */
function builtIn(
  name: string,
  description: (server: string) => string,
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[],
  run: (
    client: Parameters<Parameters<Connection['request']>[1]>[0],
    input: Record<string, unknown>,
    options: ReturnType<typeof limits>,
  ) => Promise<ToolResult>,
): BuiltIn {
  return {
    tool: name,
    build: (naming, connection, server) =>
      tool({
        ...naming,
        description: description(connection.name),
        effects: effectsOf(server, true),
        timeoutMs: server.timeoutMs ?? CALL_TIMEOUT_MS,
        input: { type: 'object', properties, required, additionalProperties: false },
        run: (input, context) =>
          connection.request({ signal: context.signal, onlyReads: true, what: name }, (client) =>
            run(client, input, limits(context, server.timeoutMs ?? CALL_TIMEOUT_MS)),
          ),
      }),
  }
}

const LIST_RESOURCES = builtIn(
  'list_resources',
  (server) => `Lists the resources that the MCP server ${server} has: their addresses, and templates of addresses.`,
  {},
  [],
  async (client, _, options) => {
    const { resources } = await client.listResources(undefined, options)
    const { resourceTemplates } = await client
      .listResourceTemplates(undefined, options)
      .catch(() => ({ resourceTemplates: [] }))
    return {
      resources: resources.map(({ uri, name, mimeType, description }) => ({ uri, name, mimeType, description })),
      templates: resourceTemplates.map(({ uriTemplate, name, description }) => ({ uriTemplate, name, description })),
    }
  },
)

const READ_RESOURCE = builtIn(
  'read_resource',
  (server) => `Reads a resource of the MCP server ${server}.`,
  { uri: { type: 'string', minLength: 1, description: 'The address, as list_resources returns it.' } },
  ['uri'],
  async (client, input, options) => resourceBlocks(await client.readResource({ uri: String(input.uri) }, options)),
)

const LIST_PROMPTS = builtIn(
  'list_prompts',
  (server) => `Lists the prompts that the MCP server ${server} has ready, with their arguments.`,
  {},
  [],
  async (client, _, options) => {
    const { prompts } = await client.listPrompts(undefined, options)
    return {
      prompts: prompts.map(({ name, description, arguments: given }) => ({ name, description, arguments: given })),
    }
  },
)

const GET_PROMPT = builtIn(
  'get_prompt',
  (server) => `Gets a prompt of the MCP server ${server}, filled in.`,
  {
    name: { type: 'string', minLength: 1, description: 'As list_prompts returns it.' },
    arguments: { type: 'object', additionalProperties: { type: 'string' } },
  },
  ['name'],
  async (client, input, options) => {
    const given = input.arguments as Record<string, string> | undefined
    return promptBlocks(await client.getPrompt({ name: String(input.name), ...defined({ arguments: given }) }, options))
  },
)

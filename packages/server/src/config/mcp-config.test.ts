import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../index.ts'

function load(toml: string, environment: Record<string, string> = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-config-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const OXBOW_CONFIG = join(directory, 'oxbow.toml')
  writeFileSync(OXBOW_CONFIG, toml)
  return loadConfig({ environment: { OXBOW_CONFIG, ...environment } })
}

const problemsOf = async (loading: Promise<unknown>): Promise<string[]> => {
  const error = await loading.then(
    () => undefined,
    (it: { details: { problems: string[] } }) => it,
  )
  return error!.details.problems
}

describe('Y12: MCP servers by configuration', () => {
  test('have an address or a program, and every field that the file sets', async () => {
    const toml = `
[mcp.issues]
url = "https://issues.internal/mcp"
transport = "sse"
headers = { authorization = "Bearer \${ISSUES_TOKEN}" }
trustReadOnly = true
tools = ["create_*"]
trustIdempotent = true
reconcile = { create_issue = "find_issue" }
protocolVersion = "2025-06-18"
timeout = "2m"
required = false
[mcp.orders]
url = "https://orders.internal/mcp"
auth = { clientId = "oxbow", secretVariable = "ORDERS_SECRET", issuer = "https://login.internal", scope = "read" }
[mcp.memory]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-memory"]
env = ["HOME"]
allow = ["*"]`
    const environment = { ISSUES_TOKEN: 'it', ORDERS_SECRET: 'os', HOME: '/home/ann', OTHER: 'kept back' }
    expect((await load(toml, environment)).mcp).toEqual({
      issues: {
        url: 'https://issues.internal/mcp',
        transport: 'sse',
        headers: { authorization: 'Bearer it' },
        trustReadOnly: true,
        tools: ['create_*'],
        trustIdempotent: true,
        reconcile: { create_issue: 'find_issue' },
        protocolVersion: '2025-06-18',
        timeoutMs: 120_000,
        required: false,
      },
      orders: {
        url: 'https://orders.internal/mcp',
        auth: {
          type: 'client-credentials',
          clientId: 'oxbow',
          clientSecret: 'os',
          issuer: 'https://login.internal',
          scope: 'read',
        },
      },
      memory: {
        command: 'npx',
        args: ['-y', '@modelcontextprotocol/server-memory'],
        env: { HOME: '/home/ann' },
        allow: ['*'],
      },
    })
  })

  const url = '[mcp.a]\nurl = "https://a/mcp"\n'

  test.each(['http', 'streamable-http'])('streamable HTTP may be called %s', async (transport) => {
    const { mcp } = await load(`${url}transport = "${transport}"`)
    expect(mcp.a).toMatchObject({ transport: 'http' })
  })

  test.each([
    ['neither an address nor a program', '[mcp.a]\ntools = ["x"]', /^mcp\.a: needs either url .* or command/],
    ['both', `${url}command = "npx"`, /^mcp\.a: needs either url/],
    ['arguments for an address', `${url}args = ["x"]`, /^mcp\.a\.args: only allowed with command/],
    [
      'headers for a program',
      '[mcp.a]\ncommand = "x"\nheaders = { a = "b" }',
      /^mcp\.a\.headers: only allowed with url/,
    ],
    [
      'a key in a header',
      `${url}headers = { Authorization = "Bearer sk-1234" }`,
      /^mcp\.a\.headers\.Authorization: keys are not allowed in the file/,
    ],
    [
      'an unset variable',
      '[mcp.a]\ncommand = "x"\nenv = ["NOT_SET"]',
      /^mcp\.a\.env: the environment variable NOT_SET is not set/,
    ],
    [
      'an unset secret',
      `${url}auth = { clientId = "a", secretVariable = "NOT_SET", issuer = "https://login.internal" }`,
      /^mcp\.a\.auth\.secretVariable: the environment variable NOT_SET is not set/,
    ],
    [
      'a mistyped setting',
      `${url}trustReadonly = true`,
      /^mcp\.a\.trustReadonly: unknown setting; did you mean trustReadOnly\?/,
    ],
    [
      'an unsupported scheme',
      '[mcp.a]\nurl = "file:///etc/passwd"',
      /^mcp\.a\.url: got a value that is not shown; allowed: an address/,
    ],
    ['a name with a dot', '[mcp."a.b"]\nurl = "https://a/mcp"', /^mcp: "a\.b" is not a valid name/],
    ['a value in place of a table', '[mcp]\na = "https://a/mcp"', /^mcp\.a: got "https:\/\/a\/mcp"; allowed: a table/],
  ])('%s is rejected, and the error names its key', async (_, toml, message) => {
    const problems = await problemsOf(load(toml))
    expect(problems).toEqual([expect.stringMatching(message)])
    expect(problems.join()).not.toContain('sk-1234')
  })

  test('a program is rejected in profile prod', async () => {
    const problems = await problemsOf(load('[mcp.a]\ncommand = "npx"', { OXBOW_PROFILE: 'prod' }))
    expect(problems).toContainEqual(expect.stringMatching(/^mcp\.a\.command: not allowed in profile prod/))
  })
})

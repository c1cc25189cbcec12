// Public MCP servers: each is connected, listed and called.
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ToolContext } from '@oxbow/core'
import { type McpCapability, mcp } from '@oxbow/harness'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { needsInstalled, path } from './installed.ts'

needsInstalled()

let directory: string
beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'oxbow-mcp-')))
  return () => rmSync(directory, { recursive: true })
})

/** @param skipped the tools of the server that cannot be offered */
async function start(
  program: string,
  args: string[] = [],
  env: Record<string, string> = {},
  skipped: readonly { readonly tool: string; readonly reason: string }[] = [],
): Promise<McpCapability> {
  const servers = await mcp({
    server: {
      command: process.execPath,
      args: [path(`./node_modules/${program}`), ...args],
      env: { HOME: directory, ...env },
      cwd: directory,
      tools: ['*'],
    },
  })
  onTestFinished(() => servers.close())
  expect(servers.status()[0]).toMatchObject({ state: 'connected', skipped })
  return servers
}

async function call(servers: McpCapability, name: string, input: Record<string, unknown>) {
  const lines: string[] = []
  const context = { signal: AbortSignal.timeout(20_000), progress: (line: string) => lines.push(line) }
  const result = await servers.tools.find((it) => it.name === name)!.run!(
    input as never,
    context as unknown as ToolContext,
  )
  return { result: JSON.stringify(result), lines }
}

describe('Y12: a well-known server', { timeout: 60_000 }, () => {
  test('everything: results of each kind, progress, resources and prompts', async () => {
    const servers = await start('@modelcontextprotocol/server-everything/dist/index.js', [], {}, [
      { tool: 'simulate-research-query', reason: 'it runs only as a task, which is not supported' },
    ])
    expect((await call(servers, 'get-sum', { a: 2, b: 3 })).result).toContain('is 5')
    expect((await call(servers, 'get-tiny-image', {})).result).toContain('"mediaType":"image/png"')
    expect((await call(servers, 'get-structured-content', { location: 'New York' })).result).toContain('temperature')
    const long = await call(servers, 'trigger-long-running-operation', { duration: 0.3, steps: 3 })
    // The last one and the result may come in either order.
    expect(long.lines.slice(0, 2)).toEqual(['1 of 3', '2 of 3'])
    expect((await call(servers, 'list_resources', {})).result).toContain('demo://')
    expect((await call(servers, 'list_prompts', {})).result).toContain('simple-prompt')
    expect((await call(servers, 'get_prompt', { name: 'simple-prompt' })).result).toContain('user:')
  })

  test('filesystem: a refusal is an error with the server’s message', async () => {
    writeFileSync(join(directory, 'note.txt'), 'a note')
    const servers = await start('@modelcontextprotocol/server-filesystem/dist/index.js', [directory])
    const read = (file: string) => call(servers, 'read_text_file', { path: file })
    expect((await read(join(directory, 'note.txt'))).result).toContain('a note')
    await expect(read('/etc/passwd')).rejects.toMatchObject({
      code: 'mcp_tool_error',
      message: expect.stringContaining('Access denied'),
    })
  })

  test('memory', async () => {
    const env = { MEMORY_FILE_PATH: join(directory, 'memory.json') }
    const servers = await start('@modelcontextprotocol/server-memory/dist/index.js', [], env)
    const entities = [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }]
    await call(servers, 'create_entities', { entities })
    expect((await call(servers, 'search_nodes', { query: 'tea' })).result).toContain('Ann')
  })

  test('sequential-thinking', async () => {
    const servers = await start('@modelcontextprotocol/server-sequential-thinking/dist/index.js')
    const thought = { thought: 'Begin.', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }
    expect((await call(servers, 'sequentialthinking', thought)).result).toContain('thoughtHistoryLength')
  })

  test('playwright: without a browser it says so', async () => {
    const servers = await start('@playwright/mcp/cli.js', ['--executable-path', join(directory, 'no-browser')])
    expect(servers.tools.map((it) => it.name)).toContain('browser_navigate')
    await expect(call(servers, 'browser_navigate', { url: 'about:blank' })).rejects.toMatchObject({
      code: 'mcp_tool_error',
    })
  })

  test('eslint', async () => {
    writeFileSync(join(directory, 'eslint.config.js'), 'export default [{ rules: { "no-var": "error" } }]')
    writeFileSync(join(directory, 'old.js'), 'var a = 1\n')
    const servers = await start('@eslint/mcp/src/mcp-cli.js')
    expect((await call(servers, 'lint-files', { filePaths: [join(directory, 'old.js')] })).result).toContain('no-var')
  })

  test('notion: its operations come from OpenAPI; without a network a call is an error', async () => {
    const servers = await start('@notionhq/notion-mcp-server/bin/cli.mjs', [], {
      NOTION_TOKEN: 'ntn_none',
      BASE_URL: 'http://127.0.0.1:9',
    })
    expect(servers.tools.length).toBeGreaterThan(15)
    expect(servers.tools.map((it) => it.name)).toContain('API-post-search')
  })

  test('context7: speaks the protocol of 2026-07-28', async () => {
    const servers = await start('@upstash/context7-mcp/dist/index.js')
    expect(servers.status()[0]!.protocolVersion).toBe('2026-07-28')
    expect(servers.tools.map((it) => it.name)).toContain('resolve-library-id')
    expect((await call(servers, 'list_prompts', {})).result).toContain('prompts')
  })
})

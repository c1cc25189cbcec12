import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { place, scripted } from '../cli.fixture.ts'
import { STOCK_SERVER } from '../mcp.fixture.ts'

function configured(more = '') {
  const it = place()
  const args = JSON.stringify([join(it.directory, 'stock.mjs')])
  writeFileSync(join(it.directory, 'stock.mjs'), STOCK_SERVER)
  const toml = `[mcp.stock]\ncommand = "${process.execPath}"\nargs = ${args}\ntrustReadOnly = true\n${more}`
  writeFileSync(join(it.directory, 'oxbow.toml'), toml)
  return it
}

test('a call whose outcome is unknown is reported on standard error, and has an exit code', async () => {
  const it = configured('allow = ["order"]')
  // The server dies in the middle of the call, so it is unknown whether it has ordered.
  const dying = STOCK_SERVER.replace(
    "{ description: 'Orders.' }, () => ({ content })",
    "{ description: 'Orders.' }, () => process.exit(1)",
  )
  expect(dying).not.toBe(STOCK_SERVER)
  writeFileSync(join(it.directory, 'stock.mjs'), dying)
  const { env } = await scripted({
    scripts: { '*': [{ calls: [{ name: 'order', arguments: {} }] }, { text: 'Ordered.' }] },
  })
  const { stdout, stderr, code } = await it.run(['run', '-p', 'Order.', '--session', 's1'], { env })
  expect({ stdout, code }).toEqual({ stdout: 'Ordered.\n', code: 6 })
  expect(stderr).toContain('the outcome of order is unknown: it was interrupted and may have run (session s1)')
})

describe('Y12: oxbow mcp', () => {
  test('`mcp list` shows the configured servers without secrets', async () => {
    const it = configured('[mcp.far]\nurl = "http://127.0.0.1:9/mcp?key=hidden"')
    const { stdout, code } = await it.run(['mcp', 'list'])
    expect(code).toBe(0)
    expect(stdout).toContain('http://127.0.0.1:9/mcp')
    expect(stdout).toMatch(/^stock +\S*node/)
    expect(stdout).not.toContain('hidden')
  })

  test('`mcp test` connects, and shows which tools the agent gets and which it does not', async () => {
    const { stdout, code } = await configured().run(['mcp', 'test'])
    expect(stdout.trim().split('\n')).toEqual([
      'stock: stock 1.0.0, MCP 2026-07-28',
      '  ✓ stock_level',
      '  – order: it is not marked as read-only; name it in "tools" or "allow"',
    ])
    expect(code).toBe(0)
  })

  test('the agent can call the tools', async () => {
    const { stdout } = await configured().run(['run', '-p', 'What is the stock level?'])
    expect(stdout).toContain('Result of stock_level: There are 12.')
  })

  test('`mcp test` reports why a server is unreachable and exits with 1', async () => {
    const it = configured('[mcp.far]\nurl = "http://127.0.0.1:9/mcp?key=hidden"')
    const { stdout, code } = await it.run(['mcp', 'test', 'far'])
    expect(code).toBe(1)
    expect(stdout).toContain('far: MCP server far: unreachable')
    expect(stdout).not.toContain('hidden')
  })

  test.each(['list', 'test'])('`mcp %s` reports that there are no servers', async (command) => {
    const { stdout, stderr, code } = await place().run(['mcp', command])
    expect({ stdout, code }).toEqual({ stdout: '', code: 0 })
    expect(stderr).toContain('No MCP servers are configured')
  })

  test('`mcp test` of an unknown name lists the configured ones, and exits with 2', async () => {
    const { stderr, code } = await configured().run(['mcp', 'test', 'stok'])
    expect(code).toBe(2)
    expect(stderr).toContain('Unknown MCP server "stok". Configured: stock.')
  })
})

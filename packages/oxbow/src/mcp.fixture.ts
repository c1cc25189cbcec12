// An MCP server for tests: a program with one tool that only reads and one that does not.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(import.meta.url)
/** The test directory has no packages. */
const library = (name: string): string => JSON.stringify(pathToFileURL(require.resolve(name)).href)

export const STOCK_SERVER = `
import { McpServer } from ${library('@modelcontextprotocol/server')}
import { serveStdio } from ${library('@modelcontextprotocol/server/stdio')}
serveStdio(() => {
  const server = new McpServer({ name: 'stock', version: '1.0.0' })
  const content = [{ type: 'text', text: 'There are 12.' }]
  const annotations = { readOnlyHint: true }
  server.registerTool('stock_level', { description: 'Tells the stock level.', annotations }, () => ({ content }))
  server.registerTool('order', { description: 'Orders.' }, () => ({ content }))
  return server
})`

// Which tools of a server an agent may have, and why it does not have the others. A server may list anything: skipped
// tools cost nothing, and the offered ones are bounded.
import type { Tool } from '@modelcontextprotocol/client'
import type { JsonSchema } from '@oxbow/core'
import { validatorFor } from '@oxbow/core/internal'
import { type McpServer, matches } from '../options.ts'
import { modernSchema } from './schema.ts'

const MAX_TOOLS = 512
/** Descriptions and schemas of all tools of a server together, in characters. Every model request carries them. */
const MAX_TOTAL = 1_000_000
const MAX_NAME = 128
export const MAX_DESCRIPTION = 4_000

/** The usual reason for skipping a tool; it is not an error. */
export const NOT_MARKED = 'it is not marked as read-only; name it in "tools" or "allow"'

/** A server's tool with a usable input schema, or the reason why the agent does not have it. */
export type Listed =
  | { readonly tool: Tool; readonly input: JsonSchema }
  | { readonly tool: Pick<Tool, 'name'>; readonly skip: string }

/**
 * Checks each tool of a server's list.
 *
 * @example
 * await listed([{ name: 'look', inputSchema: { type: 'object' } }], { url: 'https://docs.internal/mcp', tools: ['*'] })
 */
export async function listed(tools: readonly Tool[], server: McpServer): Promise<Listed[]> {
  const result: Listed[] = []
  const seen = new Set<string>()
  let taken = 0
  let total = 0
  for (const tool of tools) {
    const { name } = tool
    const skip = (why: string): void => void result.push({ tool: { name: name.slice(0, MAX_NAME) }, skip: why })
    const isFirst = !seen.has(name)
    seen.add(name)
    const wanted = tool.annotations?.readOnlyHint === true || matches(server.allow, name) || matches(server.tools, name)
    if (!isFirst) skip('the server lists it twice')
    else if (name.length > MAX_NAME) skip(`its name is longer than ${MAX_NAME} characters`)
    else if (!wanted) skip(NOT_MARKED)
    else if (taken >= MAX_TOOLS) skip(`an agent has at most ${MAX_TOOLS} tools of one server`)
    else
      try {
        const input = modernSchema(tool.inputSchema)
        const length = Math.min(tool.description?.length ?? 0, MAX_DESCRIPTION) + JSON.stringify(input).length
        if (total + length > MAX_TOTAL) {
          skip(`the tools of the server are longer than ${MAX_TOTAL} characters together`)
          continue
        }
        await validatorFor(input, name)
        taken++
        total += length
        result.push({ tool, input })
      } catch (error) {
        skip(`its input schema cannot be used: ${(error as Error).message}`)
      }
  }
  return result
}

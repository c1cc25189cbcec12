// The outcome of an interrupted call, reported by a read-only tool of the same server.
import type { CallToolResult } from '@modelcontextprotocol/client'
import type { Reconciliation, ToolDefinition } from '@oxbow/core'
import type { Connection } from '../connection/connection.ts'
import { isJsonObject } from '../transport/repair.ts'

/** Metadata of each call: a server that remembers the id executes a repetition only once. */
export const metaFor = (operationId: string): { readonly 'oxbow/operationId': string } => ({
  'oxbow/operationId': operationId,
})

const ID_NAMES = ['operation_id', 'operationId']
const UNKNOWN: Reconciliation = { status: 'unknown' }

/**
 * A tool's `reconcile` that calls another tool of its server.
 *
 * @param witness the other tool's name, as the server publishes it
 * @param timeoutMs for its answer
 * @example tool({ ...definition, reconcile: reconcileWith(connection, 'find_order', 60_000) })
 */
export const reconcileWith =
  (connection: Connection, witness: string, timeoutMs: number): NonNullable<ToolDefinition['reconcile']> =>
  async (operationId, given, { signal }) => {
    const listed = connection.offers().tools.find((it) => it.tool.name === witness)
    // The server decides whether to take part: a missing tool reports nothing.
    if (listed === undefined || !('inputSchema' in listed.tool)) return UNKNOWN
    const { properties = {} } = listed.tool.inputSchema
    const known: Readonly<Record<string, unknown>> = {
      ...(given as object),
      ...Object.fromEntries(ID_NAMES.map((it) => [it, operationId])),
    }
    const wanted = Object.keys(properties).filter((it) => Object.hasOwn(known, it))
    const result = await connection.request({ signal, onlyReads: true, what: witness }, (client) =>
      client.callTool(
        {
          name: witness,
          arguments: Object.fromEntries(wanted.map((it) => [it, known[it]])),
          _meta: metaFor(operationId),
        },
        { signal, timeout: timeoutMs },
      ),
    )
    return readingOf(result)
  }

/** Any unclear answer leaves the outcome unknown. */
function readingOf({ isError, structuredContent, content }: CallToolResult): Reconciliation {
  if (isError === true) return UNKNOWN
  const answer = structuredContent ?? jsonIn(content)
  if (!isJsonObject(answer)) return UNKNOWN
  if (answer.status === 'not_done') return { status: 'not_done' }
  return answer.status === 'done' ? { status: 'done', result: answer.result ?? 'Done.' } : UNKNOWN
}

function jsonIn(content: CallToolResult['content']): unknown {
  const [block] = content
  try {
    return content.length === 1 && block?.type === 'text' ? JSON.parse(block.text) : undefined
  } catch {
    return undefined
  }
}

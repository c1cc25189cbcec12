// POST /mcp: the agents as tools of the Model Context Protocol over streamable HTTP. Between requests only calls that
// can be cancelled are kept, so any replica answers any request.
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type BodyLimits, readJson } from '../http/body.ts'
import { type Route, route } from '../http/route.ts'
import { callerOf } from '../principal.ts'
import type { AgentServing, McpCaller } from './agent-server.ts'

export type McpServing = Omit<AgentServing, 'running'> & { readonly limits: BodyLimits }

const SESSION = 'mcp-session-id'
/** A client id that we gave to a client of protocol 2025-11-25. */
const SESSION_ID = /^[0-9a-f-]{36}$/

const message = z.looseObject({
  method: z.string().optional(),
  params: z.looseObject({ requestId: z.union([z.string(), z.number()]).optional() }).optional(),
})

export function mcpRoute({ limits, ...deps }: McpServing): Route {
  const running: AgentServing['running'] = new Map()
  /** Errors before the answer is complete: only the answer shows whose mistake they are. */
  const unanswered = new AsyncLocalStorage<{ faults: unknown[] | undefined }>()
  /** The library takes a third of the service's load time, so the first request loads it. */
  const load = async () => {
    const [{ createMcpHandler }, { agentServer, nameOfCall }] = await Promise.all([
      import('@modelcontextprotocol/server'),
      import('./agent-server.ts'),
    ])
    const handler = createMcpHandler(
      ({ era, authInfo }) => agentServer({ ...deps, running }, { ...(authInfo?.extra as unknown as McpCaller), era }),
      {
        onerror(error) {
          const faults = unanswered.getStore()?.faults
          if (faults === undefined) deps.report(error)
          else faults.push(error)
        },
      },
    )
    return { handler, nameOfCall }
  }
  let loading: ReturnType<typeof load> | undefined
  return route({
    method: 'post',
    path: '/mcp',
    id: 'mcp',
    summary: 'Model Context Protocol over streamable HTTP: each agent is a tool.',
    headers: z.object({
      'Mcp-Session-Id': z.string().optional().describe('The client id from the answer to `initialize`.'),
    }),
    answers: {
      200: { description: 'A JSON-RPC message, or a stream of them.', contentType: 'text/event-stream' },
      202: { description: 'A notification was accepted.' },
    },
    async handle(_request, c) {
      const body = await readJson(c, limits)
      loading ??= load()
      const { handler, nameOfCall } = await loading
      const { method, params } = message.safeParse(body).data ?? {}
      const given = c.req.header(SESSION)
      const client = given !== undefined && SESSION_ID.test(given) ? given : undefined
      const caller: McpCaller = { ...callerOf(c), client, outgoing: c.env.outgoing }
      if (method === 'notifications/cancelled' && params?.requestId !== undefined)
        running.get(nameOfCall(caller, params.requestId) ?? '')?.abort()
      const authInfo = { token: '', clientId: caller.principal.user, scopes: [], extra: { ...caller } }
      const pending = { faults: [] as unknown[] | undefined }
      const answer = await unanswered.run(pending, () => handler.fetch(c.req.raw, { parsedBody: body, authInfo }))
      if (answer.status >= 500) for (const fault of pending.faults ?? []) deps.report(fault)
      pending.faults = undefined
      // A client id, so that the client's next requests can name which of its calls they cancel or repeat.
      if (method === 'initialize' && answer.ok) answer.headers.set(SESSION, randomUUID())
      return answer
    },
  })
}

// /healthz: whether the process runs. /readyz: whether it can serve requests, and which capability is missing.
import type { Engine } from '@oxbow/core'
import { z } from 'zod'
import type { Condition, Dependency } from './dependency.ts'
import { type Route, route } from './http/route.ts'
import { isStranger } from './principal.ts'

export type Phase = 'starting' | 'ready' | 'stopping'

const CHECK_MS = 2_000

/** @param dependencies their current state; the service is ready without optional ones, but names them */
export function healthRoutes(engine: Engine, phase: () => Phase, dependencies: () => readonly Dependency[]): Route[] {
  const capability = z.object({ ok: z.boolean(), detail: z.string() })
  const readiness = z.object({
    status: z.enum(['ready', 'starting', 'stopping', 'degraded']),
    capabilities: z
      .object({
        store: capability,
        journal: capability,
        files: capability,
        queue: capability,
        bus: capability,
        locks: capability,
        leases: capability,
        model: capability,
        agents: capability,
      })
      .catchall(capability)
      .optional()
      .describe(
        'Each capability by name, MCP servers as mcp:NAME. Omitted for anonymous callers when identity is enabled.',
      ),
  })
  return [
    route({
      method: 'get',
      path: '/healthz',
      id: 'health',
      access: 'open',
      summary: 'Whether the process runs.',
      answers: { 200: { description: 'The process runs.', schema: z.object({ status: z.literal('ok') }) } },
      handle: (_request, c) => c.json({ status: 'ok' }),
    }),
    route({
      method: 'get',
      path: '/readyz',
      id: 'readiness',
      access: 'optional',
      summary: 'Whether the service is ready, by capability.',
      answers: {
        200: { description: 'The service is ready.', schema: readiness },
        503: {
          description: 'The service is not ready: it is starting or stopping, or a capability is missing.',
          schema: readiness,
        },
      },
      async handle(_request, c) {
        const own = { ...(await stores(engine)), model: models(engine), agents: agents(engine) }
        const others = dependencies()
        const allOk = Object.values(own).every((it) => it.ok) && others.every(({ ok, required }) => ok || !required)
        const capabilities = {
          ...own,
          ...Object.fromEntries(others.map(({ name, ok, detail }) => [name, { ok, detail }])),
        }
        const now = phase()
        const status = now === 'ready' && !allOk ? 'degraded' : now
        return c.json({ status, ...(!isStranger(c) && { capabilities }) }, status === 'ready' ? 200 : 503)
      },
    }),
  ]
}

/** What is stored, and where. The check of the back end covers all but the queue. */
async function stores({ backend }: Engine) {
  const { name } = backend
  const [store, queue] = await Promise.all([
    answered(name, async () => {
      await backend.check()
      return name
    }),
    answered(name, async () => {
      const { due, failed } = await backend.queue.depth()
      return `${name}: ${due} due, ${failed} failed`
    }),
  ])
  return { store, journal: store, files: store, queue, bus: store, locks: store, leases: store }
}

async function answered(name: string, ask: () => Promise<string>): Promise<Condition> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_MS} ms`)), CHECK_MS)
  })
  try {
    return { ok: true, detail: await Promise.race([ask(), late]) }
  } catch (error) {
    return { ok: false, detail: `${name}: ${error instanceof Error ? error.message : String(error)}` }
  } finally {
    clearTimeout(timer)
  }
}

/** The configured models. Only a paid request would show whether a provider answers. */
function models({ agents }: Engine): Condition {
  const ids = [...new Set([...agents.values()].map((it) => it.model.id))]
  return ids.length === 0 ? { ok: false, detail: 'no model is configured' } : { ok: true, detail: ids.join(', ') }
}

function agents({ agents }: Engine): Condition {
  const names = [...agents.keys()]
  return names.length === 0 ? { ok: false, detail: 'no agent is defined' } : { ok: true, detail: names.join(', ') }
}

// The agent of the cluster: one tool for each way in which an effect can be safe.

import { postgres, redis, tiered } from '@oxbow/backends'
import { type Agent, agent, type Backend, type Reconciliation, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import type { Reply, ScriptedRequest } from '@oxbow/testing'

export const KINDS = ['read', 'send', 'put', 'fire', 'pay', 'ship'] as const
export type Kind = (typeof KINDS)[number]

export interface Place {
  readonly store: 'postgres' | 'tiered'
  readonly postgres: string
  readonly redis: string
  readonly model: string
  readonly ledger: string
}

export function backendAt({ store, ...at }: Place): Backend {
  const durable = postgres({ url: at.postgres, leaseMs: 3_000, poolSize: 6 })
  return store === 'postgres' ? durable : tiered({ store: durable, hot: redis({ url: at.redis }) })
}

export function workAt({ ledger, model }: Pick<Place, 'ledger' | 'model'>): Agent {
  const ask = async (method: 'GET' | 'POST', id: string): Promise<number> =>
    Number(await (await fetch(`${ledger}/${encodeURIComponent(id)}`, { method })).text())
  const act = async (id: string): Promise<string> => {
    await ask('POST', id)
    return 'done'
  }
  const reconcile = async (id: string): Promise<Reconciliation> =>
    (await ask('GET', id)) > 0 ? { status: 'done', result: 'done' } : { status: 'not_done' }
  const common = { input: { type: 'object', properties: {} }, description: 'Does something.' } as const
  return agent({
    name: 'worker',
    version: '1',
    model: openaiChat({ provider: 'test', model: 'worker', baseUrl: model }),
    instructions: 'Work.',
    limits: { maxRecoveries: 1_000 },
    allow: ['send', 'put', 'fire', 'ship'],
    tools: [
      tool({ ...common, name: 'read', effects: ['read'], run: () => 'read' }),
      tool({ ...common, name: 'send', effects: ['write'], reconcile, run: (_, { operationId }) => act(operationId) }),
      tool({
        ...common,
        name: 'put',
        effects: ['write'],
        idempotent: true,
        run: (_, { operationId }) => act(operationId),
      }),
      tool({ ...common, name: 'fire', effects: ['write'], run: (_, { operationId }) => act(operationId) }),
      tool({ ...common, name: 'pay', effects: ['write'], reconcile, run: (_, { operationId }) => act(operationId) }),
      tool({
        ...common,
        name: 'ship',
        effects: ['write'],
        durable: true,
        async run(_, { step, sleep, waitFor }) {
          const once = (name: string) =>
            step(name, ({ operationId }) => act(operationId), { reconcile: reconcile as never })
          await once('reserve')
          await sleep(300)
          await once('bill')
          await waitFor('go')
          return once('send')
        },
      }),
    ],
  })
}

/** One call of the tool that the input names, then the end. */
export function replyTo({ messages }: ScriptedRequest): Reply {
  if (messages.at(-1)!.role === 'tool') return { text: 'All of it is done. '.repeat(20) }
  const input = JSON.stringify(messages.findLast((it) => it.role === 'user')?.content)
  return { calls: [{ name: KINDS.find((it) => input.includes(it))! }] }
}

// Two engines on one store, as two replicas behind a load balancer have it.
import { memory, postgres } from '@oxbow/backends'
import { openaiChat } from '@oxbow/models'
import { type Reply, type ScriptedRequest, scriptedModel } from '@oxbow/testing'
import { onTestFinished } from 'vitest'
import { type AgentDefinition, agent, type Backend, createEngine, type Engine, type EngineOptions } from './index.ts'
import { newSchema, postgresUrl } from './postgres.fixture.ts'

type Replies = (request: ScriptedRequest) => Reply | undefined | Promise<Reply | undefined>
type ReplicaOptions = Pick<EngineOptions, 'role' | 'maxTurns'>

export type Store = 'memory' | 'postgres'

/** Starts a replica for each of `options`, in this process, with a back end of its own. `helper` gets these replies. */
export async function replicas(
  store: Store,
  replies: Replies,
  definition: Partial<AgentDefinition> = {},
  options: readonly ReplicaOptions[] = [{}, {}],
): Promise<{ engines: Engine[]; backend: Backend; errors: unknown[]; url: string; schema: string }> {
  const server = await scriptedModel({ scripts: { helper: replies } })
  const errors: unknown[] = []
  const { schema, drop } = newSchema()
  const shared = memory()
  const helper = agent({
    name: 'helper',
    model: openaiChat({ provider: 'test', model: 'helper', baseUrl: server.url }),
    instructions: 'You help.',
    ...definition,
  })
  const engines = options.map((it) =>
    createEngine({
      backend: store === 'memory' ? shared : postgres({ url: postgresUrl, schema }),
      agents: [helper],
      onError: (error) => errors.push(error),
      ...it,
    }),
  )
  onTestFinished(async () => {
    await Promise.all(engines.map((it) => it.stop(0)))
    await Promise.all(engines.map((it) => it.backend.close()))
    await server.close()
    if (store === 'postgres') await drop()
  })
  for (const it of engines) await it.start()
  return { engines, backend: engines[0]!.backend, errors, url: server.url, schema }
}

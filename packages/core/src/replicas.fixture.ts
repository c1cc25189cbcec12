// Two engines on one store, as two replicas behind a load balancer have it.
import { memory } from '@oxbow/backends'
import { openaiChat } from '@oxbow/models'
import { type Reply, type ScriptedRequest, scriptedModel } from '@oxbow/testing'
import { onTestFinished } from 'vitest'
import { type AgentDefinition, agent, type Backend, createEngine, type Engine, type EngineOptions } from './index.ts'

type Replies = (request: ScriptedRequest) => Reply | undefined | Promise<Reply | undefined>
type ReplicaOptions = Pick<EngineOptions, 'role' | 'maxTurns'>

/** Starts a replica for each of `options`. The agent `helper` gets these replies. */
export async function replicas(
  replies: Replies,
  definition: Partial<AgentDefinition> = {},
  options: readonly ReplicaOptions[] = [{}, {}],
): Promise<{ engines: Engine[]; backend: Backend; errors: unknown[] }> {
  const server = await scriptedModel({ scripts: { helper: replies } })
  const errors: unknown[] = []
  const backend = memory()
  const engines = options.map((it) =>
    createEngine({
      backend,
      agents: [
        agent({
          name: 'helper',
          model: openaiChat({ provider: 'test', model: 'helper', baseUrl: server.url }),
          instructions: 'You help.',
          ...definition,
        }),
      ],
      onError: (error) => errors.push(error),
      ...it,
    }),
  )
  onTestFinished(async () => {
    await Promise.all(engines.map((it) => it.stop(0)))
    await backend.close()
    await server.close()
  })
  for (const it of engines) await it.start()
  return { engines, backend, errors }
}

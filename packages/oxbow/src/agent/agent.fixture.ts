// The default agent as in a service, with a scripted model and its bundled knowledge base.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memory } from '@oxbow/backends'
import { createEngine, type Engine } from '@oxbow/core'
import { openKnowledge } from '@oxbow/knowledge'
import { openaiChat } from '@oxbow/models'
import { type Reply, type ScriptedModel, scriptedModel } from '@oxbow/testing'
import { onTestFinished } from 'vitest'
import { type DefaultAgentOptions, defaultAgent } from './agent.ts'

const PAGES = new URL('../../knowledge', import.meta.url).pathname

/** Scripts by model name: `m` is the agent's own model; each helper's model has the helper's name. */
export async function assistant(
  scripts: Record<string, readonly Reply[]>,
  options: Partial<DefaultAgentOptions> = {},
): Promise<{ engine: Engine; server: ScriptedModel }> {
  const server = await scriptedModel({ scripts })
  const backend = options.backend ?? memory()
  const named = (name: string) => openaiChat({ provider: 'test', model: name, baseUrl: server.url })
  const model = named('m')
  const models = { default: named('kb-researcher'), summarise: named('summarizer') }
  const knowledge = options.knowledge ?? (await pages())
  const engine = createEngine({
    backend,
    agents: [await defaultAgent({ model, models, backend, knowledge, ...options })],
  })
  onTestFinished(async () => {
    await engine.stop(0)
    await server.close()
  })
  return { engine, server }
}

/** The bundled pages, indexed. */
export async function pages() {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-pages-'))
  const knowledge = openKnowledge({ path: join(directory, 'index.db') })
  onTestFinished(async () => {
    await knowledge.close()
    rmSync(directory, { recursive: true })
  })
  await knowledge.add([PAGES])
  return knowledge
}

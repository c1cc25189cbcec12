// The default agent as a service has it, with a scripted model and the knowledge base that it comes with.
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

/** Scripts by the model's name: `m` is the agent's own, those of its helpers are called as they are. */
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

/** What the agent comes with, indexed. */
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

// A service on SQLite in a process of its own, whose tool needs an approval. Tells its parent its address, and what it
// uses.
import { sqlite } from '@oxbow/backends'
import { agent, createEngine, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { createLogger, createService, loadConfig } from '@oxbow/server'
import type { Asked, Job, Told } from './service.ts'

async function serve({ file, modelUrl }: Job): Promise<void> {
  const config = await loadConfig({ environment: { OXBOW_PROFILE: 'test' } })
  const backend = sqlite({ path: file })
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    effects: ['write'],
    input: { type: 'object', properties: {} },
    run: () => 'paid',
  })
  const engine = createEngine({
    backend,
    agents: [
      agent({
        name: 'payer',
        model: openaiChat({ provider: 'scripted', model: 'payer', baseUrl: modelUrl }),
        instructions: 'Pay.',
        tools: [pay],
      }),
    ],
    onError: (error) => console.error(error),
  })
  const service = createService({
    engine,
    config,
    log: createLogger({ level: 'silent', format: 'json', environment: {} }),
  })
  const startedAt = performance.now()
  const { url } = await service.listen()
  const tell = (it: Told): void => void process.send!(it)
  tell({ url, listenMs: performance.now() - startedAt })
  process.on('message', (asked: Asked) => {
    if (asked === 'stop') void service.close().then(() => backend.close().then(() => process.disconnect()))
    else {
      const { user, system } = process.cpuUsage()
      tell({ cpuMs: (user + system) / 1_000 })
    }
  })
}

process.once('message', (job: Job) => void serve(job))

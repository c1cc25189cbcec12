// A service in its own process, for the readers of one burst.
import { memory } from '@oxbow/backends/memory'
import { agent, createEngine } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { createLogger, createService, loadConfig } from '@oxbow/server'

export interface Job {
  readonly modelUrl: string
  readonly readers: number
}

process.once('message', async ({ modelUrl, readers }: Job) => {
  const config = await loadConfig({
    environment: { OXBOW_PROFILE: 'test' },
    overrides: { 'log.level': 'error', 'server.rateLimits.openStreams': readers },
  })
  const model = openaiChat({ provider: 'scripted', model: 'any', baseUrl: modelUrl, apiKey: 'none' })
  const backend = memory()
  const engine = createEngine({ backend, agents: [agent({ name: 'assistant', model, instructions: 'Be brief.' })] })
  const service = createService({ engine, config, log: createLogger(config.log) })
  process.on('disconnect', () => process.exit(0))
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send!({ cpuMs: (user + system) / 1_000 })
  })
  process.send!(await service.listen())
})

// A service in its own process: its agent has a tool with an effect, and another service's agent as a tool.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqlite } from '@oxbow/backends'
import { agent, createEngine, tool } from '@oxbow/core'
import { remoteAgent } from '@oxbow/harness'
import { openaiChat } from '@oxbow/models'
import { createLogger, createService, loadConfig } from '@oxbow/server'

export interface Life {
  /** Of the agent, and of its script in the model. */
  readonly name: string
  readonly directory: string
  readonly port: number
  readonly peerPort: number
  readonly modelUrl: string
}

const { name, directory, port, peerPort, modelUrl } = JSON.parse(process.argv[2]!) as Life
const config = await loadConfig({ environment: { OXBOW_PROFILE: 'test' }, overrides: { 'server.port': port } })
const backend = sqlite({ path: join(directory, `${name}.db`) })

const work = tool({
  name: 'work',
  description: 'Does something that can be counted.',
  effects: ['write'],
  idempotent: true,
  input: { type: 'object', properties: {} },
  run(_input, { operationId }) {
    appendFileSync(join(directory, `${name}.effects`), `${operationId}\n`)
    return 'worked'
  },
})
const peer = remoteAgent({ name: 'peer', description: 'The other one.', url: `http://127.0.0.1:${peerPort}` })

const engine = createEngine({
  backend,
  agents: [
    agent({
      name,
      model: openaiChat({ provider: 'test', model: name, baseUrl: modelUrl }),
      instructions: 'You work together.',
      tools: [work, peer],
      allow: ['peer'],
    }),
  ],
  onError: (error) => console.error(error),
})
const log = createLogger({ level: 'silent', format: 'json', environment: {} })
const service = createService({ engine, config, log })
await service.listen()
process.once('SIGTERM', () => void service.close().then(() => backend.close()))

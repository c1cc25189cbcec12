// A replica that works on turns until it is killed: replica.fixture.ts <schema> <url of the model>
import { postgres } from '@oxbow/backends'
import { openaiChat } from '@oxbow/models'
import { agent, createEngine } from './index.ts'
import { postgresUrl } from './postgres.fixture.ts'

const [, , schema, baseUrl] = process.argv as [string, string, string, string]
const helper = agent({
  name: 'helper',
  model: openaiChat({ provider: 'test', model: 'helper', baseUrl }),
  instructions: 'You help.',
})
const engine = createEngine({ backend: postgres({ url: postgresUrl, schema }), agents: [helper], role: 'worker' })
await engine.start()
// The queue does not hold a process that has nothing to do.
setInterval(() => {}, 2 ** 30)

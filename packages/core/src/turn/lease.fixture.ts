// A process that works on a turn until its model answers: lease.fixture.ts <store> <url of the model>
import { sqlite } from '@oxbow/backends'
import { openaiChat } from '@oxbow/models'
import { agent, createEngine } from '../index.ts'

const [, , path, baseUrl] = process.argv as [string, string, string, string]
const helper = agent({
  name: 'helper',
  model: openaiChat({ provider: 'test', model: 'helper', baseUrl }),
  instructions: 'x',
})
const engine = createEngine({ backend: sqlite({ path }), agents: [helper] })
const { text } = await engine.session({ user: 'ada', session: 's' }).run('Go.', { turnId: 't' })
process.stdout.write(`ended with ${text}`)
process.exit(0)

// Our engine as a library, on either back end; the reader sees every fragment.
import { join } from 'node:path'
import { memory, sqlite } from '@oxbow/backends'
import { agent, type Backend, createEngine, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { type Contender, INSTRUCTIONS, lookup, QUESTION, type StartContender } from '../contender.ts'

export const onMemory: StartContender = async ({ url }) => contender(url, memory())
export const onSqlite: StartContender = async ({ url, directory }) =>
  contender(url, sqlite({ path: join(directory, 'bench.db') }))

async function contender(url: string, backend: Backend): Promise<Contender> {
  const explainer = agent({
    name: 'explainer',
    model: openaiChat({ provider: 'bench', model: 'bench', baseUrl: url }),
    instructions: INSTRUCTIONS,
    tools: [
      tool({
        name: 'lookup',
        description: 'Looks a word up.',
        effects: ['read'],
        input: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] },
        run: ({ word }) => lookup(String(word)),
      }),
    ],
  })
  const engine = createEngine({ backend, agents: [explainer] })
  await engine.start()
  return {
    async turn(number) {
      const startedAt = performance.now()
      let firstTextMs = 0
      let characters = 0
      const session = engine.session({ user: 'bench', session: `s${number}` })
      for await (const item of session.stream(QUESTION)) {
        if (item.type !== 'text.delta') continue
        firstTextMs ||= performance.now() - startedAt
        characters += item.text.length
      }
      return { firstTextMs, characters }
    },
    async close() {
      await engine.stop()
      await backend.close()
    },
  }
}

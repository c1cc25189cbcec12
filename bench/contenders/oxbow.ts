// Our engine as a library, on either back end; the reader sees every fragment.
import { join } from 'node:path'
import { memory, sqlite } from '@oxbow/backends'
import { agent, type Backend, createEngine, type Middleware, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { type Contender, INSTRUCTIONS, lookup, QUESTION, type StartContender } from '../contender.ts'

export const onMemory: StartContender = async ({ url }) => contender(url, memory())
export const onSqlite: StartContender = async ({ url, directory }) =>
  contender(url, sqlite({ path: join(directory, 'bench.db') }))
/** The model is sent the last ten turns only, as it is once a conversation is longer than a model's window. */
export const onSqliteWindowed: StartContender = async ({ url, directory }) =>
  contender(url, sqlite({ path: join(directory, 'bench.db') }), [lastTurns(10)])

function lastTurns(count: number): Middleware {
  return {
    name: 'last-turns',
    onModelCall(request, _, next) {
      const starts = request.messages.flatMap((it, index) => (it.role === 'user' ? [index] : []))
      return next({ ...request, messages: request.messages.slice(starts.at(-count) ?? 0) })
    },
  }
}

async function contender(url: string, backend: Backend, middleware: readonly Middleware[] = []): Promise<Contender> {
  const explainer = agent({
    name: 'explainer',
    model: openaiChat({ provider: 'bench', model: 'bench', baseUrl: url }),
    instructions: INSTRUCTIONS,
    middleware,
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

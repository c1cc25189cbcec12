// OpenAI Agents: an agent with the chat-completions model, run as a stream of text; tracing is off.
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { z } from 'zod'
import { INSTRUCTIONS, lookup, QUESTION, type StartContender } from '../contender.ts'

export const start: StartContender = async ({ url }) => {
  const agent = new Agent({
    name: 'explainer',
    model: 'bench',
    instructions: INSTRUCTIONS,
    tools: [
      tool({
        name: 'lookup',
        description: 'Looks a word up.',
        parameters: z.object({ word: z.string() }),
        execute: async ({ word }) => lookup(word),
      }),
    ],
  })
  const runner = new Runner({
    modelProvider: new OpenAIProvider({ baseURL: url, apiKey: 'none', useResponses: false }),
    tracingDisabled: true,
  })
  return {
    async turn() {
      const startedAt = performance.now()
      let firstTextMs = 0
      let characters = 0
      const result = await runner.run(agent, QUESTION, { stream: true })
      for await (const text of result.toTextStream()) {
        firstTextMs ||= performance.now() - startedAt
        characters += text.length
      }
      await result.completed
      return { firstTextMs, characters }
    },
    async close() {},
  }
}

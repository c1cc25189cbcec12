// AI SDK: a ToolLoopAgent over an OpenAI-compatible provider, read as a stream of text. Telemetry is off unless
// registered.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { ToolLoopAgent, tool } from 'ai'
import { z } from 'zod'
import { INSTRUCTIONS, lookup, QUESTION, type StartContender } from '../contender.ts'

export const start: StartContender = async ({ url }) => {
  const provider = createOpenAICompatible({ name: 'bench', baseURL: url, includeUsage: true })
  const agent = new ToolLoopAgent({
    model: provider('bench'),
    instructions: INSTRUCTIONS,
    tools: {
      lookup: tool({
        description: 'Looks a word up.',
        inputSchema: z.object({ word: z.string() }),
        execute: async ({ word }) => lookup(word),
      }),
    },
  })
  return {
    async turn() {
      const startedAt = performance.now()
      let firstTextMs = 0
      let characters = 0
      const result = await agent.stream({ prompt: QUESTION })
      for await (const text of result.textStream) {
        firstTextMs ||= performance.now() - startedAt
        characters += text.length
      }
      return { firstTextMs, characters }
    },
    async close() {},
  }
}

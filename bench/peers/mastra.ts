// Mastra: an agent without memory and without an observability exporter, read as a stream of text.
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { z } from 'zod'
import { INSTRUCTIONS, lookup, QUESTION, type StartContender } from '../contender.ts'

export const start: StartContender = async ({ url }) => {
  process.env.MASTRA_TELEMETRY_DISABLED = 'true'
  const agent = new Agent({
    id: 'explainer',
    name: 'explainer',
    instructions: INSTRUCTIONS,
    // Its router does not ask for token figures, so that it reads one frame less per request than the others.
    model: { id: 'bench/bench', url, apiKey: 'none' },
    tools: {
      lookup: createTool({
        id: 'lookup',
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
      const stream = await agent.stream(QUESTION)
      for await (const text of stream.textStream) {
        firstTextMs ||= performance.now() - startedAt
        characters += text.length
      }
      return { firstTextMs, characters }
    },
    async close() {},
  }
}

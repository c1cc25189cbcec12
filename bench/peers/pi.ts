// pi: its agent loop over its chat-completions provider, with the builders of its schema package.
import { type AgentLoopConfig, type AgentTool, agentLoop } from '@earendil-works/pi-agent-core'
import { createModels, createProvider, type Model } from '@earendil-works/pi-ai'
import { openAICompletionsApi } from '@earendil-works/pi-ai/api/openai-completions.lazy'
import { obj, str } from '@earendil-works/pi-schema'
import { INSTRUCTIONS, lookup, QUESTION, type StartContender } from '../contender.ts'

const parameters = obj({ word: str() })
const lookupTool: AgentTool<typeof parameters> = {
  name: 'lookup',
  label: 'Look up',
  description: 'Looks a word up.',
  parameters,
  execute: async (_callId, { word }) => ({ content: [{ type: 'text', text: lookup(word) }], details: undefined }),
}

export const start: StartContender = async ({ url }) => {
  const model: Model<'openai-completions'> = {
    id: 'bench',
    name: 'bench',
    api: 'openai-completions',
    provider: 'bench',
    baseUrl: url,
    reasoning: false,
    input: ['text'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 128_000,
    maxTokens: 32_000,
  }
  const models = createModels()
  models.setProvider(
    createProvider({
      id: 'bench',
      name: 'bench',
      baseUrl: url,
      auth: { apiKey: { name: 'bench', resolve: async () => ({ auth: { apiKey: 'none' } }) } },
      models: [model],
      api: openAICompletionsApi(),
    }),
  )
  const stream = models.streamSimple.bind(models)
  const config: AgentLoopConfig = { model, convertToLlm: (messages) => messages }
  return {
    async turn() {
      const startedAt = performance.now()
      let firstTextMs = 0
      let characters = 0
      const context = {
        messages: [{ role: 'system' as const, content: INSTRUCTIONS, timestamp: Date.now() }],
        tools: [lookupTool],
      }
      const question = { role: 'user' as const, content: QUESTION, timestamp: Date.now() }
      for await (const event of agentLoop([question], context, config, undefined, stream)) {
        if (event.type !== 'message_update' || event.assistantMessageEvent.type !== 'text_delta') continue
        firstTextMs ||= performance.now() - startedAt
        characters += event.assistantMessageEvent.delta.length
      }
      return { firstTextMs, characters }
    },
    async close() {},
  }
}

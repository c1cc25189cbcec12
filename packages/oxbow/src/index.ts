// The umbrella package: everything for an agent inside your own program. See docs/guides/library.md.

import { openModelsWith } from '@oxbow/core'
import { openModel } from '@oxbow/models'

export { memory, sqlite } from '@oxbow/backends'
export * from '@oxbow/core'
export * from '@oxbow/harness'
export { type Knowledge, openKnowledge } from '@oxbow/knowledge'
export {
  aiSdk,
  anthropic,
  arkMultimodal,
  createModels,
  guard,
  jinaRerank,
  modelFacts,
  modelFromEnvironment,
  offline,
  openaiChat,
  openaiEmbeddings,
  openaiResponses,
  openModel,
  requestQueue,
  resolveModel,
  withFacts,
  withFallbacks,
} from '@oxbow/models'
export { defaultAgent } from './agent/agent.ts'

// From here on `agent({ model: 'openai:gpt-5' })` finds its model.
openModelsWith((name) => openModel(name))

// The umbrella package: everything for an agent inside your own program. See docs/guides/library.md.

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
  requestQueue,
  resolveModel,
  withFacts,
  withFallbacks,
} from '@oxbow/models'
export { defaultAgent } from './agent/agent.ts'

export { estimateRequestTokens } from './accounting/estimate.ts'
export { costAt, type ModelFacts, modelFacts, type OwnFacts, type Price, withFacts } from './accounting/prices.ts'
export { type AiSdkOptions, aiSdk } from './ai-sdk/ai-sdk.ts'
export type { AiSdkModel } from './ai-sdk/sdk-model-type.ts'
export { type AnthropicOptions, anthropic } from './anthropic/anthropic.ts'
export type { AnthropicQuirks } from './anthropic/quirks.ts'
export type { BreakerOptions, BreakerState } from './around/breaker.ts'
export { type Fallback, type FallbackOptions, withFallbacks } from './around/fallbacks.ts'
export { type GuardedModel, type GuardOptions, guardModel, type ModelHealth } from './around/guard.ts'
export { type QueueOptions, type RequestQueue, requestQueue } from './around/queue.ts'
export type { RetryOptions } from './around/retry.ts'
export { type ModelDefinition, type ModelsConfig, modelProblems } from './catalogue/definition.ts'
export { modelFromEnvironment, resolveModel } from './catalogue/environment.ts'
export {
  createModels,
  type ListedModel,
  type ModelListeners,
  type Models,
} from './catalogue/models.ts'
export type { Environment, ModelOptions } from './catalogue/open.ts'
export { type OpenModelOptions, openModel } from './catalogue/open-model.ts'
export { type Provider, providers } from './catalogue/providers.ts'
export type { EmbedderChoice } from './catalogue/texts.ts'
export { arkMultimodal } from './embeddings/ark-multimodal.ts'
export type { EmbeddingModel, Embeddings, EmbedOptions } from './embeddings/embedder.ts'
export {
  type EmbeddingsOptions,
  type OpenAiEmbeddingsOptions,
  openaiEmbeddings,
} from './embeddings/openai-embeddings.ts'
export { type Repair, repairHistory } from './history/repair-history.ts'
export { offline } from './offline/offline.ts'
export { type OpenAiChatOptions, openaiChat } from './openai-chat/openai-chat.ts'
export type { Quirks } from './openai-chat/quirks.ts'
export { type OpenAiResponsesOptions, openaiResponses } from './openai-responses/openai-responses.ts'
export type { Diagnosis, Fault } from './probe/diagnose.ts'
export { type Probe, type ProbeCheck, probeModel } from './probe/probe.ts'
export { jinaRerank, type Ranked, type Reranking, type RerankModel, type RerankOptions } from './rerank/jina-rerank.ts'
export type { Limits } from './wire/answer.ts'
export type { Timeouts } from './wire/clock.ts'

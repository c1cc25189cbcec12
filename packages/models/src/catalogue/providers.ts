// The known providers, as data. A provider belongs here only when its driver works with it.
import { bedrockPackage, googlePackage, type SdkPackage } from '../ai-sdk/load.ts'
import type { AnthropicQuirks } from '../anthropic/quirks.ts'
import type { Quirks } from '../openai-chat/quirks.ts'

interface Row {
  /** `{model}` is replaced by the model's name, any other name in braces by that environment variable. */
  readonly baseUrl: string
  /** Environment variables that may hold the key, the preferred one first. Empty: no key is needed. */
  readonly keyVariables: readonly string[]
  /** The header that carries the key alone, where the format's own is not used. */
  readonly keyHeader?: string
  /** Used when only the key is set. Undefined: the model must be named. */
  readonly defaultModel?: string
}

/** `wire` selects the format, and so the driver. */
export type Provider =
  | (Row & { readonly wire: 'chat'; readonly quirks?: Quirks })
  | (Row & { readonly wire: 'responses' })
  | (Row & { readonly wire: 'anthropic'; readonly quirks?: AnthropicQuirks })
  | (Row & { readonly wire: 'ai-sdk'; readonly package: SdkPackage })

const azure = {
  baseUrl: 'https://{AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1',
  keyVariables: ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'],
  keyHeader: 'api-key',
}

/** In the order of precedence when `OXBOW_MODEL` is not set. */
export const providers: Readonly<Record<string, Provider>> = {
  openai: {
    wire: 'chat',
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
    defaultModel: 'gpt-5-mini',
    quirks: { maxTokensField: 'max_completion_tokens' },
  },
  anthropic: {
    wire: 'anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    keyVariables: ['ANTHROPIC_API_KEY'],
    defaultModel: 'claude-sonnet-5',
  },
  dashscope: {
    wire: 'chat',
    baseUrl: 'https://dashscope.aliyuncs.com/compatible-mode/v1',
    keyVariables: ['DASHSCOPE_API_KEY'],
    defaultModel: 'qwen-plus',
    quirks: { output: 'json_object' },
  },
  deepseek: {
    wire: 'chat',
    baseUrl: 'https://api.deepseek.com/v1',
    keyVariables: ['DEEPSEEK_API_KEY'],
    defaultModel: 'deepseek-chat',
    quirks: { output: 'json_object' },
  },
  moonshot: {
    wire: 'chat',
    baseUrl: 'https://api.moonshot.cn/v1',
    keyVariables: ['MOONSHOT_API_KEY'],
    defaultModel: 'kimi-k2-turbo-preview',
    quirks: { output: 'json_object', replayReasoning: 'with-calls' },
  },
  zhipu: {
    wire: 'chat',
    baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
    keyVariables: ['ZHIPU_API_KEY', 'ZHIPUAI_API_KEY'],
    defaultModel: 'glm-4.6',
    quirks: { output: 'json_object', toolChoice: 'auto' },
  },
  minimax: {
    wire: 'chat',
    baseUrl: 'https://api.minimax.io/v1',
    keyVariables: ['MINIMAX_API_KEY'],
    defaultModel: 'MiniMax-M2',
    quirks: { output: 'json_object', thinkTags: 'open', replayReasoning: 'think-tags', toolChoice: 'auto' },
  },
  siliconflow: {
    wire: 'chat',
    baseUrl: 'https://api.siliconflow.cn/v1',
    keyVariables: ['SILICONFLOW_API_KEY'],
    defaultModel: 'deepseek-ai/DeepSeek-V3',
    quirks: { output: 'json_object' },
  },
  ark: {
    wire: 'chat',
    baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
    keyVariables: ['ARK_API_KEY'],
    defaultModel: 'doubao-seed-1-6-250615',
    quirks: { output: 'json_object' },
  },
  openrouter: {
    wire: 'chat',
    baseUrl: 'https://openrouter.ai/api/v1',
    keyVariables: ['OPENROUTER_API_KEY'],
    defaultModel: 'openrouter/auto',
  },
  groq: {
    wire: 'chat',
    baseUrl: 'https://api.groq.com/openai/v1',
    keyVariables: ['GROQ_API_KEY'],
    defaultModel: 'llama-3.3-70b-versatile',
    quirks: { output: 'json_object' },
  },
  mistral: {
    wire: 'chat',
    baseUrl: 'https://api.mistral.ai/v1',
    keyVariables: ['MISTRAL_API_KEY'],
    defaultModel: 'mistral-large-latest',
    // Refuses unknown fields; usage is sent without being requested.
    quirks: { includeUsage: false, callIds: 'nine' },
  },
  xai: { wire: 'chat', baseUrl: 'https://api.x.ai/v1', keyVariables: ['XAI_API_KEY'], defaultModel: 'grok-4' },
  together: {
    wire: 'chat',
    baseUrl: 'https://api.together.xyz/v1',
    keyVariables: ['TOGETHER_API_KEY'],
    defaultModel: 'meta-llama/Llama-3.3-70B-Instruct-Turbo',
  },
  fireworks: {
    wire: 'chat',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    keyVariables: ['FIREWORKS_API_KEY'],
  },
  'openai-responses': {
    wire: 'responses',
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
  },
  // The model is the name of a deployment.
  azure: { ...azure, wire: 'chat', quirks: { maxTokensField: 'max_completion_tokens' } },
  'azure-responses': { ...azure, wire: 'responses' },
  google: {
    wire: 'ai-sdk',
    package: googlePackage,
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    keyVariables: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'],
  },
  // The other half of the key pair comes from the environment too.
  bedrock: {
    wire: 'ai-sdk',
    package: bedrockPackage,
    baseUrl: 'https://bedrock-runtime.{AWS_REGION}.amazonaws.com',
    keyVariables: ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ACCESS_KEY_ID'],
  },
  vllm: { wire: 'chat', baseUrl: 'http://localhost:8000/v1', keyVariables: [], quirks: { thinkTags: 'open' } },
  lmstudio: { wire: 'chat', baseUrl: 'http://localhost:1234/v1', keyVariables: [], quirks: { thinkTags: 'open' } },
  llamacpp: { wire: 'chat', baseUrl: 'http://localhost:8080/v1', keyVariables: [], quirks: { thinkTags: 'open' } },
  ollama: { wire: 'chat', baseUrl: 'http://localhost:11434/v1', keyVariables: [], quirks: { thinkTags: 'open' } },
}

// Who speaks the chat-completions format, as data. A provider belongs here only when the driver works with it.
import type { Quirks } from '../openai-chat/quirks.ts'

export interface Provider {
  readonly baseUrl: string
  /** Environment variables that may hold the key, the preferred one first. Empty: no key is needed. */
  readonly keyVariables: readonly string[]
  /** Used when only the key is set. Undefined: the model must be named. */
  readonly defaultModel?: string
  readonly quirks?: Quirks
}

/** In the order in which they are looked for when `OXBOW_MODEL` is not set. */
export const providers: Readonly<Record<string, Provider>> = {
  openai: {
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
    defaultModel: 'gpt-5-mini',
    quirks: { maxTokensField: 'max_completion_tokens' },
  },
  dashscope: {
    baseUrl: 'https://dashscope.aliyuncs.com/compatible-mode/v1',
    keyVariables: ['DASHSCOPE_API_KEY'],
    defaultModel: 'qwen-plus',
    quirks: { output: 'json_object' },
  },
  deepseek: {
    baseUrl: 'https://api.deepseek.com/v1',
    keyVariables: ['DEEPSEEK_API_KEY'],
    defaultModel: 'deepseek-chat',
    quirks: { output: 'json_object', replayReasoning: 'with-calls' },
  },
  moonshot: {
    baseUrl: 'https://api.moonshot.cn/v1',
    keyVariables: ['MOONSHOT_API_KEY'],
    defaultModel: 'kimi-k2-turbo-preview',
    quirks: { output: 'json_object', replayReasoning: 'with-calls' },
  },
  zhipu: {
    baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
    keyVariables: ['ZHIPU_API_KEY', 'ZHIPUAI_API_KEY'],
    defaultModel: 'glm-4.6',
    quirks: { output: 'json_object' },
  },
  minimax: {
    baseUrl: 'https://api.minimax.io/v1',
    keyVariables: ['MINIMAX_API_KEY'],
    defaultModel: 'MiniMax-M2',
    quirks: { output: 'json_object', thinkTags: 'open' },
  },
  siliconflow: {
    baseUrl: 'https://api.siliconflow.cn/v1',
    keyVariables: ['SILICONFLOW_API_KEY'],
    defaultModel: 'deepseek-ai/DeepSeek-V3',
    quirks: { output: 'json_object' },
  },
  ark: {
    baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
    keyVariables: ['ARK_API_KEY'],
    defaultModel: 'doubao-seed-1-6-250615',
    quirks: { output: 'json_object' },
  },
  openrouter: {
    baseUrl: 'https://openrouter.ai/api/v1',
    keyVariables: ['OPENROUTER_API_KEY'],
    defaultModel: 'openrouter/auto',
  },
  groq: {
    baseUrl: 'https://api.groq.com/openai/v1',
    keyVariables: ['GROQ_API_KEY'],
    defaultModel: 'llama-3.3-70b-versatile',
    quirks: { output: 'json_object' },
  },
  mistral: {
    baseUrl: 'https://api.mistral.ai/v1',
    keyVariables: ['MISTRAL_API_KEY'],
    defaultModel: 'mistral-large-latest',
    // Refuses unknown fields; the figures come unasked.
    quirks: { includeUsage: false, callIds: 'nine' },
  },
  xai: { baseUrl: 'https://api.x.ai/v1', keyVariables: ['XAI_API_KEY'], defaultModel: 'grok-4' },
  together: {
    baseUrl: 'https://api.together.xyz/v1',
    keyVariables: ['TOGETHER_API_KEY'],
    defaultModel: 'meta-llama/Llama-3.3-70B-Instruct-Turbo',
  },
  fireworks: { baseUrl: 'https://api.fireworks.ai/inference/v1', keyVariables: ['FIREWORKS_API_KEY'] },
  vllm: { baseUrl: 'http://localhost:8000/v1', keyVariables: [], quirks: { thinkTags: 'open' } },
  lmstudio: { baseUrl: 'http://localhost:1234/v1', keyVariables: [], quirks: { thinkTags: 'open' } },
  ollama: { baseUrl: 'http://localhost:11434/v1', keyVariables: [], quirks: { thinkTags: 'open' } },
}

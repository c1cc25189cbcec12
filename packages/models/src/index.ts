export type { Timeouts } from './clock.ts'
export { estimateRequestTokens, estimateTokens } from './estimate.ts'
export { type OpenAiChatOptions, openaiChat } from './openai-chat.ts'
export type { Quirks } from './quirks.ts'

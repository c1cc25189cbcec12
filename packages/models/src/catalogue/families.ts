// Quirks that follow from a model's name, wherever it is served.
import type { Quirks } from '../openai-chat/quirks.ts'

interface Family {
  readonly name: RegExp
  readonly quirks: Quirks
}

/** The first match counts. */
const families: readonly Family[] = [
  // Refuses its own reasoning: https://api-docs.deepseek.com/guides/reasoning_model (of R1)
  { name: /deepseek[-_]?r1/i, quirks: { replayReasoning: 'never' } },
  // In thinking mode these refuse a conversation with tools in which an answer lacks its reasoning; empty reasoning is
  // enough. Without tools it is ignored. https://api-docs.deepseek.com/guides/thinking_mode
  { name: /deepseek-reasoner/i, quirks: { replayReasoning: 'always', toolChoice: 'auto' } },
  { name: /deepseek[-_]?(chat|flash|pro|v3[.p-][1-9](?!\d)|v([4-9]|\d\d))/i, quirks: { replayReasoning: 'always' } },
  // https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
  {
    name: /kimi-(k2-thinking|k2[.p-][1-9](?!\d)|k([3-9]|\d\d)|thinking)/i,
    quirks: { replayReasoning: 'always', toolChoice: 'auto' },
  },
  // https://docs.z.ai/guides/capabilities/thinking-mode
  { name: /glm-(4[.p-][5-9](?![\db])|[5-9]|\d\d)/i, quirks: { replayReasoning: 'always' } },
]

/** The quirks of the model, where its name implies any. */
export const familyQuirks = (model: string): Quirks => families.find(({ name }) => name.test(model))?.quirks ?? {}

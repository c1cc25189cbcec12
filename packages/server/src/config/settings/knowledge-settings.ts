// The settings of the default agent's knowledge base.
import { z } from 'zod'
import { choice, integer, list, textSetting } from './kinds.ts'

const MODEL = 'the name or alias of one of [models], or provider:model'

export const knowledgeSettings = z.strictObject({
  paths: list(
    /\S/,
    'What the agent may retrieve: files and folders with Markdown, text, HTML or PDF. Default: pages about Oxbow.',
    'paths',
  ).optional(),
  index: textSetting('The file of the index. Default: agent-knowledge.db beside the store.', 'a path').optional(),
  embedder: z.strictObject({
    model: textSetting(
      'The model that makes vectors. Default: models.aliases.embed; without one, words and numbers are searched only.',
      MODEL,
    ).optional(),
    protocol: choice(
      ['openai', 'ark-multimodal', 'offline-english'],
      'How it is asked: POST /embeddings in batches, or POST /embeddings/multimodal, one text each; or a small model for English in this process, without any service.',
    ),
    dimensions: integer(1, 100_000, 'The length of a vector. Default: as the model makes them.').optional(),
  }),
  reranker: textSetting(
    'The model that orders what was found, by POST /rerank. Default: models.aliases.rerank; without one, none.',
    MODEL,
  ).optional(),
})

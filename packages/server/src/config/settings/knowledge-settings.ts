// The settings of the default agent's knowledge base.
import { z } from 'zod'
import { choice, integer, list, textSetting } from './kinds.ts'

const MODEL = 'the name or alias of one of [models], or provider:model'

export const knowledgeSettings = z.strictObject({
  paths: list(
    /\S/,
    'Documents that the agent may retrieve: files, and folders of Markdown, text, HTML or PDF. Default: pages about Oxbow.',
    'paths',
  ).optional(),
  index: textSetting('The index file. Default: agent-knowledge.db next to the store.', 'a path').optional(),
  embedder: z.strictObject({
    model: textSetting(
      'The embedding model. Default: models.aliases.embed; without one, only keyword search is used.',
      MODEL,
    ).optional(),
    protocol: choice(
      ['openai', 'ark-multimodal', 'offline-english'],
      'The API of the embedder: POST /embeddings in batches, POST /embeddings/multimodal with one text each, or a small English model in this process.',
    ),
    dimensions: integer(1, 100_000, 'The length of a vector. Default: the model’s own.').optional(),
  }),
  reranker: textSetting(
    'The model that ranks the passages found, through POST /rerank. Default: models.aliases.rerank; without one, passages are not reranked.',
    MODEL,
  ).optional(),
})

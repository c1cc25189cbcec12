// Embedding and reranking models of a configuration, which do not answer questions.
import { defined } from '@oxbow/core/internal'
import { arkMultimodal } from '../embeddings/ark-multimodal.ts'
import type { EmbeddingModel } from '../embeddings/embedder.ts'
import { openaiEmbeddings } from '../embeddings/openai-embeddings.ts'
import { jinaRerank, type RerankModel } from '../rerank/jina-rerank.ts'
import type { ModelDefinition } from './definition.ts'
import { connectionOf, type Environment, type ModelPlace } from './open.ts'

export interface EmbedderChoice {
  /**
   * `openai`: `POST /embeddings`, in batches. `ark-multimodal`: `POST /embeddings/multimodal`, one text each. Default
   * `openai`.
   */
  readonly protocol?: 'openai' | 'ark-multimodal' | undefined
  /** The dimensions of a vector. Default: the model's own. */
  readonly dimensions?: number | undefined
}

interface Given {
  readonly place: ModelPlace
  readonly definition: Partial<ModelDefinition>
}

/** @throws OxbowError `model_config` for a missing key, or an invalid address or key */
export function openEmbedder(given: Given, environment: Environment, choice: EmbedderChoice): EmbeddingModel {
  const { protocol = 'openai', dimensions } = choice
  const options = { ...optionsOf(given, environment), ...defined({ dimensions }) }
  return protocol === 'openai' ? openaiEmbeddings(options) : arkMultimodal(options)
}

/** @throws OxbowError `model_config` for a missing key, or an invalid address or key */
export const openReranker = (given: Given, environment: Environment): RerankModel =>
  jinaRerank(optionsOf(given, environment))

function optionsOf({ place, definition }: Given, environment: Environment) {
  const { headers, timeouts } = definition
  return {
    ...connectionOf(place, environment),
    ...defined({ headers, timeouts }),
  }
}

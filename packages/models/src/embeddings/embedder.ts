// Texts as vectors, from services.
import type { Usage } from '@oxbow/core'

export interface EmbeddingModel {
  /** Names the model and what else changes its vectors: those of different ids must not be compared. */
  readonly id: string
  /** How many numbers a vector has, where that was chosen. */
  readonly dimensions?: number
  /**
   * One vector per text, in the order of the texts; all or none. Rejects with a `ModelError`. Where one text is the reason,
   * its place is in `details.index`: a text that is empty (`invalid_request`) or longer than the model can read
   * (`context_overflow`).
   */
  embed(texts: readonly string[], options?: EmbedOptions): Promise<Embeddings>
}

export interface EmbedOptions {
  /** What the texts are; some models treat a question and what may answer it differently. Default `document`. */
  readonly kind?: 'query' | 'document'
  readonly signal?: AbortSignal
}

export interface Embeddings {
  readonly vectors: Float32Array[]
  /** Of all requests together; `estimated` when one of them gave no figures. */
  readonly usage: Usage
}

// Embeddings from services.
import type { Usage } from '@oxbow/core'

export interface EmbeddingModel {
  /** Names the model and everything else that changes its vectors: vectors of different ids cannot be compared. */
  readonly id: string
  /** The dimensions of a vector, where configured. */
  readonly dimensions?: number
  /**
   * One vector per text, in the order of the texts; all or none. Rejects with a `ModelError`. Where one text is the
   * cause, its index is in `details.index`: a text that is empty (`invalid_request`) or longer than the model can read
   * (`context_overflow`).
   */
  embed(texts: readonly string[], options?: EmbedOptions): Promise<Embeddings>
}

export interface EmbedOptions {
  /** The role of the texts; some models treat queries and documents differently. Default `document`. */
  readonly kind?: 'query' | 'document'
  readonly signal?: AbortSignal
}

export interface Embeddings {
  readonly vectors: Float32Array[]
  /** Of all requests together; `estimated` when one of them reported none. */
  readonly usage: Usage
}

export type KnowledgeErrorCode =
  | 'not_found'
  | 'unreadable'
  | 'unsupported_type'
  | 'binary'
  | 'too_large'
  | 'too_complex'
  | 'encoding_unknown'
  | 'encrypted'
  | 'corrupt'
  | 'no_text'
  | 'duplicate_document'
  | 'index_unusable'
  | 'labels_invalid'
  | 'options_invalid'
  | 'embedding_failed'
  | 'not_installed'
  | 'cancelled'
  | 'closed'

/** What went wrong; `message` is safe to show and says what to do. */
export class KnowledgeError extends Error {
  readonly code: KnowledgeErrorCode

  constructor(code: KnowledgeErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'KnowledgeError'
    this.code = code
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

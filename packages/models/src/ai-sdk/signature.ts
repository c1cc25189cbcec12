// Metadata that an AI SDK provider wants back with a part of an answer, as the text of a block's signature. Reasoning
// and calls have a field for it; for text and files it is kept in an empty reasoning block that follows them.
import type { SharedV4ProviderMetadata as Metadata } from '@ai-sdk/provider'
import type { ThinkingBlock } from '@oxbow/core'

export type { Metadata }

export const sign = (metadata: Metadata): string => JSON.stringify(metadata)

/** Undefined for a signature from elsewhere. */
export function readSignature(signature: string | undefined): Metadata | undefined {
  if (signature === undefined) return undefined
  try {
    const value: unknown = JSON.parse(signature)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Metadata) : undefined
  } catch {
    return undefined
  }
}

type Signed = 'text' | 'file'

/** Not the name of any provider. */
const keyOf = (type: Signed) => `#${type}`

/** The block that holds the metadata of the text or file before it. */
export const signatureOf = (type: Signed, metadata: Metadata): ThinkingBlock => ({
  type: 'thinking',
  text: '',
  signature: JSON.stringify({ [keyOf(type)]: metadata }),
})

/** The value that `signatureOf` wrote, if this is such a block. */
export function readSignatureOf(block: ThinkingBlock): { type: Signed; metadata: Metadata } | undefined {
  const written = block.text === '' ? readSignature(block.signature) : undefined
  for (const type of ['text', 'file'] as const) {
    const metadata = written?.[keyOf(type)]
    if (metadata) return { type, metadata: metadata as Metadata }
  }
  return undefined
}

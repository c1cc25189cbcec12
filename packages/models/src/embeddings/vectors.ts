// Vectors, validated on arrival, because stored ones are compared for years.
import { ModelError } from '@oxbow/core'
import type { ErrorContext } from '../failures/provider-errors.ts'

/** One entry of an answer; any field may be missing or of another type. */
export interface WireEmbedding {
  readonly index?: unknown
  readonly embedding?: unknown
}

/**
 * The vectors of `count` texts in their order.
 * @throws ModelError `provider_error`; a retry may succeed
 */
export function vectorsOf(
  context: ErrorContext,
  entries: readonly WireEmbedding[],
  count: number,
  dimensions: number | undefined,
): Float32Array[] {
  const wrong = (what: string) =>
    new ModelError('provider_error', `${context.provider} sent ${what}. Try again.`, { retryable: true })
  if (entries.length !== count) throw wrong(`${entries.length} vectors for ${count} texts`)
  // Servers that do not number the vectors send them in order.
  const numbered = entries.some((it) => it?.index !== undefined)
  const vectors: (Float32Array | undefined)[] = Array.from({ length: count })
  for (const [n, entry] of entries.entries()) {
    const index = numbered ? entry?.index : n
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= count) {
      throw wrong(`a vector for the text ${JSON.stringify(index)} of ${count}`)
    }
    if (vectors[index as number]) throw wrong(`two vectors for the text ${index}`)
    const vector = vectorOf(entry?.embedding)
    if (!vector) throw wrong('a vector that cannot be read')
    if (!vector.every(Number.isFinite)) throw wrong('a vector with an element that is not a number')
    vectors[index as number] = vector
  }
  const length = dimensions ?? vectors[0]?.length
  const other = vectors.find((vector) => vector!.length !== length)
  if (other) {
    const message = `${context.provider} sent a vector of ${other.length} numbers instead of ${length}.`
    throw new ModelError('provider_error', `${message} Check the dimensions that ${context.model} can make.`)
  }
  return vectors as Float32Array[]
}

/** Numbers, or little-endian 32-bit floats in base64. Undefined for anything else, and for an empty vector. */
function vectorOf(wire: unknown): Float32Array | undefined {
  if (Array.isArray(wire)) {
    if (wire.length === 0 || wire.some((it) => typeof it !== 'number')) return undefined
    return Float32Array.from(wire)
  }
  if (typeof wire !== 'string') return undefined
  const bytes = Buffer.from(wire, 'base64')
  if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return Float32Array.from({ length: bytes.length / 4 }, (_, n) => view.getFloat32(n * 4, true))
}

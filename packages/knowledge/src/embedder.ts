/**
 * A service or a model that embeds texts: similar texts get close vectors. `@oxbow/models` provides embedders.
 */
export interface Embedder {
  /** Names the model and everything else that changes its vectors: vectors of different ids are never compared. */
  readonly id: string
  /**
   * One vector per text, in order, all of one length. `kind` is the role of the texts; some models treat them
   * differently. Rejects when the service fails; where one text is the cause, its index is in `details.index`.
   */
  embed(
    texts: readonly string[],
    options: { readonly kind: 'query' | 'document'; readonly signal?: AbortSignal },
  ): Promise<{ readonly vectors: readonly Float32Array[] }>
}

export type Embed = (texts: readonly string[]) => Promise<readonly Float32Array[]>

/** The fault in an embedder's answer, if any. */
export function vectorsProblem(
  vectors: readonly Float32Array[],
  count: number,
  dimensions?: number,
): string | undefined {
  if (vectors.length !== count) return `${vectors.length} vectors for ${count} texts`
  const length = dimensions ?? vectors[0]?.length ?? 0
  for (const it of vectors) {
    if (it.length === 0 || it.length !== length) return `a vector has ${it.length} numbers, another ${length}`
    if (!it.every(Number.isFinite)) return 'a vector holds something that is not a number'
    if (it.every((number) => number === 0)) return 'a vector is zero and cannot be compared'
  }
  return undefined
}

/**
 * A service or a model that gives texts a direction; close directions mean similar texts. The embedders of `@oxbow/models` are such.
 */
export interface Embedder {
  /** Names the model and what else changes its vectors: those of different ids are never compared. */
  readonly id: string
  /**
   * One vector per text, in order, all of one length. `kind` says what the texts are; some models treat them differently.
   * Rejects when the service fails; where one text is the reason, with its place in `details.index`.
   */
  embed(
    texts: readonly string[],
    options: { readonly kind: 'query' | 'document'; readonly signal?: AbortSignal },
  ): Promise<{ readonly vectors: readonly Float32Array[] }>
}

export type Embed = (texts: readonly string[]) => Promise<readonly Float32Array[]>

/** Says what is wrong with an embedder's answer, if anything is. */
export function vectorsProblem(
  vectors: readonly Float32Array[],
  count: number,
  dimensions?: number,
): string | undefined {
  if (vectors.length !== count) return `${vectors.length} vectors came for ${count} texts`
  const length = dimensions ?? vectors[0]?.length ?? 0
  for (const it of vectors) {
    if (it.length === 0 || it.length !== length) return `a vector has ${it.length} numbers, another ${length}`
    if (!it.every(Number.isFinite)) return 'a vector holds something that is not a number'
    if (it.every((number) => number === 0)) return 'a vector is zero, which is near to nothing'
  }
  return undefined
}

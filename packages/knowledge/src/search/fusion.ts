const RRF_K = 60

/**
 * Reciprocal rank fusion: each list gives its entry at rank r (from 1) 1 / (60 + r); the sums decide. Scores of
 * different kinds need not be comparable. Equal sums are ordered by id, so that the same lists always give the same
 * order.
 *
 * @example fuse([['a', 'b'], ['b', 'c']]) // b first: it is in both
 */
export function fuse(lists: readonly (readonly string[])[]): { readonly id: string; readonly score: number }[] {
  const scores = new Map<string, number>()
  for (const list of lists)
    for (const [rank, id] of [...new Set(list)].entries())
      scores.set(id, (scores.get(id) ?? 0) + 1 / (RRF_K + rank + 1))
  return [...scores].map(([id, score]) => ({ id, score })).sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
}

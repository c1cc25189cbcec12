// Search quality, measured against labels.
import { KnowledgeError } from '../errors.ts'

export interface LabelledQuery {
  readonly query: string
  /** Documents (`guide.md`), or passages (`guide.md#1a2b3c4d5e6f`), that answer it. */
  readonly relevant: readonly string[]
  /** Queries of one set are reported together. */
  readonly set: string
}

export interface Quality {
  readonly set: string
  readonly queries: number
  /** Of the relevant ones, how many are among the first k. */
  readonly recall: number
  /** One through the rank of the first relevant one, on average. */
  readonly mrr: number
  /** Normalised discounted cumulative gain of the first k: 1 when all relevant ones come first. */
  readonly ndcg: number
}

/**
 * Reads labels: one JSON object a line, with `query`, `relevant` and, if wanted, `set`.
 * Throws a KnowledgeError `labels_invalid` that names the line.
 */
export function parseLabels(text: string): LabelledQuery[] {
  const labels = text.split('\n').flatMap((line, n) => {
    if (line.trim() === '') return []
    try {
      const { query, relevant, set = 'all' } = JSON.parse(line) as Record<string, unknown>
      const isList = Array.isArray(relevant) && relevant.length > 0 && relevant.every((it) => typeof it === 'string')
      if (typeof query === 'string' && isList && typeof set === 'string') return [{ query, relevant, set }]
    } catch {
      // Said below.
    }
    const wanted = '{"query": "…", "relevant": ["document.md"], "set": "optional"}'
    throw new KnowledgeError('labels_invalid', `Line ${n + 1} of the labels must look like ${wanted}.`)
  })
  if (labels.length === 0) throw new KnowledgeError('labels_invalid', 'There are no labels.')
  return labels
}

/** `search` returns passages' ids, the best first. */
export async function evaluate(
  labels: readonly LabelledQuery[],
  search: (query: string) => Promise<readonly string[]>,
  k: number,
): Promise<Quality[]> {
  const sets = new Map<string, { recall: number; mrr: number; ndcg: number; queries: number }>()
  for (const { query, relevant, set } of labels) {
    const wanted = new Set(relevant)
    // A document counts once, with its best passage.
    const found = [...new Set((await search(query)).map((it) => (wanted.has(it) ? it : documentOf(it))))].slice(0, k)
    const ranks = found.flatMap((it, rank) => (wanted.has(it) ? [rank + 1] : []))
    const sums = sets.get(set) ?? { recall: 0, mrr: 0, ndcg: 0, queries: 0 }
    sums.queries += 1
    sums.recall += ranks.length / wanted.size
    sums.mrr += ranks.length > 0 ? 1 / ranks[0]! : 0
    sums.ndcg += gain(ranks) / gain(Array.from({ length: Math.min(k, wanted.size) }, (_, n) => n + 1))
    sets.set(set, sums)
  }
  return [...sets].map(([set, { queries, recall, mrr, ndcg }]) => ({
    set,
    queries,
    recall: recall / queries,
    mrr: mrr / queries,
    ndcg: ndcg / queries,
  }))
}

const documentOf = (id: string): string => id.replace(/#[0-9a-f]+(-\d+)?$/, '')

const gain = (ranks: readonly number[]): number => ranks.reduce((sum, rank) => sum + 1 / Math.log2(rank + 1), 0)

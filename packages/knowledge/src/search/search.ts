// One question to all channels, merged into one list. When a channel fails, the others still answer.

import { type Embedder, vectorsProblem } from '../embedder.ts'
import { KnowledgeError, messageOf } from '../errors.ts'
import { queryOf } from '../text/analyser.ts'
import type { ThreadClient } from '../thread/thread-client.ts'
import { fuse } from './fusion.ts'
import type { ChannelAnswer, Filter, StoredPassage } from './reading.ts'

/** Scores how well texts answer a question, better and slower than an index; `@oxbow/models` provides rerankers. */
export interface Reranker {
  readonly id: string
  /** A score for each text, in any order: `index` is the place of the text, and a higher score is better. */
  rerank(
    query: string,
    texts: readonly string[],
    options: { readonly signal: AbortSignal },
  ): Promise<{ readonly results: readonly { readonly index: number; readonly score: number }[] }>
}

export interface SearchOptions {
  /** Maximum number of hits. Default 8, at most 400. */
  readonly k?: number
  readonly filter?: Filter
  readonly signal?: AbortSignal
}

export interface Hit extends Omit<StoredPassage, 'key' | 'score'> {
  /** `document#digest of its text`; used in citations. */
  readonly id: string
  /** From reciprocal rank fusion; comparable within one result only. */
  readonly score: number
  /** It contains a number or a code exactly as in the question. Those that few documents have come first. */
  readonly exact: boolean
  /** The score of each channel that found it: BM25, the cosine, the reranker's own. */
  readonly scores: { readonly keyword?: number; readonly vector?: number; readonly rerank?: number }
}

/** `off`: nothing to search for, or the channel is not configured. */
export interface ChannelReport {
  readonly channel: 'exact' | 'keyword' | 'vector' | 'rerank'
  readonly status: 'answered' | 'failed' | 'off'
  readonly hits: number
  /** Why it failed or is off, or what is missing from its answer. */
  readonly reason?: string
}

export interface SearchResult {
  readonly hits: readonly Hit[]
  readonly channels: readonly ChannelReport[]
}

export interface Channels {
  readonly thread: ThreadClient
  readonly embedder: Embedder | undefined
  readonly reranker: Reranker | undefined
  /** Applies to the embedder and to the reranker separately. */
  readonly timeoutMs: number
}

const MAX_HITS = 400
/** How many passages each channel contributes, and how many the reranker gets. */
const CANDIDATES = 100
const RERANKED = 30

/**
 * Queries all channels.
 *
 * @param question at most 4,000 characters of it are used
 * @throws KnowledgeError `options_invalid`, `index_unusable`; the signal's reason
 * @example await search(channels, 'How do I rotate a key?', { k: 5 })
 */
export async function search(
  channels: Channels,
  question: string,
  { k = 8, filter = {}, signal }: SearchOptions = {},
): Promise<SearchResult> {
  signal?.throwIfAborted()
  if (!(Number.isInteger(k) && k >= 1 && k <= MAX_HITS))
    throw new KnowledgeError('options_invalid', `k must be a whole number from 1 to ${MAX_HITS}: got ${k}.`)
  const { any, exact, words } = queryOf(question)
  const embedded = await until(signal, embed(channels, question, signal))
  const vector = 'vector' in embedded ? embedded : undefined
  const query = { exact, any, words, vector, limit: Math.max(CANDIDATES, k), filter }
  const found = await until(signal, channels.thread.ask('channels', query))
  const answers = [found.exact, found.keyword, found.vector].map((it) => it?.passages ?? [])
  const reports = [
    reportOf('exact', found.exact, { off: 'the question has neither a number nor a code' }),
    reportOf('keyword', found.keyword, { off: 'the question has no words' }),
    reportOf('vector', found.vector, 'vector' in embedded ? {} : embedded),
  ]

  const idOf = ({ document, key }: StoredPassage): string => `${document}#${key}`
  const passages = new Map(answers.flat().map((it) => [idOf(it), it]))
  const [exactScores, keywordScores, vectorScores] = answers.map(
    (list) => new Map(list.map((it) => [idOf(it), it.score])),
  )
  const rare = new Set(found.rare?.map(idOf))
  const [exactIds, keywordIds, vectorIds] = answers.map((list) => list.map(idOf)) as [string[], string[], string[]]
  const place = new Map(keywordIds.map((id, at) => [id, at]))
  const placeOf = (id: string): number => (rare.has(id) ? -1 : (place.get(id) ?? keywordIds.length))
  // Passages with a common code are ordered by all words of the question: the code alone carries little information.
  const codeIds = exactIds.toSorted((a, b) => placeOf(a) - placeOf(b))
  const hits = fuse([codeIds, keywordIds, vectorIds]).map(({ id, score }): Hit => {
    const { key: _, ...passage } = passages.get(id)!
    const keyword = keywordScores!.get(id)
    const vector = vectorScores!.get(id)
    const scores = { ...(keyword === undefined ? {} : { keyword }), ...(vector === undefined ? {} : { vector }) }
    return { ...passage, id, score, exact: exactScores!.has(id), scores }
  })
  // A number is meant exactly: passages with it come first, however close others are. A code that many documents have
  // (sha256, python3) counts as a plain word: it only adds to the score.
  const ordered = [...hits.filter((it) => rare.has(it.id)), ...hits.filter((it) => !rare.has(it.id))]
  const { hits: judged, report } = await until(signal, reranked(channels, question, ordered, rare, signal))
  return { hits: judged.slice(0, k), channels: [...reports, report] }
}

/** Why there is no answer: nothing to search for, or a failure before the query. */
interface Unasked {
  readonly off?: string
  readonly failed?: string
}

function reportOf(
  channel: ChannelReport['channel'],
  answer: ChannelAnswer | undefined,
  unasked: Unasked,
): ChannelReport {
  if (answer === undefined && unasked.failed !== undefined)
    return { channel, status: 'failed', hits: 0, reason: unasked.failed }
  if (answer === undefined)
    return { channel, status: 'off', hits: 0, ...(unasked.off === undefined ? {} : { reason: unasked.off }) }
  const { passages, reason, failed } = answer
  const report = { channel, status: failed ? ('failed' as const) : ('answered' as const), hits: passages.length }
  return reason === undefined ? report : { ...report, reason }
}

async function embed(
  { embedder, timeoutMs }: Channels,
  question: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly embedder: string; readonly vector: Float32Array } | Unasked> {
  if (embedder === undefined) return { off: 'no embedder is configured' }
  if (question.trim() === '') return { off: 'the question is empty' }
  try {
    const { vectors } = await inTime(timeoutMs, signal, (it) =>
      embedder.embed([question], { kind: 'query', signal: it }),
    )
    const problem = vectorsProblem(vectors, 1)
    return problem === undefined ? { embedder: embedder.id, vector: vectors[0]! } : { failed: problem }
  } catch (error) {
    return { failed: messageOf(error) }
  }
}

async function reranked(
  { reranker, timeoutMs }: Channels,
  question: string,
  hits: readonly Hit[],
  rare: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<{ hits: readonly Hit[]; report: ChannelReport }> {
  const off =
    reranker === undefined ? 'no reranker is configured' : hits.length === 0 ? 'there is nothing to rerank' : undefined
  if (off !== undefined) return { hits, report: { channel: 'rerank', status: 'off', hits: 0, reason: off } }
  const first = hits.slice(0, RERANKED)
  try {
    const texts = first.map((it) => [...it.headings, it.text].join('\n'))
    const { results } = await inTime(timeoutMs, signal, (it) => reranker!.rerank(question, texts, { signal: it }))
    const scores = new Map(results.map((it) => [it.index, it.score]))
    if (!first.every((_, n) => Number.isFinite(scores.get(n))))
      throw new Error(
        `the reranker returned ${scores.size} scores for ${first.length} texts, or one that is not a number`,
      )
    const judged = first
      .map((it, n) => ({ ...it, scores: { ...it.scores, rerank: scores.get(n)! } }))
      .sort((a, b) => Number(rare.has(b.id)) - Number(rare.has(a.id)) || b.scores.rerank - a.scores.rerank)
    return {
      hits: [...judged, ...hits.slice(RERANKED)],
      report: { channel: 'rerank', status: 'answered', hits: first.length },
    }
  } catch (error) {
    return { hits, report: { channel: 'rerank', status: 'failed', hits: 0, reason: messageOf(error) } }
  }
}

/** Rejects after the time limit, even when the work ignores its signal. */
function inTime<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const clock = AbortSignal.timeout(timeoutMs)
  const both = signal === undefined ? clock : AbortSignal.any([signal, clock])
  return until(both, work(both)).catch((error: unknown) => {
    throw clock.aborted ? new Error(`no answer within ${timeoutMs} ms`) : error
  })
}

async function until<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return work
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

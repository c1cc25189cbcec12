// One question to all channels, and their answers as one list. A channel that fails leaves the others to answer.
import { queryOf } from './analyser.ts'
import { type Embedder, vectorsProblem } from './embedder.ts'
import { messageOf } from './errors.ts'
import { fuse } from './fusion.ts'
import type { Filter, StoredPassage } from './reading.ts'
import type { ThreadClient } from './thread-client.ts'

/** Judges how well texts answer a question, better and slower than any index can. */
export interface Reranker {
  readonly id: string
  /** One score per text, in order; the larger the better. */
  rerank(query: string, texts: readonly string[], options: { readonly signal: AbortSignal }): Promise<readonly number[]>
}

export interface SearchOptions {
  /** How many hits at most. Default 8, at most 100. */
  readonly k?: number
  readonly filter?: Filter
  readonly signal?: AbortSignal
}

export interface Hit extends Omit<StoredPassage, 'key' | 'score'> {
  /** `document#digest of its text`; what citations name. */
  readonly id: string
  /** From reciprocal rank fusion; comparable within one result only. */
  readonly score: number
  /** It contains a number or a code of the question as it was asked. */
  readonly exact: boolean
  /** The score of each channel that found it: BM25, the cosine, the reranker's own. */
  readonly scores: { readonly keyword?: number; readonly vector?: number; readonly rerank?: number }
}

/** `off`: there was nothing to ask it, or it is not configured. */
export interface ChannelReport {
  readonly channel: 'exact' | 'keyword' | 'vector' | 'rerank'
  readonly status: 'answered' | 'failed' | 'off'
  readonly hits: number
  /** Why it failed or is off, or what its answer lacks. */
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
  /** For the embedder and for the reranker, each. */
  readonly timeoutMs: number
}

interface Answer {
  readonly report: ChannelReport
  readonly passages: readonly StoredPassage[]
}

/** How many each channel contributes, and how many the reranker sees. */
const CANDIDATES = 100
const RERANKED = 30

export async function search(
  channels: Channels,
  question: string,
  { k = 8, filter = {}, signal }: SearchOptions = {},
): Promise<SearchResult> {
  signal?.throwIfAborted()
  const { any, exact } = queryOf(question)
  const limit = Math.max(CANDIDATES, k)
  const words = (channel: 'exact' | 'keyword', match: string): Promise<Answer> =>
    answer(
      channel,
      match === '' ? `nothing in the question is ${channel === 'exact' ? 'a number or a code' : 'a word'}` : undefined,
      async () => ({
        passages: await channels.thread.ask('keyword', { match, limit, filter }),
      }),
    )
  const [exactly, keyword, vector] = await until(
    signal,
    Promise.all([words('exact', exact), words('keyword', any), nearest(channels, question, { limit, filter }, signal)]),
  )

  const answers = [exactly, keyword, vector]
  const idOf = ({ document, key }: StoredPassage): string => `${document}#${key}`
  const passages = new Map(answers.flatMap((it) => it.passages).map((it) => [idOf(it), it]))
  const scoresOf = ({ passages }: Answer) => new Map(passages.map((it) => [idOf(it), it.score]))
  const [exactScores, keywordScores, vectorScores] = [exactly, keyword, vector].map(scoresOf)
  const hits = fuse(answers.map((it) => it.passages.map(idOf))).map(({ id, score }): Hit => {
    const { key: _, ...passage } = passages.get(id)!
    const keyword = keywordScores!.get(id)
    const vector = vectorScores!.get(id)
    const scores = { ...(keyword === undefined ? {} : { keyword }), ...(vector === undefined ? {} : { vector }) }
    return { ...passage, id, score, exact: exactScores!.has(id), scores }
  })
  // A number is meant exactly: what contains it comes first, whatever is near to it otherwise.
  const ordered = [...hits.filter((it) => it.exact), ...hits.filter((it) => !it.exact)]
  const { hits: judged, report } = await until(signal, reranked(channels, question, ordered, signal))
  return { hits: judged.slice(0, k), channels: [...answers.map((it) => it.report), report] }
}

async function answer(
  channel: ChannelReport['channel'],
  off: string | undefined,
  ask: () => Promise<{ passages: readonly StoredPassage[]; reason?: string | undefined }>,
): Promise<Answer> {
  if (off !== undefined) return { report: { channel, status: 'off', hits: 0, reason: off }, passages: [] }
  try {
    const { passages, reason } = await ask()
    const report = { channel, status: 'answered' as const, hits: passages.length }
    return { report: reason === undefined ? report : { ...report, reason }, passages }
  } catch (error) {
    return { report: { channel, status: 'failed', hits: 0, reason: messageOf(error) }, passages: [] }
  }
}

function nearest(
  { thread, embedder, timeoutMs }: Channels,
  question: string,
  query: { limit: number; filter: Filter },
  signal: AbortSignal | undefined,
): Promise<Answer> {
  const off =
    embedder === undefined ? 'no embedder is configured' : question.trim() === '' ? 'the question is empty' : undefined
  return answer('vector', off, async () => {
    const { id, embed } = { id: embedder!.id, embed: embedder!.embed.bind(embedder) }
    const vectors = await inTime(timeoutMs, signal, (it) => embed([question], { kind: 'query', signal: it }))
    const problem = vectorsProblem(vectors, 1)
    if (problem !== undefined) throw new Error(problem)
    const { passages, missing } = await thread.ask('vector', { ...query, embedder: id, vector: vectors[0]! })
    return { passages, reason: missing > 0 ? `${missing} passages have no vector yet: index again` : undefined }
  })
}

async function reranked(
  { reranker, timeoutMs }: Channels,
  question: string,
  hits: readonly Hit[],
  signal: AbortSignal | undefined,
): Promise<{ hits: readonly Hit[]; report: ChannelReport }> {
  const off =
    reranker === undefined ? 'no reranker is configured' : hits.length === 0 ? 'there is nothing to judge' : undefined
  if (off !== undefined) return { hits, report: { channel: 'rerank', status: 'off', hits: 0, reason: off } }
  const first = hits.slice(0, RERANKED)
  try {
    const texts = first.map((it) => [...it.headings, it.text].join('\n'))
    const scores = await inTime(timeoutMs, signal, (it) => reranker!.rerank(question, texts, { signal: it }))
    if (scores.length !== first.length || !scores.every(Number.isFinite))
      throw new Error(`the reranker gave ${scores.length} scores for ${first.length} texts, or one that is no number`)
    const judged = first
      .map((it, n) => ({ ...it, scores: { ...it.scores, rerank: scores[n]! } }))
      .sort((a, b) => Number(b.exact) - Number(a.exact) || b.scores.rerank - a.scores.rerank)
    return {
      hits: [...judged, ...hits.slice(RERANKED)],
      report: { channel: 'rerank', status: 'answered', hits: first.length },
    }
  } catch (error) {
    return { hits, report: { channel: 'rerank', status: 'failed', hits: 0, reason: messageOf(error) } }
  }
}

/** Ends after the time even when the work does not listen to its signal. */
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

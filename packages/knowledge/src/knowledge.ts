import { resolve } from 'node:path'
import type { Embedder } from './embedder.ts'
import { KnowledgeError } from './errors.ts'
import { isGoneWithin, mustExist } from './indexing/files.ts'
import type { IndexReport } from './indexing/indexing.ts'
import type { Watching } from './indexing/watch.ts'
import type { IndexProgress } from './progress.ts'
import type { DocumentInfo, Problem } from './search/reading.ts'
import { type Reranker, type SearchOptions, type SearchResult, search } from './search/search.ts'
import { DEFAULT_PASSAGES, type PassageOptions } from './text/passages.ts'
import { startThread } from './thread/thread-client.ts'

export interface KnowledgeIndexOptions {
  /** The file of the index; created when it is missing. */
  readonly path: string
  /** Enables search by meaning. Needs the optional dependency `sqlite-vec`. */
  readonly embedder?: Embedder
  readonly reranker?: Reranker
  /** How long a search waits for the embedder, and for the reranker, in milliseconds. Default 3000. */
  readonly timeoutMs?: number
  readonly passages?: PassageOptions
  /** Larger files are skipped and reported. Default 20 MiB. */
  readonly maxFileBytes?: number
  /** Files that take longer to parse are skipped and reported. In milliseconds, default 60000. */
  readonly parseTimeoutMs?: number
}

export interface IndexOptions {
  readonly onProgress?: (progress: IndexProgress) => void
  /** Ends it early; everything indexed so far stays. */
  readonly signal?: AbortSignal
}

export interface Knowledge {
  /**
   * Indexes files and folders, and remembers them for `refresh`. Only changed files are read again. The report lists
   * unreadable files. Files deleted since an earlier run are removed from the index.
   *
   * @throws KnowledgeError `not_found`, `cancelled`, `index_unusable`
   */
  add(paths: readonly string[], options?: IndexOptions): Promise<IndexReport>
  /** Indexes the changes in all added paths. */
  refresh(options?: IndexOptions): Promise<IndexReport>
  /** Removes added files or folders from the index. Resolves to the number of documents removed. */
  remove(paths: readonly string[]): Promise<number>
  /**
   * Finds passages. A channel that fails is reported in `channels`, and the others answer.
   *
   * @throws KnowledgeError `options_invalid`, `index_unusable`; the signal's reason
   */
  search(question: string, options?: SearchOptions): Promise<SearchResult>
  documents(): Promise<readonly DocumentInfo[]>
  /** The added files and folders. */
  roots(): Promise<readonly string[]>
  /** Documents that the last run could not index, with the reasons. */
  problems(): Promise<readonly Problem[]>
  /** Keeps the index up to date with its files. Reports each run, and errors that prevent one. */
  watch(onReport: (report: IndexReport | KnowledgeError) => void): Promise<Watching>
  close(): Promise<void>
}

const OPTIONS = ['path', 'embedder', 'reranker', 'timeoutMs', 'passages', 'maxFileBytes', 'parseTimeoutMs']

function checkOptions(options: KnowledgeIndexOptions): void {
  const invalid = (what: string) => new KnowledgeError('options_invalid', `openKnowledge(): ${what}`)
  if (typeof options?.path !== 'string' || options.path.trim() === '')
    throw invalid("path must be a text, for example openKnowledge({ path: '.oxbow/knowledge.db' }).")
  const unknown = Object.keys(options).find((it) => !OPTIONS.includes(it))
  if (unknown !== undefined) throw invalid(`unknown option "${unknown}". Allowed: ${OPTIONS.join(', ')}.`)
}

/**
 * Opens a knowledge base. Several processes may use one file concurrently. Worker threads hold the database.
 *
 * @throws KnowledgeError `options_invalid`
 * @example
 * const knowledge = openKnowledge({ path: '.oxbow/knowledge.db' })
 * await knowledge.add(['docs'])
 * const { hits } = await knowledge.search('How do I rotate a key?')
 */
export function openKnowledge(options: KnowledgeIndexOptions): Knowledge {
  checkOptions(options)
  const { embedder, reranker, timeoutMs = 3_000, maxFileBytes = 20 * 1024 * 1024, parseTimeoutMs = 60_000 } = options
  const path = resolve(options.path)
  const passages = { ...DEFAULT_PASSAGES, ...options.passages }
  const { maxTokens, overlapTokens } = passages
  if (!(maxTokens >= 16 && maxTokens <= 8_000 && overlapTokens >= 0 && overlapTokens <= maxTokens / 2))
    throw new KnowledgeError('options_invalid', 'passages: maxTokens is 16 to 8000, overlapTokens at most half of it.')
  const thread = startThread(path)
  let indexing: Promise<unknown> = Promise.resolve()
  const closing = new AbortController()

  /** One run at a time: two threads of one process would only wait for each other. */
  function index(
    roots: readonly string[] | undefined,
    { onProgress, signal }: IndexOptions = {},
  ): Promise<IndexReport> {
    const stop = AbortSignal.any([closing.signal, ...(signal === undefined ? [] : [signal])])
    const run = indexing.then(async () => {
      if (stop.aborted) throw new KnowledgeError('cancelled', 'Indexing was cancelled before it started.')
      const indexer = startThread(path, {
        ...(onProgress === undefined ? {} : { progress: onProgress }),
        ...(embedder === undefined
          ? {}
          : {
              embed: async (texts: readonly string[]) =>
                (await embedder.embed(texts, { kind: 'document', signal: stop })).vectors,
            }),
      })
      const cancel = (): void => indexer.cancel()
      stop.addEventListener('abort', cancel)
      try {
        const named = roots !== undefined
        const job = { maxFileBytes, parseTimeoutMs, passages, embedder: embedder?.id, named }
        return await indexer.ask('index', { ...job, roots: roots ?? (await indexer.ask('roots')) })
      } finally {
        stop.removeEventListener('abort', cancel)
        await indexer.close()
      }
    })
    indexing = run.catch(() => undefined)
    return run
  }

  const knowledge: Knowledge = {
    async add(paths, indexOptions) {
      const roots = [...new Set(paths.map((it) => resolve(it)))]
      const known = new Set(await knowledge.roots())
      // A missing path that was added is removed together with its documents.
      for (const it of roots) if (!known.has(it)) await mustExist(it)
      const gone: string[] = []
      for (const it of known) if (!roots.includes(it) && (await isGoneWithin(it))) gone.push(it)
      return index([...roots, ...gone], indexOptions)
    },
    refresh: (indexOptions) => index(undefined, indexOptions),
    async remove(paths) {
      await indexing
      return thread.ask(
        'forget',
        paths.map((it) => resolve(it)),
      )
    },
    search: (question, searchOptions) => search({ thread, embedder, reranker, timeoutMs }, question, searchOptions),
    documents: () => thread.ask('documents'),
    roots: () => thread.ask('roots'),
    problems: () => thread.ask('problems'),
    async watch(onReport) {
      // The library is loaded only to watch.
      const { watchRoots } = await import('./indexing/watch.ts')
      return watchRoots(await thread.ask('roots'), () => knowledge.refresh(), onReport, closing.signal)
    },
    async close() {
      closing.abort()
      await indexing
      await thread.close()
    },
  }
  return knowledge
}

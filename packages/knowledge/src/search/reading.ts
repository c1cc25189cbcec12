// Queries to the index, as SQL.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { type KnowledgeErrorCode, messageOf } from '../errors.ts'
import { bytesOf } from '../indexing/embedding.ts'
import { matchAny } from '../text/analyser.ts'
import { similarTerms } from './similar.ts'

export interface Filter {
  /** Only documents with these names. */
  readonly documents?: readonly string[]
  /** Only documents whose name starts with this, such as `guide/`. */
  readonly under?: string
}

export interface ChannelsQuery {
  /** Terms; an empty list matches nothing. */
  readonly exact: readonly string[]
  readonly any: readonly string[]
  /** Those of `any` that may be misspelt. */
  readonly words: readonly string[]
  readonly vector: { readonly embedder: string; readonly vector: Float32Array } | undefined
  readonly limit: number
  readonly filter: Filter
}

/** Absent where there was no query. */
export interface ChannelAnswers {
  readonly exact?: ChannelAnswer
  /** Those of `exact` that contain a number or code which few documents have. */
  readonly rare?: readonly StoredPassage[]
  readonly keyword?: ChannelAnswer
  readonly vector?: ChannelAnswer
}

export interface ChannelAnswer {
  readonly passages: readonly StoredPassage[]
  /** What is missing from the answer, or why there is none. */
  readonly reason?: string
  readonly failed?: boolean
}

export interface StoredPassage {
  readonly document: string
  readonly key: string
  readonly path: string
  readonly title: string | undefined
  readonly headings: readonly string[]
  readonly text: string
  readonly start: number
  readonly end: number
  readonly page: number | undefined
  /** Higher is better: BM25, or the cosine. */
  readonly score: number
}

export interface DocumentInfo {
  readonly name: string
  readonly path: string
  readonly title: string | undefined
  readonly bytes: number
  readonly passages: number
}

export interface Problem {
  readonly path: string
  readonly code: KnowledgeErrorCode
  readonly message: string
}

/** Indexes of up to this many passages are fast with any terms. */
const FAST_ENOUGH = 5_000
/** A term in a heading counts more than one in the text below. */
const HEADING_WEIGHT = 1.5
/** A number in more documents than this does not identify any. */
const RARE_DOCUMENTS = 3

const columns = `d.name AS document, p.key, d.path, d.title, p.headings, p.text, p.start, p."end", p.page`

export function reader(database: DatabaseSync) {
  const ask = (sql: string, ...values: SQLInputValue[]) => database.prepare(sql).all(...values)

  /**
   * Drops the terms of every fourth passage: they carry little information and cost the most. Small indexes keep them.
   */
  function uncommon(terms: readonly string[]): readonly string[] {
    const [{ size }] = ask('SELECT coalesce(sum(passages), 0) AS size FROM documents') as [{ size: number }]
    if (size < FAST_ENOUGH) return terms
    const many = Math.ceil(size / 4)
    const count = database.prepare('SELECT count(*) AS count FROM (SELECT 1 FROM terms WHERE terms MATCH ? LIMIT ?)')
    const rare = terms.filter((it) => (count.get(matchAny([it]), many) as { count: number }).count < many)
    return rare.length > 0 ? rare : terms
  }

  /** The terms that a few documents have. Each is counted up to the limit only. */
  function rareOf(terms: readonly string[]): readonly string[] {
    const count = database.prepare(`SELECT count(*) AS count FROM (SELECT DISTINCT p.document FROM terms
      JOIN passages p ON p.id = terms.rowid WHERE terms MATCH ? LIMIT ?)`)
    return terms.filter(
      (it) => (count.get(matchAny([it]), RARE_DOCUMENTS + 1) as { count: number }).count <= RARE_DOCUMENTS,
    )
  }

  /** Words that no document has are replaced by the nearest known ones. */
  function keyword(query: ChannelsQuery): ChannelAnswer {
    const { any, words } = query
    const similar = similarTerms(database, words)
    const asked = uncommon([...any.filter((it) => !similar.has(it)), ...[...similar.values()].flat()])
    const answer = byWords(asked.length > 0 ? asked : any, query)
    if (similar.size === 0) return answer
    const named = [...similar.keys()].map((it) => JSON.stringify(it)).join(', ')
    return { ...answer, reason: `no document has ${named}; similar words were searched` }
  }

  function byWords(terms: readonly string[], { limit, filter }: ChannelsQuery): ChannelAnswer {
    const { condition, values } = conditionOf(filter)
    const rank = `bm25(terms, ${HEADING_WEIGHT}, 1)`
    const joined = 'JOIN passages p ON p.id = terms.rowid JOIN documents d ON d.id = p.document'
    const found = `SELECT terms.rowid AS id, ${rank} AS rank FROM terms ${condition === '' ? '' : joined}
      WHERE terms MATCH ? ${condition} ORDER BY 2, 1 LIMIT ?`
    const sql = `SELECT ${columns}, -found.rank AS score FROM (${found}) found
      JOIN passages p ON p.id = found.id JOIN documents d ON d.id = p.document`
    return { passages: inOrder(ask(sql, matchAny(terms), ...values, limit)) }
  }

  function byVector({ embedder, vector }: NonNullable<ChannelsQuery['vector']>, query: ChannelsQuery): ChannelAnswer {
    const { condition, values } = conditionOf(query.filter)
    const distance = 'vec_distance_cosine(v.vector, ?) AS distance'
    // Without a filter the vectors are read in the order of the table (`+` keeps SQLite from its index, which is three
    // times slower here). Some may no longer belong to a passage.
    const found =
      condition === ''
        ? `SELECT p.id, near.distance FROM (
             SELECT v.content, ${distance} FROM vectors v WHERE +v.embedder = ? ORDER BY 2, 1 LIMIT 2 * ?
           ) near JOIN passages p ON p.content = near.content`
        : `SELECT p.id, ${distance} FROM documents d JOIN passages p ON p.document = d.id
             JOIN vectors v ON v.embedder = ? AND v.content = p.content WHERE true ${condition} ORDER BY 2, 1 LIMIT ?`
    const sql = `SELECT ${columns}, 1 - found.distance AS score FROM (${found}) found
      JOIN passages p ON p.id = found.id JOIN documents d ON d.id = p.document`
    const passages = inOrder(ask(sql, bytesOf(vector), embedder, ...values, query.limit)).slice(0, query.limit)
    const missing = withoutVector(embedder)
    return missing === 0 ? { passages } : { passages, reason: `${missing} passages have no vector yet: index again` }
  }

  let counted = { version: -1, embedder: '', missing: 0 }
  /** Counted again only after a write. */
  function withoutVector(embedder: string): number {
    const [{ version }] = ask('PRAGMA data_version').map((it) => ({ version: it.data_version as number })) as [
      { version: number },
    ]
    if (counted.version !== version || counted.embedder !== embedder) {
      const sql = `SELECT count(*) AS missing FROM passages p
        WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.embedder = ? AND v.content = p.content)`
      const [{ missing }] = ask(sql, embedder) as [{ missing: number }]
      counted = { version, embedder, missing }
    }
    return counted.missing
  }

  return {
    /** All channels see the same state of the index. */
    async channels(query: ChannelsQuery): Promise<ChannelAnswers> {
      const { exact, any, vector } = query
      const extension = vector === undefined ? undefined : await extensionProblem(database)
      database.exec('BEGIN')
      try {
        const rare = exact.length === 0 ? [] : rareOf(exact)
        return {
          ...(exact.length === 0 ? {} : { exact: guarded(() => byWords(exact, query)) }),
          ...(rare.length === 0 ? {} : { rare: guarded(() => byWords(rare, query)).passages }),
          ...(any.length === 0 ? {} : { keyword: guarded(() => keyword(query)) }),
          ...(vector === undefined
            ? {}
            : { vector: extension === undefined ? guarded(() => byVector(vector, query)) : failure(extension) }),
        }
      } finally {
        database.exec('COMMIT')
      }
    },

    documents: (): DocumentInfo[] =>
      ask('SELECT name, path, title, bytes, passages FROM documents ORDER BY name').map(
        (it) => ({ ...it, title: it.title ?? undefined }) as unknown as DocumentInfo,
      ),

    problems: () => ask('SELECT path, code, message FROM problems ORDER BY path') as unknown as Problem[],

    roots: (): string[] => ask('SELECT path FROM roots ORDER BY path').map((it) => it.path as string),
  }
}

const failure = (reason: string): ChannelAnswer => ({ passages: [], failed: true, reason })

function guarded(work: () => ChannelAnswer): ChannelAnswer {
  try {
    return work()
  } catch (error) {
    return failure(messageOf(error))
  }
}

function conditionOf({ documents, under }: Filter): { condition: string; values: string[] } {
  const conditions: string[] = []
  const values: string[] = []
  if (documents !== undefined) {
    conditions.push('d.name IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(documents))
  }
  if (under !== undefined && under !== '') {
    conditions.push('substr(d.name, 1, length(?)) = ?')
    values.push(under, under)
  }
  return { condition: conditions.map((it) => `AND ${it}`).join(' '), values }
}

/** Best first; ties by name, so that the order does not depend on the order of indexing. */
function inOrder(rows: readonly Record<string, unknown>[]): StoredPassage[] {
  return rows
    .map((it) => ({
      ...(it as unknown as StoredPassage),
      title: (it.title ?? undefined) as string | undefined,
      page: (it.page ?? undefined) as number | undefined,
      headings: JSON.parse(it.headings as string) as string[],
    }))
    .sort((a, b) => b.score - a.score || compare(a.document, b.document) || a.start - b.start)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const extended = new WeakSet<DatabaseSync>()

/** The extension is an optional dependency: some platforms have none. */
async function extensionProblem(database: DatabaseSync): Promise<string | undefined> {
  if (extended.has(database)) return undefined
  try {
    const { getLoadablePath } = await import('sqlite-vec')
    database.loadExtension(getLoadablePath())
    extended.add(database)
    return undefined
  } catch (error) {
    return `the SQLite extension sqlite-vec is missing: ${messageOf(error)}`
  }
}

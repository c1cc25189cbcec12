// Questions to the index, as SQL.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { bytesOf } from './embedding.ts'
import type { KnowledgeErrorCode } from './errors.ts'
import { KnowledgeError, messageOf } from './errors.ts'

export interface Filter {
  /** Only documents with these names. */
  readonly documents?: readonly string[]
  /** Only documents whose name begins so, such as `guide/`. */
  readonly under?: string
}

export interface ChannelQuery {
  readonly limit: number
  readonly filter: Filter
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
  /** The larger the better: BM25, or the cosine. */
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

/** What a heading says counts more than what stands below it. */
const HEADING_WEIGHT = 1.5

const columns = `d.name AS document, p.key, d.path, d.title, p.headings, p.text, p.start, p."end", p.page`

export function reader(database: DatabaseSync) {
  const ask = (sql: string, ...values: SQLInputValue[]) => database.prepare(sql).all(...values)

  return {
    keyword({ match, limit, filter }: ChannelQuery & { readonly match: string }): StoredPassage[] {
      const { condition, values } = conditionOf(filter)
      const found =
        condition === ''
          ? `SELECT rowid AS id, bm25(terms, ${HEADING_WEIGHT}, 1) AS rank FROM terms WHERE terms MATCH ?
             ORDER BY bm25(terms, ${HEADING_WEIGHT}, 1), rowid LIMIT ?`
          : `SELECT terms.rowid AS id, bm25(terms, ${HEADING_WEIGHT}, 1) AS rank
             FROM terms JOIN passages p ON p.id = terms.rowid JOIN documents d ON d.id = p.document
             WHERE terms MATCH ? AND ${condition} ORDER BY 2, 1 LIMIT ?`
      const sql = `SELECT ${columns}, -found.rank AS score FROM (${found}) found
        JOIN passages p ON p.id = found.id JOIN documents d ON d.id = p.document`
      return inOrder(ask(sql, match, ...values, limit))
    },

    async vector(query: ChannelQuery & { readonly embedder: string; readonly vector: Float32Array }) {
      await loadExtension(database)
      const { embedder, vector, limit, filter } = query
      const { condition, values } = conditionOf(filter)
      const where = condition === '' ? '' : `WHERE ${condition}`
      const sql = `SELECT ${columns}, 1 - found.distance AS score FROM (
          SELECT p.id, vec_distance_cosine(v.vector, ?) AS distance
          FROM passages p JOIN vectors v ON v.embedder = ? AND v.content = p.content
            ${condition === '' ? '' : 'JOIN documents d ON d.id = p.document'} ${where}
          ORDER BY 2, 1 LIMIT ?
        ) found JOIN passages p ON p.id = found.id JOIN documents d ON d.id = p.document`
      const passages = inOrder(ask(sql, bytesOf(vector), embedder, ...values, limit))
      const [{ missing }] = ask(
        `SELECT (SELECT count(*) FROM passages) - (SELECT count(*) FROM passages p JOIN vectors v ON v.embedder = ? AND v.content = p.content) AS missing`,
        embedder,
      ) as [{ missing: number }]
      return { passages, missing }
    },

    documents: (): DocumentInfo[] =>
      ask('SELECT name, path, title, bytes, passages FROM documents ORDER BY name').map(
        (it) => ({ ...it, title: it.title ?? undefined }) as unknown as DocumentInfo,
      ),

    problems: () => ask('SELECT path, code, message FROM problems ORDER BY path') as unknown as Problem[],

    roots: (): string[] => ask('SELECT path FROM roots ORDER BY path').map((it) => it.path as string),

    passage: ({ document, key }: { readonly document: string; readonly key: string }): StoredPassage | undefined =>
      inOrder(
        ask(
          `SELECT ${columns}, 0 AS score FROM passages p JOIN documents d ON d.id = p.document WHERE d.name = ? AND p.key = ?`,
          document,
          key,
        ),
      )[0],
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
  return { condition: conditions.join(' AND '), values }
}

/** The best first; among equals by name, so that the order does not depend on the order of indexing. */
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

/** The extension is an optional dependency: there is none for some platforms. */
async function loadExtension(database: DatabaseSync): Promise<void> {
  if (extended.has(database)) return
  try {
    const { getLoadablePath } = await import('sqlite-vec')
    database.loadExtension(getLoadablePath())
    extended.add(database)
  } catch (error) {
    throw new KnowledgeError('index_unusable', `The SQLite extension sqlite-vec is not there: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

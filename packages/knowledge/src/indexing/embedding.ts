// Vectors of passages, keyed by the digest of the embedded text and by the embedder: another embedder embeds anew while
// the old vectors still answer.
import type { DatabaseSync } from 'node:sqlite'
import { type Embed, vectorsProblem } from '../embedder.ts'
import { KnowledgeError, messageOf } from '../errors.ts'
import type { IndexProgress } from '../progress.ts'
import { transaction } from './store.ts'

export interface VectorReport {
  readonly embedded: number
  /** Passages without a vector, which only keyword search finds. */
  readonly missing: number
  /** Why the rest is missing. Indexing again embeds it. */
  readonly problem: string | undefined
}

interface Row {
  readonly id: number
  readonly content: Uint8Array
  readonly headings: string
  readonly text: string
}

const BATCH = 128

/** A passage is embedded together with its headings. */
export const textToEmbed = (headings: readonly string[], text: string): string =>
  headings.length === 0 ? text : `${headings.join(' › ')}\n${text}`

const withoutVector = `
  FROM passages WHERE NOT EXISTS (
    SELECT 1 FROM vectors WHERE vectors.embedder = ? AND vectors.content = passages.content
  )`

/** Never throws for an embedder's failure: keyword search works without vectors. */
export async function embedMissing(
  database: DatabaseSync,
  embedder: string,
  host: { readonly signal: AbortSignal; progress(progress: IndexProgress): void; embed: Embed },
): Promise<VectorReport> {
  const countMissing = database.prepare(`SELECT count(*) AS count ${withoutVector}`)
  const missing = (): number => (countMissing.get(embedder) as { count: number }).count
  const next = database.prepare(
    `SELECT id, content, headings, text ${withoutVector} AND id > ? ORDER BY id LIMIT ${BATCH}`,
  )
  const insert = database.prepare('INSERT OR IGNORE INTO vectors (embedder, content, vector) VALUES (?, ?, ?)')
  const known = database.prepare('SELECT length(vector) / 4 AS length FROM vectors WHERE embedder = ? LIMIT 1')

  const total = missing()
  let embedded = 0
  let after = 0
  let problem: string | undefined
  let failed = false
  while (!failed) {
    let rows = next.all(embedder, after) as unknown as Row[]
    if (rows.length === 0) break
    after = rows.at(-1)!.id
    while (rows.length > 0) {
      if (host.signal.aborted)
        throw new KnowledgeError(
          'cancelled',
          'Embedding was cancelled. Run it again for the rest; keyword search works without it.',
        )
      host.progress({ phase: 'embedding', done: embedded, total })
      try {
        const vectors = await host.embed(rows.map((it) => textToEmbed(JSON.parse(it.headings) as string[], it.text)))
        const { length } = (known.get(embedder) ?? {}) as { length?: number }
        const wrong = vectorsProblem(vectors, rows.length, length)
        if (wrong !== undefined) throw new Error(wrong)
        transaction(database, () => {
          for (const [n, { content }] of rows.entries()) insert.run(embedder, content, bytesOf(vectors[n]!))
        })
        embedded += rows.length
        break
      } catch (error) {
        problem = messageOf(error)
        // One text that the embedder refuses does not keep the others from their vectors.
        const { index } = error as { index?: number }
        failed = index === undefined || rows[index] === undefined
        if (failed) break
        rows = rows.toSpliced(index!, 1)
      }
    }
  }
  const left = missing()
  // Removes unreferenced vectors: old contents, and once everything is embedded, other embedders.
  transaction(database, () => {
    database.exec('DELETE FROM vectors WHERE content NOT IN (SELECT content FROM passages)')
    if (left === 0 && total > 0) database.prepare('DELETE FROM vectors WHERE embedder <> ?').run(embedder)
  })
  return { embedded, missing: left, problem }
}

export const bytesOf = (vector: Float32Array): Uint8Array =>
  new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)

// Indexes files in its own thread. Documents are replaced a few dozen per transaction, so that a concurrent search, or
// one after a crash, sees each document either before or after the change.
import { hash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Embed } from '../embedder.ts'
import { KnowledgeError } from '../errors.ts'
import { startParser } from '../parse/parser.ts'
import type { IndexProgress } from '../progress.ts'
import type { PassageOptions } from '../text/passages.ts'
import { documentWriter } from './document-writer.ts'
import { embedMissing, type VectorReport } from './embedding.ts'
import {
  exists,
  type FileProblem,
  type FoundFile,
  filesOf,
  isGone,
  readFound,
  type SkippedFile,
  tooLarge,
  unreadable,
} from './files.ts'
import { INDEX_VERSION, transaction } from './store.ts'

export interface IndexJob {
  readonly roots: readonly string[]
  /** The caller named the roots: a missing root is deleted for good, and not on an unmounted disk. */
  readonly named: boolean
  readonly maxFileBytes: number
  readonly parseTimeoutMs: number
  readonly passages: Required<PassageOptions>
  /** The id of the embedder, if there is one. */
  readonly embedder: string | undefined
}

export interface IndexReport {
  readonly added: number
  readonly changed: number
  readonly renamed: number
  readonly removed: number
  readonly unchanged: number
  /** Documents that could not be indexed, with the reason. */
  readonly problems: readonly FileProblem[]
  /** Files in the folders that are not documents, with the reason; at most 1,000. */
  readonly skipped: readonly SkippedFile[]
  /** Absent without an embedder. */
  readonly vectors: VectorReport | undefined
}

interface Known {
  readonly id: number
  readonly name: string
  readonly path: string
  readonly root: string
  readonly digest: string
  readonly recipe: string
  readonly bytes: number
  readonly modified_ms: number
  readonly indexed_ms: number
}

/**
 * Files that changed shortly before they were read may change again within the same tick of the file system's clock.
 */
const CLOCK_TICK_MS = 2_000
const MAX_SKIPPED = 1_000
const BATCH_PASSAGES = 1_000
const BATCH_MS = 1_000

/** Throws a KnowledgeError `cancelled`; everything written so far stays. */
export async function index(
  database: DatabaseSync,
  job: IndexJob,
  host: { readonly signal: AbortSignal; progress(progress: IndexProgress): void; embed: Embed },
): Promise<IndexReport> {
  const recipe = JSON.stringify([INDEX_VERSION, job.passages.maxTokens, job.passages.overlapTokens])
  const counts = { added: 0, changed: 0, renamed: 0, removed: 0, unchanged: 0 }
  const problems: FileProblem[] = []
  const writer = documentWriter(database)
  const parser = startParser(job.parseTimeoutMs, host.signal)
  const byPath = database.prepare('SELECT * FROM documents WHERE path = ?')
  const byName = database.prepare('SELECT * FROM documents WHERE name = ? AND path <> ?')
  const byRoot = database.prepare('SELECT * FROM documents WHERE root = ?')
  const find = (path: string) => byPath.get(path) as unknown as Known | undefined

  const files: FoundFile[] = []
  const skipped: SkippedFile[] = []
  for (const root of job.roots) {
    const found = await filesOf(root)
    for (const it of found.files) files.push(it)
    for (const it of found.problems) problems.push(it)
    for (const it of found.skipped) if (skipped.length < MAX_SKIPPED) skipped.push(it)
    if (found.files.length === 0 && !job.named && !(await exists(dirname(root))))
      problems.push({
        root,
        path: root,
        code: 'not_found',
        message: 'The path and its parent folder are missing. Its documents are kept. Add it again, or remove it.',
      })
  }

  // Documents whose files are gone. A new file with the same content is such a document under a new name.
  const present = new Set(files.map((it) => it.path))
  const gone = new Map<string, Known>()
  const unreachable = new Set(problems.filter((it) => it.code === 'not_found').map((it) => it.root))
  for (const root of job.roots)
    for (const it of byRoot.all(root) as unknown as Known[])
      if (!present.has(it.path) && !unreachable.has(root) && !(await isStillFile(it.path))) gone.set(it.path, it)

  let batch: (() => void)[] = []
  let batchPassages = 0
  let batchSince = performance.now()
  const commit = (): void => {
    const writes = batch
    batch = []
    batchPassages = 0
    batchSince = performance.now()
    if (writes.length > 0)
      transaction(database, () => {
        for (const write of writes) write()
      })
  }
  const stopIfCancelled = (): void => {
    if (!host.signal.aborted) return
    commit()
    throw new KnowledgeError(
      'cancelled',
      'Indexing was cancelled. Documents indexed so far are kept; run it again for the rest.',
    )
  }

  transaction(database, () => {
    const remember = database.prepare('INSERT OR IGNORE INTO roots (path) VALUES (?)')
    for (const root of job.roots) remember.run(root)
  })
  try {
    for (const [done, file] of files.entries()) {
      stopIfCancelled()
      host.progress({ phase: 'reading', done, total: files.length, path: file.path })
      try {
        await take(file)
      } catch (error) {
        stopIfCancelled()
        if (!(error instanceof KnowledgeError)) throw error
        problems.push({ root: file.root, path: file.path, code: error.code, message: error.message })
        const known = find(file.path)
        // The file can no longer be read, so its old content may be out of date.
        if (known === undefined || error.code === 'unreadable') continue
        batch.push(() => {
          writer.remove(known.id)
          counts.removed += 1
        })
      }
      if (batchPassages >= BATCH_PASSAGES || performance.now() - batchSince > BATCH_MS) commit()
    }
  } finally {
    await parser.close()
  }
  stopIfCancelled()
  for (const { id, path, digest } of gone.values())
    batch.push(() => {
      const now = find(path)
      // Another process may have found it again meanwhile.
      if (now?.id !== id || now.digest !== digest) return
      writer.remove(id)
      counts.removed += 1
    })
  batch.push(() => keepProblems(database, job.roots, problems))
  commit()
  const vectors = job.embedder === undefined ? undefined : await embedMissing(database, job.embedder, host)
  return { ...counts, problems, skipped, vectors }

  function unchanged(): void {
    counts.unchanged += 1
  }

  async function take(file: FoundFile): Promise<void> {
    const known = find(file.path)
    // A file below two roots belongs to the one that was added first.
    if (known !== undefined && known.root !== file.root) return unchanged()
    const { size, mtimeMs } = await lstat(file.realPath).catch(unreadable)
    const current = known !== undefined && known.recipe === recipe
    const settled = current && known.modified_ms === mtimeMs && mtimeMs < known.indexed_ms - CLOCK_TICK_MS
    if (settled && known.bytes === size) return unchanged()
    if (size > job.maxFileBytes) throw tooLarge(size, job.maxFileBytes)
    const indexedMs = Date.now()
    const { bytes, modifiedMs } = await readFound(file, job.maxFileBytes)
    const digest = hash('sha256', bytes)
    const facts = { ...file, digest, recipe, bytes: bytes.length, modifiedMs, indexedMs }
    if (current && known.digest === digest) {
      batch.push(() => writer.touch(known.id, facts))
      return unchanged()
    }
    const before = gone.values().find((it) => it.digest === digest && it.recipe === recipe)
    if (known === undefined && before !== undefined) {
      gone.delete(before.path)
      batch.push(() => {
        if (nameIsFree(file)) {
          if (find(before.path)?.id === before.id) writer.rename(before.id, facts)
          counts.renamed += 1
        } else gone.set(before.path, before)
      })
      return
    }
    const { title, passages } = await parser.parse({ path: file.path, bytes, passages: job.passages })
    batchPassages += passages.length
    batch.push(() => {
      const now = find(file.path)
      // Another process may have done the same work.
      if (now?.digest === digest && now.recipe === recipe) return unchanged()
      if (!nameIsFree(file)) return
      writer.replace(now?.id, { ...facts, title, passages })
      counts[now === undefined ? 'added' : 'changed'] += 1
    })
  }

  /** A name identifies one document. A deleted file releases its name; otherwise the second file is a problem. */
  function nameIsFree({ root, path, name }: FoundFile): boolean {
    const holder = byName.get(name, path) as unknown as Known | undefined
    if (holder === undefined) return true
    if (gone.delete(holder.path)) {
      writer.remove(holder.id)
      counts.removed += 1
      return true
    }
    const message = `Two documents have the name ${name}: the other is ${holder.path}. Rename one of them.`
    problems.push({ root, path, code: 'duplicate_document', message })
    return false
  }
}

/** Removes added files and folders from the index. Returns the number of documents removed. */
export function forget(database: DatabaseSync, roots: readonly string[]): number {
  const writer = documentWriter(database)
  return transaction(database, () => {
    let removed = 0
    for (const root of roots) {
      for (const { id } of database.prepare('SELECT id FROM documents WHERE root = ?').all(root)) {
        writer.remove(id as number)
        removed += 1
      }
      database.prepare('DELETE FROM roots WHERE path = ?').run(root)
    }
    keepProblems(database, roots, [])
    return removed
  })
}

/** A link in the place of a file is not a file. */
const isStillFile = (path: string): Promise<boolean> =>
  lstat(path).then(
    (it) => it.isFile(),
    (error) => !isGone(error),
  )

function keepProblems(database: DatabaseSync, roots: readonly string[], problems: readonly FileProblem[]): void {
  const clear = database.prepare('DELETE FROM problems WHERE root = ?')
  for (const root of roots) clear.run(root)
  const add = database.prepare('INSERT OR REPLACE INTO problems (path, root, code, message) VALUES (?, ?, ?, ?)')
  for (const { path, root, code, message } of problems) add.run(path, root, code, message)
}

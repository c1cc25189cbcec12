// Writes documents to the index, always inside a transaction.
import { hash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { termsOf } from '../text/analyser.ts'
import type { Passage } from '../text/passages.ts'
import { textToEmbed } from './embedding.ts'

interface DocumentFacts {
  readonly name: string
  readonly path: string
  readonly root: string
  readonly digest: string
  readonly recipe: string
  readonly bytes: number
  readonly modifiedMs: number
  readonly indexedMs: number
}

interface NewDocument extends DocumentFacts {
  readonly title: string | undefined
  readonly passages: readonly Passage[]
}

export function documentWriter(database: DatabaseSync) {
  const statements = {
    insert: database.prepare(`
      INSERT INTO documents (name, path, root, digest, recipe, bytes, modified_ms, indexed_ms, title, passages)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    update: database.prepare(`
      UPDATE documents SET name = ?, path = ?, root = ?, digest = ?, recipe = ?, bytes = ?, modified_ms = ?, indexed_ms = ?,
        title = ?, passages = ? WHERE id = ?`),
    rename: database.prepare(
      'UPDATE documents SET name = ?, path = ?, root = ?, modified_ms = ?, indexed_ms = ? WHERE id = ?',
    ),
    touch: database.prepare('UPDATE documents SET modified_ms = ?, indexed_ms = ? WHERE id = ?'),
    remove: database.prepare('DELETE FROM documents WHERE id = ?'),
    insertPassage: database.prepare(`
      INSERT INTO passages (document, key, headings, text, start, "end", page, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`),
    removePassages: database.prepare('DELETE FROM passages WHERE document = ?'),
    insertTerms: database.prepare('INSERT INTO terms (rowid, headings, body) VALUES (?, ?, ?)'),
    removeTerms: database.prepare('DELETE FROM terms WHERE rowid IN (SELECT id FROM passages WHERE document = ?)'),
  }

  function removePassages(id: number): void {
    statements.removeTerms.run(id)
    statements.removePassages.run(id)
  }

  return {
    /** Replaces the document with this id, or adds it. */
    replace(id: number | undefined, it: NewDocument): void {
      const facts = [it.name, it.path, it.root, it.digest, it.recipe, it.bytes, it.modifiedMs, it.indexedMs]
      const values = [...facts, it.title ?? null, it.passages.length]
      const document = id ?? Number(statements.insert.run(...values).lastInsertRowid)
      if (id !== undefined) {
        statements.update.run(...values, id)
        removePassages(id)
      }
      for (const { key, headings, text, start, end, page } of it.passages) {
        const content = hash('sha256', textToEmbed(headings, text), 'buffer').subarray(0, 16)
        const row = [document, key, JSON.stringify(headings), text, start, end, page ?? null, content]
        const { lastInsertRowid } = statements.insertPassage.run(...row)
        // The innermost headings are in the text as well, and count twice on purpose.
        statements.insertTerms.run(lastInsertRowid, termsOf([it.title ?? '', ...headings].join('\n')), termsOf(text))
      }
    },
    rename(id: number, it: DocumentFacts): void {
      statements.rename.run(it.name, it.path, it.root, it.modifiedMs, it.indexedMs, id)
    },
    /** The file was read again and is unchanged. */
    touch(id: number, it: DocumentFacts): void {
      statements.touch.run(it.modifiedMs, it.indexedMs, id)
    },
    remove(id: number): void {
      removePassages(id)
      statements.remove.run(id)
    },
  }
}

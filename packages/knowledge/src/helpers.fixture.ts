import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Embedder } from './embedder.ts'
import { type Knowledge, type KnowledgeIndexOptions, openKnowledge } from './knowledge.ts'

export interface Place {
  readonly directory: string
  readonly documents: string
  readonly index: string
  write(name: string, content: string | Uint8Array): string
  open(options?: Partial<KnowledgeIndexOptions>): Knowledge
}

/** A directory with documents, and an index next to it. */
export function place(files: Readonly<Record<string, string | Uint8Array>> = {}): Place {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-knowledge-'))
  const documents = join(directory, 'documents')
  const index = join(directory, 'knowledge.db')
  const opened: Knowledge[] = []
  onTestFinished(async () => {
    for (const it of opened) await it.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const write: Place['write'] = (name, content) => {
    const path = join(documents, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    return path
  }
  mkdirSync(documents)
  for (const [name, content] of Object.entries(files)) write(name, content)
  const open: Place['open'] = (options = {}) => {
    const knowledge = openKnowledge({ path: index, ...options })
    opened.push(knowledge)
    return knowledge
  }
  return { directory, documents, index, write, open }
}

/** Counts letters: enough to identify what was embedded, and close for similar texts. */
export function letterEmbedder(id = 'letters', dimensions = 32): Embedder & { readonly embedded: string[] } {
  const embedded: string[] = []
  return {
    id,
    embedded,
    async embed(texts, { kind }) {
      if (kind === 'document') embedded.push(...texts)
      const vectors = texts.map((text) => {
        const vector = new Float32Array(dimensions)
        for (const letter of text.toLowerCase()) vector[letter.codePointAt(0)! % dimensions]! += 1
        return vector
      })
      return { vectors }
    },
  }
}

export const names = (hits: readonly { readonly document: string }[]): string[] => [
  ...new Set(hits.map((it) => it.document)),
]

// The policy documents: which of them speak of what somebody asks for. Words that are found, no more; it shows that
// what a document says is text for the model, never a right.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('./policies/', import.meta.url))

export interface Policy {
  readonly document: string
  readonly text: string
}

/** At most two documents, the best first. */
export function searchPolicies(query: string): Policy[] {
  const words = new Set(wordsOf(query))
  return readdirSync(FOLDER)
    .filter((it) => it.endsWith('.md'))
    .map((document) => {
      const text = readFileSync(join(FOLDER, document), 'utf8')
      const score = [...new Set(wordsOf(text))].filter((it) => words.has(it)).length
      return { document, text, score }
    })
    .filter((it) => it.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 2)
    .map(({ document, text }) => ({ document, text }))
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[a-z]{3,}/g) ?? []

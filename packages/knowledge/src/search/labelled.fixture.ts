// The labelled sets of test-data: one Markdown file of documents, one file of questions with the documents that answer
// them.
import { readFileSync } from 'node:fs'
import type { LabelledQuery } from './evaluate.ts'

export const sets = ['english', 'chinese', 'identifiers'] as const

export interface LabelledSet {
  readonly documents: Readonly<Record<string, string>>
  readonly labels: readonly LabelledQuery[]
}

export function labelledSet(set: (typeof sets)[number]): LabelledSet {
  const read = (name: string): string => readFileSync(new URL(`../../test-data/${name}`, import.meta.url), 'utf8')
  const documents = read(`${set}.md`)
    .split(/^## /m)
    .slice(1)
    .map((it): [string, string] => [it.slice(0, it.indexOf('\n')), it.slice(it.indexOf('\n') + 1)])
  const labels = read(`${set}.labels.txt`)
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [query, relevant] = line.split(' | ')
      return { query: query!, relevant: relevant!.split(', '), set }
    })
  return { documents: Object.fromEntries(documents), labels }
}

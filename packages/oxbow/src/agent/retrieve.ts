// Keyword search in the Markdown files of a directory. Passages carry an id made from their text, so that a citation never
// points at something else after an edit.
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Tool, tool } from '@oxbow/core'
import MiniSearch from 'minisearch'

export interface Passage {
  /** `doc.md#digest` */
  readonly id: string
  readonly document: string
  readonly title: string
  readonly text: string
}

const MAX_RESULTS = 4

export function retrieveTool(directory: string): Tool {
  let index: MiniSearch<Passage> | undefined
  return tool({
    name: 'retrieve',
    description:
      'Searches the knowledge base and returns passages, each with an id in brackets. Cite the ids of the passages that ' +
      'you use, exactly as they are written, for example [getting-started.md#1a2b3c4d].',
    effects: ['read'],
    input: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What to look for.', minLength: 1, maxLength: 500 } },
      required: ['query'],
      additionalProperties: false,
    },
    run({ query }) {
      index ??= indexOf(readPassages(directory))
      const found = index.search(String(query)).slice(0, MAX_RESULTS)
      if (found.length === 0) return 'Nothing in the knowledge base matches.'
      return found.map(({ id, title, text }) => `[${id}] ${title}\n${text}`).join('\n\n')
    },
  })
}

function indexOf(passages: readonly Passage[]): MiniSearch<Passage> {
  const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' })
  const index = new MiniSearch<Passage>({
    fields: ['title', 'text'],
    storeFields: ['id', 'title', 'text'],
    tokenize: (text) => [...segmenter.segment(text)].filter((it) => it.isWordLike).map((it) => it.segment),
    searchOptions: { boost: { title: 2 }, prefix: (term) => term.length > 3, fuzzy: false },
  })
  index.addAll(passages)
  return index
}

/** One passage per heading. */
export function readPassages(directory: string): Passage[] {
  return readdirSync(directory)
    .filter((it) => it.endsWith('.md'))
    .sort()
    .flatMap((document) => passagesOf(document, readFileSync(join(directory, document), 'utf8')))
}

export function passagesOf(document: string, markdown: string): Passage[] {
  const passages: Passage[] = []
  for (const part of markdown.split(/^(?=#{1,6} )/m)) {
    const [, heading, body] = /^(?:#{1,6} +(.*)\n)?([\s\S]*)$/.exec(part) ?? []
    const text = body?.trim() ?? ''
    if (text === '') continue
    const title = heading?.trim() ?? document
    const id = `${document}#${hash('sha256', `${title}\n${text}`).slice(0, 8)}`
    if (passages.every((it) => it.id !== id)) passages.push({ id, document, title, text })
  }
  return passages
}

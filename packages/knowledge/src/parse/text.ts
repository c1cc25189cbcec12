import type { DocumentBlock, ParsedDocument } from '../text/document.ts'

/** Empty lines separate paragraphs. */
export function parseText(text: string): ParsedDocument {
  return { title: undefined, text, blocks: paragraphsOf(text, 0, text.length), pages: undefined }
}

/** The first line of comma or tab separated values is their header. */
export function parseRows(text: string): ParsedDocument {
  const start = text.length - text.trimStart().length
  const end = text.trimEnd().length
  const line = text.indexOf('\n', start)
  const blocks: DocumentBlock[] =
    end > start ? [{ type: 'table', start, end, headerEnd: line === -1 ? end : line + 1 }] : []
  return { title: undefined, text, blocks, pages: undefined }
}

export function paragraphsOf(text: string, from: number, to: number): DocumentBlock[] {
  const blocks: DocumentBlock[] = []
  const gap = /\n[^\S\n]*\n\s*/g
  const add = (start: number, end: number): void => {
    const part = text.slice(start, end)
    const inner = part.trim()
    if (inner === '') return
    const at = start + part.indexOf(inner)
    blocks.push({ type: 'paragraph', start: at, end: at + inner.length })
  }
  let at = from
  gap.lastIndex = from
  for (let match = gap.exec(text); match !== null && match.index < to; match = gap.exec(text)) {
    add(at, match.index)
    at = gap.lastIndex
  }
  add(at, to)
  return blocks
}

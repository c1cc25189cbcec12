/** A document as its structure: passages are slices of `text`, and all offsets are UTF-16 units in it. */
export interface ParsedDocument {
  /** Its own title, if it has one. */
  readonly title: string | undefined
  readonly text: string
  /** In the order of the text, without overlap. */
  readonly blocks: readonly DocumentBlock[]
  /** Where each page begins, for formats that have pages. */
  readonly pages: readonly number[] | undefined
}

export type DocumentBlock = Heading | DocumentContent

interface Heading {
  readonly type: 'heading'
  readonly start: number
  readonly end: number
  /** 1 is the outermost. */
  readonly depth: number
  readonly text: string
}

export interface DocumentContent {
  readonly type: 'paragraph' | 'list' | 'code' | 'table'
  readonly start: number
  readonly end: number
  /** The best places to split it when it is too long: the starts of list items. */
  readonly cuts?: readonly number[]
  /** Where the header of a table ends. */
  readonly headerEnd?: number
}

/**
 * Headings and titles are repeated with every passage below them, so they are short: one line, at most 200 characters.
 */
export const asHeading = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 200).toWellFormed()

/** Adds the text between the blocks, so that only white space is lost. */
export function covered(text: string, blocks: readonly DocumentBlock[]): DocumentBlock[] {
  const all: DocumentBlock[] = []
  let at = 0
  const fill = (end: number): void => {
    const gap = text.slice(at, end)
    const inner = gap.trim()
    if (inner === '') return
    const start = at + gap.indexOf(inner)
    all.push({ type: 'paragraph', start, end: start + inner.length })
  }
  for (const block of blocks) {
    fill(block.start)
    all.push(block)
    at = block.end
  }
  fill(text.length)
  return all
}

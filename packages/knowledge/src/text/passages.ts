// Documents → passages. A passage is a slice of the text that follows its structure: it never crosses a heading, blocks
// blocks stay whole where they fit, and only a split block overlaps itself.
import { hash } from 'node:crypto'
import type { DocumentBlock, DocumentContent, ParsedDocument } from './document.ts'
import { sizesOf } from './tokens.ts'

export interface PassageOptions {
  /** The maximum length of a passage, in tokens as `estimateTokens` counts them: 16 to 8000. Default 400. */
  readonly maxTokens?: number
  /** How much of a cut block is repeated in its next passage. Default 40. */
  readonly overlapTokens?: number
}

export interface Passage {
  /** Digest of the text, with `-2` and so on for repeated texts in a document. */
  readonly key: string
  /** The headings above it, from the outermost. */
  readonly headings: readonly string[]
  /**
   * The slice of the document from `start` to `end`; before it the header of the table, where rows of a cut table
   * continue.
   */
  readonly text: string
  /** UTF-16 units in the text of the document. */
  readonly start: number
  readonly end: number
  /** Counted from 1, for formats that have pages. */
  readonly page: number | undefined
}

interface Bounds {
  readonly start: number
  readonly end: number
}

/** A block, or a part of one that had to be cut. */
interface Unit extends Bounds {
  readonly heading: boolean
  /** The block that it is a part of. */
  readonly of: DocumentContent | undefined
}

export const DEFAULT_PASSAGES: Required<PassageOptions> = { maxTokens: 400, overlapTokens: 40 }

export function passagesOf(document: ParsedDocument, options: PassageOptions = {}): Passage[] {
  const { maxTokens, overlapTokens } = { ...DEFAULT_PASSAGES, ...options }
  const sizes = sizesOf(document.text)
  const size = ({ start, end }: Bounds): number => sizes[end]! - sizes[start]!
  const cutter = cutterOf(document.text, size)
  const limit = maxTokens * 4
  const drafts: { headings: readonly string[]; start: number; end: number; prefix: string }[] = []

  for (const { headings, blocks } of sectionsOf(document.blocks)) {
    let start = -1
    let prefix: Bounds | undefined
    let last: Unit | undefined
    const finish = (): void => {
      if (last === undefined) return
      const before = prefix === undefined ? '' : document.text.slice(prefix.start, prefix.end)
      drafts.push({ headings, start, end: last.end, prefix: before })
      last = undefined
    }
    const units = unitsOf(blocks, limit, size, cutter)
    for (const [position, unit] of units.entries()) {
      const used = last === undefined ? 0 : (prefix === undefined ? 0 : size(prefix)) + size({ start, end: unit.end })
      if (last !== undefined && used > limit) finish()
      if (last === undefined) {
        prefix = position > 0 && units[position - 1]!.of === unit.of ? repeatedHeader(unit.of, limit, size) : undefined
        start = prefix === undefined ? overlapStart(units, position, overlapTokens * 4, limit, size) : unit.start
      }
      last = unit
    }
    finish()
  }

  const seen = new Map<string, number>()
  return drafts.map(({ headings, start, end, prefix }) => {
    const text = prefix + document.text.slice(start, end)
    const digest = hash('sha256', text).slice(0, 12)
    const count = (seen.get(digest) ?? 0) + 1
    seen.set(digest, count)
    const page = document.pages === undefined ? undefined : pageAt(document.pages, start)
    return { key: count === 1 ? digest : `${digest}-${count}`, headings, text, start, end, page }
  })
}

/** Headings that follow one another, each deeper, open one section; its path is that of the innermost. */
function sectionsOf(
  blocks: readonly DocumentBlock[],
): { headings: readonly string[]; blocks: readonly DocumentBlock[] }[] {
  const sections: { headings: readonly string[]; blocks: DocumentBlock[] }[] = []
  let path: { depth: number; text: string }[] = []
  for (const block of blocks) {
    const section = sections.at(-1)
    if (block.type === 'heading') {
      const before = section?.blocks.at(-1)
      path = [...path.filter((it) => it.depth < block.depth), block]
      const headings = path.map((it) => it.text)
      if (before?.type === 'heading' && block.depth > before.depth)
        sections[sections.length - 1] = { headings, blocks: [...section!.blocks, block] }
      else sections.push({ headings, blocks: [block] })
    } else if (section === undefined) sections.push({ headings: [], blocks: [block] })
    else section.blocks.push(block)
  }
  return sections
}

type Size = (bounds: Bounds) => number
type Cutter = ReturnType<typeof cutterOf>

function unitsOf(blocks: readonly DocumentBlock[], limit: number, size: Size, cutter: Cutter): Unit[] {
  const units: Unit[] = []
  let headingsFrom: number | undefined
  for (const block of blocks) {
    // The first block below a heading leaves room for it, so that a heading is not a passage of its own.
    const room = headingsFrom === undefined ? limit : limit - size({ start: headingsFrom, end: block.start })
    const most = room < limit / 2 ? limit : room
    const { start, end } = block
    if (block.type === 'heading') {
      for (const it of cutter({ type: 'paragraph', start, end }, limit))
        units.push({ ...it, heading: true, of: undefined })
      headingsFrom ??= start
    } else {
      if (size(block) <= most) units.push({ start, end, heading: false, of: undefined })
      else {
        const header = repeatedHeader(block, limit, size)
        const pieces = cutter(block, header === undefined ? most : most - size(header))
        for (const it of pieces) units.push({ ...it, heading: false, of: block })
      }
      headingsFrom = undefined
    }
  }
  return units
}

/** The header of a table, unless it leaves little room for rows. */
function repeatedHeader(block: DocumentContent | undefined, limit: number, size: Size): Bounds | undefined {
  if (block?.headerEnd === undefined) return undefined
  const header = { start: block.start, end: block.headerEnd }
  return size(header) > limit / 3 || block.headerEnd >= block.end ? undefined : header
}

/** Where a passage that continues a block starts: with as many of its last parts as fit. */
function overlapStart(units: readonly Unit[], position: number, overlap: number, limit: number, size: Size): number {
  const unit = units[position]!
  let start = unit.start
  for (let i = position - 1; i >= 0 && unit.of !== undefined && units[i]!.of === unit.of; i--) {
    const from = units[i]!.start
    if (size({ start: from, end: unit.start }) > overlap || size({ start: from, end: unit.end }) > limit) break
    start = from
  }
  return start
}

/** Splits a block at its best places, and parts that are still too long at the next best. */
function cutterOf(text: string, size: Size) {
  const sentences = new Intl.Segmenter(undefined, { granularity: 'sentence' })
  const matches = (pattern: RegExp, { start, end }: Bounds): number[] =>
    [...text.slice(start, end).matchAll(pattern)].map((it) => start + it.index + it[0].length)
  const lines = (it: Bounds) => matches(/\n/g, it)
  const sentenceStarts = ({ start, end }: Bounds) =>
    [...sentences.segment(text.slice(start, end))].map((it) => start + it.index)
  const words = (it: Bounds) => matches(/\s+|[,;，；、]/g, it)
  const ladder = {
    paragraph: [sentenceStarts, lines, words],
    list: [lines, sentenceStarts, words],
    code: [lines, words],
    table: [lines, words],
  }

  function divide(part: Bounds, limit: number, places: readonly ((it: Bounds) => number[])[]): Bounds[] {
    if (size(part) <= limit) return [part]
    const [place, ...rest] = places
    if (place === undefined) return byCharacters(part, limit)
    const cuts = place(part).filter((it) => it > part.start && it < part.end)
    const starts = [part.start, ...cuts]
    return starts.flatMap((start, n) => divide({ start, end: starts[n + 1] ?? part.end }, limit, rest))
  }

  function byCharacters({ start, end }: Bounds, limit: number): Bounds[] {
    const parts: Bounds[] = []
    let from = start
    let at = start
    while (at < end) {
      const next = at + (text.codePointAt(at)! > 0xffff ? 2 : 1)
      if (at > from && size({ start: from, end: next }) > limit) {
        parts.push({ start: from, end: at })
        from = at
      }
      at = next
    }
    parts.push({ start: from, end })
    return parts
  }

  /** The parts of a block, without the white space around each. */
  return ({ type, start, end, cuts, headerEnd }: DocumentContent, limit: number): Bounds[] => {
    const best = cuts === undefined ? [] : [() => [...cuts]]
    // A header stays in one part with the line of dashes below it, where it fits.
    const parts =
      headerEnd !== undefined && headerEnd < end && size({ start, end: headerEnd }) <= limit
        ? [{ start, end: headerEnd }, ...divide({ start: headerEnd, end }, limit, ladder.table)]
        : divide({ start, end }, limit, [...best, ...ladder[type]])
    return parts.flatMap((it) => {
      const part = text.slice(it.start, it.end)
      const inner = type === 'code' ? part.trimEnd() : part.trim()
      if (inner.trim() === '') return []
      const from = it.start + part.indexOf(inner)
      return [{ start: from, end: from + inner.length }]
    })
  }
}

function pageAt(pages: readonly number[], offset: number): number {
  const after = pages.findIndex((it) => it > offset)
  return after === -1 ? pages.length : after
}

import { fromMarkdown, type Options } from 'mdast-util-from-markdown'
import { frontmatterFromMarkdown } from 'mdast-util-frontmatter'
import { gfmTableFromMarkdown } from 'mdast-util-gfm-table'
import { toString as plainText } from 'mdast-util-to-string'
import { frontmatter } from 'micromark-extension-frontmatter'
import { gfmTable } from 'micromark-extension-gfm-table'
import { asHeading, covered, type DocumentBlock, type ParsedDocument } from '../text/document.ts'
import { paragraphsOf } from './text.ts'

type RootContent = ReturnType<typeof fromMarkdown>['children'][number]

const structure: Options = {
  extensions: [
    frontmatter(),
    gfmTable(),
    // Only the structure is needed; inline parsing takes most of the time.
    {
      disable: {
        null: [
          'attention',
          'autolink',
          'characterEscape',
          'characterReference',
          'codeText',
          'hardBreakEscape',
          'htmlText',
          'labelEnd',
          'labelStartImage',
          'labelStartLink',
        ],
      },
    },
  ],
  mdastExtensions: [frontmatterFromMarkdown(), gfmTableFromMarkdown()],
}

/** The parser's time grows with the square of some structures, so large documents are parsed in parts. */
const PART = 100_000
/** Nested quotes or lists, far deeper than in real documents: in one line, or each indented further. */
const strange = /^(?:(?:[ \t]*(?:[>*+-]|\d{1,9}[.)])){50}|[ \t]{100,}(?:[*+-]|\d{1,9}[.)])[ \t])/m

export function parseMarkdown(text: string): ParsedDocument {
  const blocks = partsOf(text).flatMap(([start, end]): DocumentBlock[] => {
    const part = text.slice(start, end)
    if (part.length > 2 * PART || strange.test(part)) return paragraphsOf(text, start, end)
    return fromMarkdown(part, structure).children.flatMap((it) => blockOf(it, start))
  })
  const all = covered(text, blocks)
  return { title: titleOf(text, all), text, blocks: all, pages: undefined }
}

/** Parts that begin at headings outside of fenced code; one part when the text is not large. */
function partsOf(text: string): [start: number, end: number][] {
  const starts = [0]
  let fence: string | undefined
  let heading = 0
  if (text.length > PART)
    for (const { index, 0: line } of text.matchAll(/^ {0,3}(?:`{3,}|~{3,}|#{1,6}[ \t]).*$/gm)) {
      const mark = line.trimStart().match(/^(`+|~+)/)?.[0]
      if (mark === undefined) {
        if (fence !== undefined) continue
        if (index - starts.at(-1)! > PART && heading > starts.at(-1)!) starts.push(heading)
        heading = index
      } else if (fence === undefined) fence = mark
      else if (mark.startsWith(fence) && line.trim() === mark) fence = undefined
    }
  if (text.length - starts.at(-1)! > PART && heading > starts.at(-1)!) starts.push(heading)
  return starts.map((start, n) => [start, starts[n + 1] ?? text.length])
}

function blockOf(node: RootContent, offset: number): DocumentBlock[] {
  const at = (point: NonNullable<RootContent['position']>['start']): number => offset + point.offset!
  const { start, end } = { start: at(node.position!.start), end: at(node.position!.end) }
  if (end <= start) return []
  switch (node.type) {
    case 'heading':
      return [{ type: 'heading', start, end, depth: node.depth, text: withoutMarks(plainText(node)) }]
    case 'list':
      return [{ type: 'list', start, end, cuts: node.children.map((it) => at(it.position!.start)) }]
    case 'table': {
      // The second line, of dashes, has no node: the header ends where the first row begins.
      const row = node.children[1]
      return [{ type: 'table', start, end, headerEnd: row === undefined ? end : at(row.position!.start) }]
    }
    case 'code':
    case 'yaml':
      return [{ type: 'code', start, end }]
    default:
      return [{ type: 'paragraph', start, end }]
  }
}

/** A heading as it is read: without emphasis, code and link marks. */
const withoutMarks = (heading: string): string =>
  asHeading(plainText(fromMarkdown(heading.slice(0, 1_000)))) || asHeading(heading)

function titleOf(text: string, blocks: readonly DocumentBlock[]): string | undefined {
  const named = /^---\n(?:.*\n)*?title: *(.+)\n(?:.*\n)*?---/.exec(text.slice(0, 2_000))?.[1]
  if (named !== undefined) return asHeading(named.replace(/^(["'])(.*)\1 *$/, '$2'))
  return blocks.find((it) => it.type === 'heading')?.text
}

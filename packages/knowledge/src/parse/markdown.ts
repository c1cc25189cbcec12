import type { RootContent } from 'mdast'
import { fromMarkdown, type Options } from 'mdast-util-from-markdown'
import { frontmatterFromMarkdown } from 'mdast-util-frontmatter'
import { gfmTableFromMarkdown } from 'mdast-util-gfm-table'
import { toString as plainText } from 'mdast-util-to-string'
import { frontmatter } from 'micromark-extension-frontmatter'
import { gfmTable } from 'micromark-extension-gfm-table'
import { asHeading, type Block, covered, type ParsedDocument } from '../document.ts'

const structure: Options = {
  extensions: [
    frontmatter(),
    gfmTable(),
    // Only the structure is wanted; what stands inside of a line costs most of the time.
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

export function parseMarkdown(text: string): ParsedDocument {
  const blocks = covered(text, fromMarkdown(text, structure).children.flatMap(blockOf))
  return { title: titleOf(text, blocks), text, blocks, pages: undefined }
}

function blockOf(node: RootContent): Block[] {
  const start = node.position!.start.offset!
  const end = node.position!.end.offset!
  if (end <= start) return []
  switch (node.type) {
    case 'heading':
      return [{ type: 'heading', start, end, depth: node.depth, text: withoutMarks(plainText(node)) }]
    case 'list':
      return [{ type: 'list', start, end, cuts: node.children.map((it) => it.position!.start.offset!) }]
    case 'table':
      // The second line, of dashes, has no node: the header ends where the first row begins.
      return [{ type: 'table', start, end, headerEnd: node.children[1]?.position?.start.offset ?? end }]
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

function titleOf(text: string, blocks: readonly Block[]): string | undefined {
  const named = /^---\n(?:.*\n)*?title: *(.+)\n(?:.*\n)*?---/.exec(text.slice(0, 2_000))?.[1]
  if (named !== undefined) return asHeading(named.replace(/^(["'])(.*)\1 *$/, '$2'))
  return blocks.find((it) => it.type === 'heading')?.text
}

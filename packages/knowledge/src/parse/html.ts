// HTML as text. Read as a stream of tags, never as a tree.
import { Parser } from 'htmlparser2'
import { KnowledgeError } from '../errors.ts'
import { asHeading, type DocumentBlock, type ParsedDocument } from '../text/document.ts'

const unseen = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object'])
const blockTags = new Set(
  `address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form header
   hgroup hr legend main menu nav p section summary`.split(/\s+/),
)
/** The parser's time grows with the square of the depth. */
const MAX_DEPTH = 5_000
const lists = new Set(['ul', 'ol'])

/** Throws a KnowledgeError `corrupt`. */
export function parseHtml(html: string): ParsedDocument {
  const page = writer()
  let title: string | undefined
  let inTitle = false
  let hidden = 0
  let preformatted = 0
  let nested = 0
  const parser = new Parser({
    onopentag(name) {
      nested += 1
      if (nested > MAX_DEPTH) throw new KnowledgeError('corrupt', `Its tags are nested more than ${MAX_DEPTH} deep.`)
      if (unseen.has(name)) hidden += 1
      else if (name === 'title' && title === undefined) inTitle = true
      else if (name === 'pre') {
        page.paragraph()
        preformatted += 1
      } else if (/^h[1-6]$/.test(name) || blockTags.has(name)) page.paragraph()
      else if (lists.has(name)) page.open('list')
      else if (name === 'table') page.open('table')
      else if (name === 'li' || name === 'tr' || name === 'caption') page.item()
      else if (name === 'td' || name === 'th') page.cell()
      else if (name === 'br') page.inline('\n')
    },
    onclosetag(name) {
      nested -= 1
      if (unseen.has(name)) hidden = Math.max(0, hidden - 1)
      else if (name === 'title') inTitle = false
      else if (name === 'pre') {
        page.paragraph('code')
        preformatted = Math.max(0, preformatted - 1)
      } else if (/^h[1-6]$/.test(name)) page.heading(Number(name[1]))
      else if (blockTags.has(name)) page.paragraph()
      else if (lists.has(name) || name === 'table') page.close()
      else if (name === 'li' || name === 'tr' || name === 'caption') page.item()
    },
    ontext(text) {
      if (hidden > 0) return
      if (inTitle) title = `${title ?? ''}${text}`
      else page.inline(preformatted > 0 ? text : text.replace(/\s+/g, ' '))
    },
  })
  parser.write(html)
  parser.end()
  const { text, blocks } = page.done()
  const named = asHeading(title ?? '')
  return { title: named || blocks.find((it) => it.type === 'heading')?.text, text, blocks, pages: undefined }
}

/** Collects text, and records which block each part belongs to. Nested lists and tables belong to the outermost. */
function writer() {
  const parts: string[] = []
  const blocks: DocumentBlock[] = []
  let length = 0
  let line = ''
  /** Whether the line has anything but white space. */
  let said = false
  let outer: { type: 'list' | 'table'; start: number; items: number[] } | undefined
  let depth = 0

  /** Appends a text on separate lines and returns its bounds. */
  function put(text: string, gap: string): [number, number] {
    const before = length === 0 ? '' : gap
    parts.push(before, text)
    const start = length + before.length
    length = start + text.length
    return [start, length]
  }
  function take(): string {
    const lines = line.split('\n').map((it) => it.trim())
    line = ''
    said = false
    return lines.join('\n').trim()
  }
  function item(): void {
    if (outer === undefined) {
      paragraph()
      return
    }
    const text = outer.type === 'table' ? take().replace(/\n+/g, ' ').replace(/^\| /, '') : take()
    if (text === '') return
    const [start] = put(outer.type === 'list' ? `- ${text}` : text, outer.items.length === 0 ? '\n\n' : '\n')
    if (outer.items.length === 0) outer.start = start
    outer.items.push(start)
  }
  function paragraph(type: 'paragraph' | 'code' = 'paragraph'): void {
    if (outer !== undefined) {
      if (said) line += '\n'
      return
    }
    const written = line
    const taken = take()
    const text = type === 'code' ? written.replace(/^\n/, '').trimEnd() : taken
    if (text === '') return
    const [start, end] = put(text, '\n\n')
    blocks.push({ type, start, end })
  }
  return {
    item,
    paragraph,
    inline(text: string): void {
      line += text
      said ||= text.trim() !== ''
    },
    cell(): void {
      line += ' | '
      said = true
    },
    heading(depth: number): void {
      if (outer !== undefined) {
        paragraph()
        return
      }
      const text = take().replace(/\s+/g, ' ')
      if (text === '') return
      const [start, end] = put(text, '\n\n')
      blocks.push({ type: 'heading', start, end, depth, text: asHeading(text) })
    },
    open(type: 'list' | 'table'): void {
      if (outer === undefined) {
        paragraph()
        outer = { type, start: 0, items: [] }
      } else item()
      depth += 1
    },
    close(): void {
      if (outer === undefined) return
      item()
      depth -= 1
      if (depth > 0) return
      const { type, start, items } = outer
      outer = undefined
      if (items.length === 0) return
      if (type === 'list') blocks.push({ type, start, end: length, cuts: items })
      else blocks.push({ type, start, end: length, headerEnd: items[1] ?? length })
    },
    done(): { text: string; blocks: DocumentBlock[] } {
      while (outer !== undefined) this.close()
      paragraph()
      return { text: parts.join(''), blocks }
    },
  }
}

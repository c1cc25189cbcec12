import { KnowledgeError, messageOf } from '../errors.ts'
import { asHeading, type DocumentBlock, type ParsedDocument } from '../text/document.ts'
import { paragraphsOf } from './text.ts'

interface TextItem {
  readonly str: string
  readonly hasEOL: boolean
  readonly height: number
  readonly transform: readonly number[]
}

/** About twenty times the longest novel. A page of one kilobyte can expand to a gigabyte. In UTF-16 units. */
const MAX_LENGTH = 20_000_000

/** Throws a KnowledgeError: `encrypted`, `corrupt`, `too_complex`. */
export async function parsePdf(bytes: Uint8Array): Promise<ParsedDocument> {
  const { getDocumentProxy } = await import('unpdf')
  try {
    const pdf = await getDocumentProxy(bytes, { verbosity: 0 })
    try {
      let text = ''
      const pages: number[] = []
      const blocks: DocumentBlock[] = []
      for (let number = 1; number <= pdf.numPages; number++) {
        if (text !== '') text += '\n\n'
        const start = text.length
        pages.push(start)
        const page = await pdf.getPage(number)
        text += textOf(await itemsOf(page, MAX_LENGTH - text.length))
        page.cleanup()
        blocks.push(...paragraphsOf(text, start, text.length))
      }
      const { info } = (await pdf.getMetadata()) as { info?: { Title?: unknown } }
      const title = typeof info?.Title === 'string' ? asHeading(info.Title) : ''
      return { title: title || undefined, text, blocks, pages }
    } finally {
      await pdf.loadingTask.destroy()
    }
  } catch (error) {
    if (error instanceof KnowledgeError) throw error
    if ((error as Error).name === 'PasswordException')
      throw new KnowledgeError('encrypted', 'It is encrypted. Save it without a password.', { cause: error })
    throw new KnowledgeError('corrupt', `It cannot be read as PDF: ${messageOf(error)}`, { cause: error })
  }
}

/** Read page by page, so that an endless text is abandoned early. */
async function itemsOf(page: { streamTextContent(): ReadableStream }, maxLength: number): Promise<TextItem[]> {
  const items: TextItem[] = []
  let length = 0
  const reader = page.streamTextContent().getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read())
    for (const it of (part.value as { items: (TextItem | object)[] }).items) {
      if (!('str' in it)) continue
      items.push(it)
      length += it.str.length + 1
      if (length > maxLength)
        throw new KnowledgeError('too_complex', `Its text has more than ${MAX_LENGTH} characters. Split it.`)
    }
  return items
}

/** Lines as on the page; a gap of more than a line and a half starts a paragraph. */
function textOf(items: readonly TextItem[]): string {
  let text = ''
  let lineY: number | undefined
  let lineHeight = 0
  for (const { str, hasEOL, height, transform } of items) {
    const y = transform[5] ?? 0
    if (str.trim() !== '') {
      if (lineY !== undefined && text.endsWith('\n') && Math.abs(lineY - y) > 1.6 * Math.max(height, lineHeight))
        text += '\n'
      lineY = y
      lineHeight = height
    }
    text += str
    if (hasEOL) text += '\n'
  }
  return text.trim()
}

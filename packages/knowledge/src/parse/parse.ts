import { extname } from 'node:path'
import { KnowledgeError } from '../errors.ts'
import type { ParsedDocument } from '../text/document.ts'
import { decode } from './charset.ts'
import { parseRows, parseText } from './text.ts'

type Format = 'markdown' | 'text' | 'rows' | 'html' | 'pdf'

const formats: Readonly<Record<string, Format>> = {
  '.md': 'markdown',
  '.markdown': 'markdown',
  '.mdx': 'markdown',
  '.txt': 'text',
  '.text': 'text',
  '.rst': 'text',
  '.adoc': 'text',
  '.csv': 'rows',
  '.tsv': 'rows',
  '.html': 'html',
  '.htm': 'html',
  '.xhtml': 'html',
  '.pdf': 'pdf',
}

/** The supported file extensions. */
export const readableTypes: readonly string[] = Object.keys(formats)

export const isReadable = (path: string): boolean => extname(path).toLowerCase() in formats

/**
 * Parses the structure of a file. The extension of its name decides the format.
 *
 * @throws KnowledgeError `unsupported_type`, `binary`, `encoding_unknown`, `encrypted`, `corrupt`, `no_text`
 * @example await parseDocument('guide.md', await readFile('guide.md'))
 */
export async function parseDocument(path: string, bytes: Uint8Array): Promise<ParsedDocument> {
  const document = await parseFormat(path, bytes)
  if (document.blocks.length > 0) return document
  const hint = extname(path).toLowerCase() === '.pdf' ? ' If it is scanned, run text recognition over it first.' : ''
  throw new KnowledgeError('no_text', `It contains no text.${hint}`)
}

/** Parsers are loaded when the first file needs them. */
async function parseFormat(path: string, bytes: Uint8Array): Promise<ParsedDocument> {
  switch (formats[extname(path).toLowerCase()]) {
    case 'markdown':
      return (await import('./markdown.ts')).parseMarkdown(decode(bytes, { declares: false }))
    case 'text':
      return parseText(decode(bytes, { declares: false }))
    case 'rows':
      return parseRows(decode(bytes, { declares: false }))
    case 'html':
      return (await import('./html.ts')).parseHtml(decode(bytes, { declares: true }))
    case 'pdf':
      return (await import('./pdf.ts')).parsePdf(bytes)
    default:
      throw new KnowledgeError(
        'unsupported_type',
        `Unsupported type ${extname(path) || '(none)'}. Supported: ${readableTypes.join(' ')}.`,
      )
  }
}

import { extname } from 'node:path'
import { KnowledgeError } from '../errors.ts'
import type { ParsedDocument } from '../text/document.ts'
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

export const isReadable = (path: string): boolean => extname(path).toLowerCase() in formats

/**
 * Reads the structure of a file's content; its name says the format.
 * Throws a KnowledgeError: `unsupported_type`, `binary`, `encoding_unknown`, `encrypted`, `corrupt`, `no_text`.
 */
export async function parseDocument(path: string, bytes: Uint8Array): Promise<ParsedDocument> {
  const document = await parseFormat(path, bytes)
  if (document.blocks.length > 0) return document
  const hint = extname(path).toLowerCase() === '.pdf' ? ' If it is scanned, run text recognition over it first.' : ''
  throw new KnowledgeError('no_text', `There is no text in it.${hint}`)
}

/** Parsers are loaded when the first file needs them. */
async function parseFormat(path: string, bytes: Uint8Array): Promise<ParsedDocument> {
  switch (formats[extname(path).toLowerCase()]) {
    case 'markdown':
      return (await import('./markdown.ts')).parseMarkdown(decode(bytes))
    case 'text':
      return parseText(decode(bytes))
    case 'rows':
      return parseRows(decode(bytes))
    case 'html':
      return (await import('./html.ts')).parseHtml(decode(bytes))
    case 'pdf':
      return (await import('./pdf.ts')).parsePdf(bytes)
    default:
      throw new KnowledgeError('unsupported_type', `Only these are read: ${Object.keys(formats).join(' ')}`)
  }
}

function decode(bytes: Uint8Array): string {
  const [first, second] = bytes
  const wide =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : undefined
  if (wide === undefined && bytes.subarray(0, 8_192).includes(0))
    throw new KnowledgeError('binary', 'It is not a text, whatever its name says.')
  try {
    return new TextDecoder(wide ?? 'utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new KnowledgeError('encoding_unknown', 'It is neither UTF-8 nor UTF-16. Save it as UTF-8.', { cause: error })
  }
}

// Bytes → text, in any encoding.
import { KnowledgeError } from '../errors.ts'

/** Where a document may declare its encoding, in bytes from its start. */
const DECLARED_WITHIN = 4_096
const REPLACEMENT = '\uFFFD'

/**
 * Decodes a text. A byte order mark decides, then UTF-8, then the declaration in the document (HTML, XML), then the
 * byte patterns of GBK (as GB18030) or Latin-1 (as windows-1252). Anything else is refused rather than guessed.
 *
 * @param declares whether the format can name its own encoding
 * @throws KnowledgeError `binary`, `encoding_unknown`
 * @example decode(await readFile('notes.txt'), { declares: false })
 */
export function decode(bytes: Uint8Array, { declares }: { readonly declares: boolean }): string {
  const [first, second] = bytes
  const wide =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : undefined
  if (wide !== undefined) return decodedAs(wide, bytes) ?? unknown()
  if (bytes.subarray(0, 8_192).includes(0))
    throw new KnowledgeError('binary', 'It is not a text file, despite its name.')
  const text = decodedAs('utf-8', bytes)
  if (text !== undefined) return text
  const declared = declares ? declaredIn(bytes) : undefined
  if (declared !== undefined) return decodedAs(declared, bytes) ?? unknown(declared)
  const likely = likelyEncoding(bytes)
  return (likely === undefined ? undefined : decodedAs(likely, bytes)) ?? unknown()
}

function decodedAs(encoding: string, bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes)
    return text.includes(REPLACEMENT) ? undefined : text
  } catch {
    return undefined
  }
}

function unknown(declared?: string): never {
  const what =
    declared === undefined
      ? 'Its encoding is unknown: it is not UTF-8, UTF-16, GBK or Latin-1'
      : `It declares the encoding ${declared} but does not use it`
  throw new KnowledgeError('encoding_unknown', `${what}. Save it as UTF-8.`)
}

/** The encoding of `<meta charset>`, `<meta http-equiv>` or the XML declaration, if there is such an encoding. */
function declaredIn(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, DECLARED_WITHIN))
  const [, meta, xml] =
    /<meta\s[^>]*charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml\s[^>]*encoding\s*=\s*["']([\w.:-]+)/i.exec(head) ?? []
  const label = meta ?? xml
  try {
    // Every browser knows the label, or it is ignored.
    return label === undefined ? undefined : new TextDecoder(label).encoding
  } catch {
    return undefined
  }
}

/** The share of non-ASCII bytes that must be GB2312 pairs. */
const PAIRED = 0.9
/** A text in Latin script has few letters beyond ASCII. */
const MAX_FOREIGN = 0.3

/** Chinese text is pairs of bytes from A1 on; in Latin script such a byte is followed by an ASCII letter. */
function likelyEncoding(bytes: Uint8Array): 'gb18030' | 'windows-1252' | undefined {
  let high = 0
  let paired = 0
  let control = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    // A text has no control characters except white space; windows-1252 leaves five bytes undefined.
    if ((byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d)) || byte === 0x7f) control++
    if (byte < 0x80) continue
    high++
    const next = bytes[at + 1] ?? 0
    if (byte < 0xa1 || byte > 0xf7 || next < 0xa1) continue
    high++
    paired += 2
    at++
  }
  if (control > 0) return undefined
  if (paired >= high * PAIRED) return 'gb18030'
  const hasUndefined = [0x81, 0x8d, 0x8f, 0x90, 0x9d].some((it) => bytes.includes(it))
  return high <= bytes.length * MAX_FOREIGN && !hasUndefined ? 'windows-1252' : undefined
}

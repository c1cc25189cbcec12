export interface Citation {
  /** The text between the brackets: `document#passage`. */
  readonly id: string
  /** Of the brackets, in UTF-16 units of the text. */
  readonly start: number
  readonly end: number
  /** Whether it was retrieved. */
  readonly known: boolean
}

/**
 * The citations in a text, such as `[guide/setup.md#1a2b3c4d5e6f]`; several may share brackets, divided by commas or
 * semicolons. One that is not among the retrieved ids is invented or out of date: `known` is false.
 *
 * @example checkCitations('Restart it [setup.md#1a2b3c4d5e6f].', ['setup.md#1a2b3c4d5e6f'])[0].known // true
 */
export function checkCitations(text: string, retrieved: Iterable<string>): Citation[] {
  const known = new Set(retrieved)
  const citations: Citation[] = []
  for (const match of text.matchAll(/\[([^[\]\n]{3,5000})\]/g)) {
    const bounds = { start: match.index, end: match.index + match[0].length }
    const whole = match[1]!.trim()
    // A document's name may hold a comma.
    const ids = known.has(whole) ? [whole] : whole.split(/[,;，；]\s*/)
    for (const it of ids) {
      const id = it.trim()
      if (known.has(id) || looksLikeId(id)) citations.push({ id, ...bounds, known: known.has(id) })
    }
  }
  return citations
}

/** A name and a passage; without a digest only a file name counts, because brackets have other uses. */
const looksLikeId = (text: string): boolean =>
  /^[^#]+#[0-9a-f]{8,}(-\d+)?$/.test(text) || /^[^#]+\.[A-Za-z]\w*#[\w-]+$/.test(text)

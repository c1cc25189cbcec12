// `*` in patterns that come from outside. A regular expression made of them could take forever on a hostile text.

/** Whether `text` is made of these pieces in this order, with anything, or nothing, between them. In linear time. */
export function matchesPieces(pieces: readonly string[], text: string): boolean {
  const [first = '', ...rest] = pieces
  const last = rest.pop()
  if (last === undefined) return text === first
  const end = text.length - last.length
  if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  // The earliest place for each piece leaves the most room for those behind it.
  for (const piece of rest) {
    const found = text.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return at <= end
}

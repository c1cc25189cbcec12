// `*` in patterns that come from outside. A regular expression built from them could be made to run forever.

/**
 * Whether `text` matches `pattern`, in which `*` is any run of characters. In linear time.
 *
 * @example matchesWildcard('read_*', 'read_file') // true
 */
export function matchesWildcard(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return text === first
  const end = text.length - last.length
  if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
  // The earliest place for each piece leaves the most room for those behind it.
  const at = rest.reduce((from, piece) => {
    const found = from < 0 ? -1 : text.indexOf(piece, from)
    return found < 0 ? -1 : found + piece.length
  }, first.length)
  return at >= 0 && at <= end
}

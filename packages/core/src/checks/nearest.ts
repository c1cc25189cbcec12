/**
 * The known name that a mistyped one most likely meant, by edit distance of at most `most`; undefined when none is
 * close.
 */
export function nearest(
  name: string,
  known: readonly string[],
  most = Math.max(2, Math.floor(name.length / 3)),
): string | undefined {
  let best: string | undefined
  let least = most + 1
  for (const candidate of known) {
    const far = distance(name.toLowerCase(), candidate.toLowerCase())
    if (far >= least) continue
    least = far
    best = candidate
  }
  return best
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replace, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}

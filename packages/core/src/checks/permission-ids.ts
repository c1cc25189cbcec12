// Permission ids such as `biz:order:query`, and the wildcards that host systems grant.

/**
 * Whether one of the granted ids covers the needed one. `*` stands for one segment, at the end for all that follow: `*:*:*`,
 * `biz:*`, `biz:order:*`. Segments are compared whole, so `biz:order` never covers `biz:orders`.
 */
export function grants(granted: readonly string[], needed: string): boolean {
  const segments = needed.split(':')
  return granted.some((it) => covers(it.split(':'), segments))
}

function covers(granted: readonly string[], needed: readonly string[]): boolean {
  const last = granted.length - 1
  if (granted.length > needed.length) return false
  if (granted.length < needed.length && granted[last] !== '*') return false
  return granted.every((it, index) => it === '*' || it === needed[index])
}

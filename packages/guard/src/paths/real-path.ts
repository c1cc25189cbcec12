// Follows a path as the system would when it opens it, also where the end of it does not exist yet.
import { lstatSync, readlinkSync, realpathSync, type Stats } from 'node:fs'
import { type posix, win32 } from 'node:path'

/** As many links as Linux follows before it gives up. */
const LINKS = 40

export type Resolved =
  | { readonly ok: true; readonly real: string; readonly passed: readonly string[]; readonly stats: Stats | undefined }
  | {
      readonly ok: false
      readonly real: string
      readonly problem: 'loop' | 'unreadable'
      readonly passed: readonly string[]
    }

/**
 * The real path of an absolute path. Every segment that exists is looked at, a link is followed by the text of its
 * target (so a dangling link leads to where a new file would be made), and `..` goes to the parent of the folder that was
 * really reached. From the first missing segment on the rest is taken as written. `passed` lists every place that a link
 * led through.
 */
export function realPath(absolute: string, flavour: typeof posix | typeof win32): Resolved {
  const { root } = flavour.parse(absolute)
  let current = root
  let stats: Stats | undefined
  let links = 0
  const passed: string[] = []
  const left = split(absolute.slice(root.length), flavour).toReversed()

  for (;;) {
    const segment = left.pop()
    if (segment === undefined) return { ok: true, real: current, passed, stats }
    if (segment === '.') continue
    if (segment === '..') {
      current = flavour.dirname(current)
      continue
    }
    const next = flavour.join(current, segment)
    passed.push(next)
    let target: string | undefined
    try {
      stats = lstatSync(next)
      if (stats.isSymbolicLink()) target = readlinkSync(next)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      if (code !== 'ENOENT' && code !== 'ENOTDIR') return { ok: false, real: next, problem: 'unreadable', passed }
      const rest = flavour.join(next, ...left.toReversed())
      // Behind what is missing the system opens nothing; whoever makes it first, or tidies the text, meets links again.
      if (left.includes('..')) return realPath(rest, flavour)
      passed.push(rest)
      return { ok: true, real: rest, passed, stats: undefined }
    }
    if (target === undefined) {
      current = next
      continue
    }
    links += 1
    if (links > LINKS) return { ok: false, real: next, problem: 'loop', passed }
    const { root: targetRoot } = flavour.parse(target)
    if (targetRoot !== '') current = flavour.resolve(current, targetRoot)
    left.push(...split(target.slice(targetRoot.length), flavour).toReversed())
  }
}

/** The name by which the system itself knows an existing path: long names on Windows, the case as stored on a Mac. */
export function canonical(real: string): string {
  try {
    return realpathSync.native(real)
  } catch {
    return real
  }
}

const split = (text: string, flavour: typeof posix | typeof win32): string[] =>
  text.split(flavour === win32 ? /[\\/]+/ : /\/+/).filter((it) => it !== '')

// Resolves a path as the system would when opening it, even where its end does not exist yet.
import { lstatSync, readlinkSync, realpathSync, type Stats } from 'node:fs'
import { type posix, win32 } from 'node:path'

/** One name in a folder: what the system reports of it. */
type Seen = { readonly stats: Stats; readonly target?: string } | { readonly problem: 'missing' | 'unreadable' }

/** Names that one analysis has looked at already. It must not outlive the analysis: files change. */
export type SeenNames = Map<string, Seen>

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
 * target (so a dangling link leads to where a new file would be made), and `..` goes to the parent of the folder that
 * was really reached. From the first missing segment on the rest is taken as written. `passed` lists every place that a
 * link led through.
 */
export function realPath(
  absolute: string,
  flavour: typeof posix | typeof win32,
  seen: SeenNames = new Map(),
): Resolved {
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
    const found = look(next, seen)
    if ('problem' in found) {
      if (found.problem === 'unreadable') return { ok: false, real: next, problem: 'unreadable', passed }
      const rest = flavour.join(next, ...left.toReversed())
      // The system opens nothing below a missing name. A program that creates it, or tidies the text, meets links
      // again.
      if (left.includes('..')) return realPath(rest, flavour, seen)
      passed.push(rest)
      return { ok: true, real: rest, passed, stats: undefined }
    }
    stats = found.stats
    const { target } = found
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

function look(path: string, seen: SeenNames): Seen {
  const before = seen.get(path)
  if (before !== undefined) return before
  const found = lookUp(path)
  seen.set(path, found)
  return found
}

function lookUp(path: string): Seen {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return { problem: 'missing' }
    return stats.isSymbolicLink() ? { stats, target: readlinkSync(path) } : { stats }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    return { problem: code === 'ENOENT' || code === 'ENOTDIR' ? 'missing' : 'unreadable' }
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

// The files that a command reads when it searches whole folders.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { checkPathAgain, type PathOptions } from '../paths/check-path.ts'
import { dangerOf } from '../paths/danger.ts'
import type { Look } from '../walk/analyse.ts'

/** Which files of a folder a search reads. */
export interface Reach {
  /** It follows links. */
  readonly links: boolean
  /** It reads files and folders whose name begins with a dot. */
  readonly hidden: boolean
  /** It reads what `.gitignore` excludes. */
  readonly ignored: boolean
  /** Only files with one of these endings, such as `.ts`. */
  readonly endings?: readonly string[]
  /** Names of folders that it leaves out. */
  readonly without: ReadonlySet<string>
}

/**
 * Why a command should not read everything in the folder: it reaches a file that holds secrets, or a link that leads
 * out.
 *
 * @throws TooMuch for a tree that is too large to look through
 */
export function problemInTree(folder: string, reach: Reach, options: PathOptions, look: Look): string | undefined {
  const { real, root } = checkPathAgain(folder, options, look.seen)
  const base = root === undefined ? real : checkPathAgain(root, options, look.seen).real
  const left = [{ folder: real, skipped: reach.ignored ? new Set<string>() : excluded(base) }]
  for (;;) {
    const next = left.pop()
    if (next === undefined) return undefined
    look.budget.spend('folders')
    const entries = list(next.folder)
    look.budget.spend('entries', entries.length)
    // Files of this kind can bring back what another one excludes.
    const changed = entries.some(
      (it) => /^\.(ignore|rgignore)$/.test(it.name) || (it.name === '.gitignore' && next.folder !== base),
    )
    const skipped = changed ? new Set<string>() : next.skipped
    for (const entry of entries) {
      const path = join(next.folder, entry.name)
      if (entry.name.startsWith('.') && !reach.hidden) continue
      if (entry.isDirectory()) {
        if (!reach.without.has(entry.name) && !skipped.has(entry.name)) left.push({ folder: path, skipped })
        continue
      }
      if (entry.isSymbolicLink()) {
        const found = reach.links ? checkPathAgain(path, options, look.seen) : undefined
        if (found !== undefined && !found.inside) return `The link ${path} leads out of the folders that may be used.`
        if (found?.dangerous !== undefined) return `It would read ${path}: ${found.dangerous.why}`
        continue
      }
      if (!entry.isFile() || reach.endings?.every((it) => !entry.name.endsWith(it))) continue
      const dangerous = dangerOf(relative(base, path).split(sep), 'read')
      if (dangerous !== undefined) return `It would read ${path}: ${dangerous.why}`
    }
  }
}

/**
 * Folders that the `.gitignore` at the top of a repository excludes by their plain name, if nothing brings them back.
 */
function excluded(top: string): ReadonlySet<string> {
  try {
    if (!existsSync(join(top, '.git'))) return new Set()
    const lines = readFileSync(join(top, '.gitignore'), 'utf8').split(/\r?\n/)
    if (lines.some((it) => it.startsWith('!'))) return new Set()
    return new Set(lines.flatMap((it) => /^([\w.-]+)\/?\s*$/.exec(it)?.[1] ?? []))
  } catch {
    return new Set()
  }
}

const list = (folder: string) => {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

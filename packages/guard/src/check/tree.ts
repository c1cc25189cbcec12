// A look at what a command would meet that reads a whole folder.
import { readdirSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { checkPath, type PathOptions } from '../paths/check-path.ts'
import { dangerOf } from '../paths/danger.ts'

/** So many entries are looked at; a question costs less than reading a large tree before each search. */
const MOST = 2_000

/**
 * Why a command should not read everything in the folder: it holds secrets, or (if the command follows links) a link that
 * leads out. Past the limit a tree counts as clean of secrets but not of links.
 */
export function problemInTree(folder: string, options: PathOptions, follows: boolean): string | undefined {
  const left = [folder]
  let seen = 0
  for (;;) {
    const next = left.pop()
    if (next === undefined) return undefined
    for (const entry of list(next)) {
      const path = join(next, entry.name)
      seen += 1
      if (seen > MOST) return follows ? `${folder} has too many files to see where its links lead.` : undefined
      if (entry.isSymbolicLink()) {
        if (follows && !checkPath(path, options).inside)
          return `The link ${path} leads out of the folders that may be used.`
      } else if (entry.isDirectory()) left.push(path)
      else if (entry.isFile()) {
        const dangerous = dangerOf(relative(folder, path).split(sep), 'read')
        if (dangerous !== undefined) return `It would read ${path}: ${dangerous.why}`
      }
    }
  }
}

const list = (folder: string) => {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

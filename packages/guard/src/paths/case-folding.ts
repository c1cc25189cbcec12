// Whether a volume takes `Readme` and `README` for one file.
import { lstatSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const known = new Map<string, boolean>()

const swapCase = (text: string): string => (text === text.toLowerCase() ? text.toUpperCase() : text.toLowerCase())

const sameFile = (one: string, other: string): boolean | undefined => {
  try {
    const first = lstatSync(one)
    try {
      const second = lstatSync(other)
      return first.ino === second.ino && first.dev === second.dev
    } catch {
      return false
    }
  } catch {
    return undefined
  }
}

/**
 * Asks the file system by looking for the folder, or for something in it, under a name with the other case. Nothing is
 * written. A folder that does not exist, or offers no name with a letter, counts as case-sensitive: then two spellings
 * are two files, and the second is outside.
 */
export function foldsCase(folder: string): boolean {
  const before = known.get(folder)
  if (before !== undefined) return before
  const answer = probe(folder)
  if (answer !== undefined) known.set(folder, answer)
  return answer ?? false
}

function probe(folder: string): boolean | undefined {
  try {
    // The folder's content is a better test than its own name, which is in the parent, perhaps on another volume.
    const name = readdirSync(folder).find((it) => swapCase(it) !== it)
    if (name !== undefined) return sameFile(join(folder, name), join(folder, swapCase(name)))
  } catch {
    return undefined
  }
  const own = basename(folder)
  return swapCase(own) === own ? undefined : sameFile(folder, join(dirname(folder), swapCase(own)))
}

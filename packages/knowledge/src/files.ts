// Which files belong to what was added.
import { readdir, stat } from 'node:fs/promises'
import { basename, join, relative, resolve, sep } from 'node:path'
import { KnowledgeError, type KnowledgeErrorCode, messageOf } from './errors.ts'
import { isReadable } from './parse/parse.ts'

export interface FoundFile {
  readonly root: string
  readonly path: string
  /** The path below the root, with `/`; the file's own name when the file is the root. */
  readonly name: string
}

export interface FileProblem {
  readonly root: string
  readonly path: string
  readonly code: KnowledgeErrorCode
  readonly message: string
}

/** Files and folders that are never looked at, and what lies below them. */
export const isHidden = (name: string): boolean => name.startsWith('.') || name === 'node_modules'

/** The readable files below a root, sorted; links are not followed, so that nothing outside comes in and no ring is walked. */
export async function filesOf(root: string): Promise<{ files: FoundFile[]; problems: FileProblem[] }> {
  const problems: FileProblem[] = []
  const files: FoundFile[] = []
  const place = await stat(root).catch(() => undefined)
  if (place === undefined) return { files, problems }
  if (place.isFile()) return { files: [{ root, path: root, name: basename(root) }], problems }
  const open = [root]
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    try {
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name)
        if (isHidden(entry.name)) continue
        if (entry.isDirectory()) open.push(path)
        else if (entry.isFile() && isReadable(path))
          files.push({ root, path, name: relative(root, path).split(sep).join('/') })
      }
    } catch (error) {
      problems.push({ root, path: folder, code: 'unreadable', message: messageOf(error) })
    }
  }
  return { files: files.sort((a, b) => (a.name < b.name ? -1 : 1)), problems }
}

/** Throws a KnowledgeError `not_found` unless there is a file or a folder. */
export async function mustExist(path: string): Promise<void> {
  await stat(path).catch((cause: unknown) => {
    throw new KnowledgeError('not_found', `There is no file or folder ${path}.`, { cause })
  })
}

/**
 * Looks at the names of all documents below these files and folders, without reading them. Throws a KnowledgeError:
 * `not_found`, or `duplicate_document` when two have one name, so that a citation would not mean one of them.
 */
export async function uniqueNames(paths: readonly string[]): Promise<string[]> {
  const found = new Map<string, string>()
  for (const root of new Set(paths.map((it) => resolve(it)))) {
    await mustExist(root)
    for (const { name, path } of (await filesOf(root)).files) {
      const other = found.get(name) ?? path
      if (other !== path)
        throw new KnowledgeError(
          'duplicate_document',
          `Two documents are called ${name}: ${other} and ${path}. Rename one, so that a citation means one of them.`,
        )
      found.set(name, path)
    }
  }
  return [...found.keys()]
}

// Which files belong to what was added.
import { readdir, stat } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
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

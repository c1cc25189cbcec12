// The files that belong to the added paths.
import { constants } from 'node:fs'
import { lstat, open, readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, extname, join, relative, resolve, sep } from 'node:path'
import { KnowledgeError, type KnowledgeErrorCode, messageOf } from '../errors.ts'
import { isReadable, readableTypes } from '../parse/parse.ts'

export interface FoundFile {
  readonly root: string
  readonly path: string
  /** Without links: the root may be a link, or be below one. */
  readonly realPath: string
  /** The path below the root, with `/`; the file's own name when the file is the root. What would end a citation is encoded. */
  readonly name: string
}

export interface FileProblem {
  readonly root: string
  readonly path: string
  readonly code: KnowledgeErrorCode
  readonly message: string
}

/** A file in an added folder that is not a document. */
export interface SkippedFile {
  readonly path: string
  readonly reason: string
}

/** Files and folders that are ignored, with all that is below them. */
export const isHidden = (name: string): boolean => name.startsWith('.') || name === 'node_modules'

export interface Found {
  readonly files: readonly FoundFile[]
  readonly problems: readonly FileProblem[]
  readonly skipped: readonly SkippedFile[]
}

/**
 * The documents below a root, sorted. Links are not followed, so nothing outside is included and no cycle is walked.
 *
 * @example const { files, skipped } = await filesOf('/srv/docs')
 */
export async function filesOf(root: string): Promise<Found> {
  const problems: FileProblem[] = []
  const skipped: SkippedFile[] = []
  const files: FoundFile[] = []
  const place = await stat(root).catch(() => undefined)
  if (place === undefined) return { files, problems, skipped }
  const realRoot = await realpath(root)
  if (place.isFile())
    return { files: [{ root, path: root, realPath: realRoot, name: citable(basename(root)) }], problems, skipped }
  const found = (path: string): FoundFile => {
    const below = relative(root, path)
    return { root, path, realPath: join(realRoot, below), name: citable(below.split(sep).join('/')) }
  }
  const folders = [root]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    try {
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name)
        if (isHidden(entry.name)) continue
        if (entry.isDirectory()) folders.push(path)
        else if (!entry.isFile()) skipped.push({ path, reason: entry.isSymbolicLink() ? 'is a link' : 'is not a file' })
        else if (isReadable(path)) files.push(found(path))
        else skipped.push({ path, reason: unsupported(path) })
      }
    } catch (error) {
      problems.push({ root, path: folder, code: 'unreadable', message: messageOf(error) })
    }
  }
  return {
    files: files.sort((a, b) => (a.name < b.name ? -1 : 1)),
    problems,
    skipped: skipped.sort((a, b) => (a.path < b.path ? -1 : 1)),
  }
}

const unsupported = (path: string): string =>
  `type ${extname(path) || '(none)'} is not supported; supported: ${readableTypes.join(' ')}`

/** Names are part of citations, which are one line between brackets. */
const citable = (name: string): string => name.replace(/[[\]\p{Cc}\p{Zl}\p{Zp}]/gu, encodeURIComponent)

export interface ReadFile {
  readonly bytes: Uint8Array
  readonly modifiedMs: number
}

/**
 * The content of a found file. It may have changed since: it is not read if it is no longer a file, or is elsewhere
 * because it or a parent folder became a link. Throws a KnowledgeError: `unreadable`, `too_large`.
 */
export async function readFound({ realPath }: FoundFile, maxBytes: number): Promise<ReadFile> {
  // Without waiting: a pipe has no content until something is written to it.
  const handle = await open(realPath, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    unreadable,
  )
  try {
    const [opened, named, place] = await Promise.all([handle.stat(), lstat(realPath), realpath(realPath)])
    if (!opened.isFile() || place !== realPath || opened.ino !== named.ino || opened.dev !== named.dev)
      throw new KnowledgeError('unreadable', 'It was replaced while it was being indexed.')
    if (opened.size > maxBytes) throw tooLarge(opened.size, maxBytes)
    const parts: Buffer[] = []
    let size = 0
    // One byte above the limit, because the file may still grow.
    for await (const part of handle.createReadStream({ end: maxBytes, highWaterMark: 1024 * 1024, autoClose: false })) {
      parts.push(part as Buffer)
      size += (part as Buffer).length
    }
    if (size > maxBytes) throw tooLarge(size, maxBytes)
    return { bytes: new Uint8Array(Buffer.concat(parts)), modifiedMs: opened.mtimeMs }
  } catch (error) {
    return unreadable(error)
  } finally {
    await handle.close()
  }
}

export const tooLarge = (bytes: number, maxBytes: number): KnowledgeError =>
  new KnowledgeError('too_large', `It has ${bytes} bytes; at most ${maxBytes} are read. Split it.`)

export function unreadable(cause: unknown): never {
  if (cause instanceof KnowledgeError) throw cause
  throw new KnowledgeError('unreadable', `It cannot be read: ${messageOf(cause)}`, { cause })
}

/** Throws a KnowledgeError `not_found` unless there is a file or a folder. */
export async function mustExist(path: string): Promise<void> {
  await stat(path).catch((cause: unknown) => {
    throw new KnowledgeError('not_found', `No such file or folder: ${path}.`, { cause })
  })
}

/** The path is deleted but its folder exists: an unmounted disk lacks both. */
export const isGoneWithin = async (path: string): Promise<boolean> =>
  !(await exists(path)) && (await exists(dirname(path)))

/** Only a confirmed deletion counts, not a folder that cannot be read. */
export const isGone = (error: NodeJS.ErrnoException): boolean => error.code === 'ENOENT' || error.code === 'ENOTDIR'

export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error) => !isGone(error),
  )

/**
 * Checks the names of all documents below these files and folders without reading them. Throws a KnowledgeError:
 * `not_found`, or `duplicate_document` when two have one name, so that a citation would be ambiguous.
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
          `Two documents are named ${name}: ${other} and ${path}. Rename one, so that citations are unambiguous.`,
        )
      found.set(name, path)
    }
  }
  return [...found.keys()]
}

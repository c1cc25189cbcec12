// Whether a path lies inside the folders that an agent may use.
import { homedir } from 'node:os'
import { posix, win32 } from 'node:path'
import { foldsCase } from './case-folding.ts'
import { type Danger, dangerOf } from './danger.ts'
import { canonical, realPath, type SeenNames } from './real-path.ts'
import { normaliseWindows } from './windows.ts'

export interface PathOptions {
  /** Absolute; a relative path starts here. */
  readonly cwd: string
  /** Absolute folders that may be read and written. */
  readonly roots: readonly string[]
  /** Absolute folders that may be read only. */
  readonly readOnlyRoots?: readonly string[]
  /** The intended access. Default `'write'`, the stricter one. */
  readonly access?: 'read' | 'write'
  /** The folder that `~` expands to. Default: the home folder of this process. */
  readonly home?: string
  /** Whether the volumes fold case. Default: asked of each root's volume. */
  readonly caseInsensitive?: boolean
  /** Default: the platform of this process. */
  readonly platform?: 'posix' | 'win32'
}

export type PathReason =
  | 'inside'
  | 'outside'
  | 'read-only'
  | 'malformed'
  | 'other home'
  | 'loop'
  | 'unreadable'
  | 'device'
  | 'unknown form'

export interface PathCheck {
  /** Inside a root that permits the access. A dangerous file may be inside all the same. */
  readonly inside: boolean
  /** The path that the system would open; a tool must open this one and not what was written. */
  readonly real: string
  /** The root that contains it, as given. */
  readonly root?: string
  readonly reason: PathReason
  /** A sentence for the person and the model. */
  readonly message: string
  /** Set for a file that needs a question even inside a root. */
  readonly dangerous?: Danger
}

/**
 * Resolves where a path really leads. A path is inside if it lies in a root both as the system resolves it (links
 * first, then `..`) and as a program that tidies the text first would (`a/link/..` is `a`). Roots and paths are
 * compared by segments.
 *
 * What this cannot see, and only a sandbox can: a hard link to a file outside, a bind mount, and whatever changes
 * between this check and the use. Use `real`, open without following links where the platform can, and run commands in
 * a sandbox.
 *
 * @example checkPath('../x', { cwd: '/repo/a', roots: ['/repo/a'] }).inside // false
 */
export function checkPath(path: string, options: PathOptions): PathCheck {
  return checkPathAgain(path, options, new Map())
}

/** `checkPath` for several paths of one analysis, which share what they have seen. */
export function checkPathAgain(path: string, options: PathOptions, seen: SeenNames): PathCheck {
  const access = options.access ?? 'write'
  const platform = options.platform ?? (process.platform === 'win32' ? 'win32' : 'posix')
  const flavour = platform === 'win32' ? win32 : posix
  const refuse = (reason: PathReason, message: string, real = path): PathCheck => ({
    inside: false,
    real,
    reason,
    message,
  })

  const malformed = problemOfText(path)
  if (malformed !== undefined) return refuse('malformed', malformed)

  let text = path
  if (/^~($|[/\\])/.test(text)) text = (options.home ?? homedir()) + text.slice(1)
  else if (text.startsWith('~')) return refuse('other home', `${path} is the home folder of another user.`)

  if (platform === 'win32') {
    const normal = normaliseWindows(text, options.cwd)
    if ('problem' in normal) return refuse('unknown form', `${normal.problem} Write it as C:\\folder\\file.`)
    text = normal.path
  } else if (WINDOWS.test(text)) {
    // POSIX leaves two leading slashes to the system, and a backslash is a letter of a name here and a separator
    // elsewhere.
    return refuse('unknown form', `${path} is written like a network path or a path of Windows.`)
  }

  const written = flavour.isAbsolute(text) ? text : `${options.cwd}${flavour.sep}${text}`
  const tidied = flavour.resolve(written)
  const physical = realPath(written, flavour, seen)
  const logical = tidied === written ? physical : realPath(tidied, flavour, seen)
  const real = physical.ok ? (platform === 'win32' ? canonical(physical.real) : physical.real) : physical.real
  for (const it of [physical, logical]) {
    if (it.ok) continue
    return it.problem === 'loop'
      ? refuse('loop', `${path} goes through a loop of symbolic links.`, it.real)
      : refuse('unreadable', `${path} cannot be resolved: access to a folder on the way is denied.`, it.real)
  }

  const held = holder(real, access, options, flavour, seen)
  const alsoHeld = physical.real === logical.real ? held : holder(logical.real, access, options, flavour, seen)
  if (
    flavour === posix &&
    [...physical.passed, ...logical.passed].some((it) => isSystemTree(it) && !isOnTheWay(it, options))
  )
    return refuse('device', `${path} goes through a folder in which the system shows devices and processes.`, real)

  const danger = [...new Set([real, logical.real, tidied])]
    .map((it) => dangerOf(segmentsOf(it, flavour), access, depthOfRoot(it, held.root, flavour, seen)))
    .find((it) => it !== undefined)
  const dangerous: { dangerous?: Danger } = danger === undefined ? {} : { dangerous: danger }
  const outside = [held, alsoHeld].find((it) => it.reason !== 'inside')
  if (outside !== undefined) {
    const message =
      outside.reason === 'read-only' ? `${real} is in a read-only folder.` : `${real} is outside the allowed folders.`
    return {
      inside: false,
      real,
      ...(outside.root === undefined ? {} : { root: outside.root }),
      reason: outside.reason,
      message,
      ...dangerous,
    }
  }
  const special = physical.ok && physical.stats !== undefined && physical.real === real && isSpecial(physical.stats)
  return {
    inside: true,
    real,
    root: held.root!,
    reason: 'inside',
    message: `${real} is inside ${held.root}.`,
    ...(special
      ? { dangerous: { kind: 'device', why: 'It is a device, a pipe or a socket and not a file.' } }
      : dangerous),
  }
}

/** A drive, a network path, a device path, a leading backslash, or a backslash that would go up. */
const WINDOWS = /^[a-z]:[\\/]|^\/\/[^/]|^\\|(^|[\\/])\.\.\\|\\\.\.([\\/]|$)/i

function problemOfText(path: string): string | undefined {
  if (path === '') return 'The path is empty.'
  if (path.includes('\0')) return 'The path has a NUL character, where some programs end it.'
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(path)) return 'The path has control or invisible characters.'
  if (!path.isWellFormed()) return 'The path is not well-formed Unicode.'
  return undefined
}

interface Held {
  readonly reason: 'inside' | 'outside' | 'read-only'
  readonly root?: string
}

function holder(real: string, access: 'read' | 'write', options: PathOptions, flavour: Flavour, seen: SeenNames): Held {
  const within = (root: string): boolean => {
    const resolved = realPath(flavour.resolve(root), flavour, seen)
    if (!resolved.ok) return false
    const realRoot = flavour === win32 ? canonical(resolved.real) : resolved.real
    return contains(realRoot, real, options.caseInsensitive ?? (flavour === win32 || foldsCase(realRoot)), flavour)
  }
  const root = options.roots.find(within)
  if (root !== undefined) return { reason: 'inside', root }
  const readOnly = options.readOnlyRoots?.find(within)
  if (readOnly === undefined) return { reason: 'outside' }
  return { reason: access === 'read' ? 'inside' : 'read-only', root: readOnly }
}

/** By segments: `/work-old` is not in `/work`, and another drive is outside although `relative` answers with a path. */
function contains(root: string, path: string, folds: boolean, flavour: Flavour): boolean {
  const fold = (it: string): string => (folds ? it.normalize('NFC').toLowerCase() : it)
  const relative = flavour.relative(fold(root), fold(path))
  if (flavour.isAbsolute(relative)) return false
  return relative.split(flavour.sep)[0] !== '..'
}

const isSystemTree = (path: string): boolean => /^\/(proc|dev|sys)(\/|$)/.test(path)

/** Whether a place in /dev, /proc or /sys is inside a root, or above one (as /dev is above /dev/shm/work). */
const isOnTheWay = (path: string, options: PathOptions): boolean =>
  [...options.roots, ...(options.readOnlyRoots ?? [])].some((it) => {
    const root = posix.resolve(it)
    return contains(root, path, false, posix) || contains(path, root, false, posix)
  })

const isSpecial = (stats: { isFile(): boolean; isDirectory(): boolean }): boolean =>
  !stats.isFile() && !stats.isDirectory()

type Flavour = typeof posix | typeof win32

const segmentsOf = (path: string, flavour: Flavour): string[] =>
  path.slice(flavour.parse(path).root.length).split(flavour.sep).filter(Boolean)

/** How many segments of the path belong to the root itself, by its name as given or by its real one. */
function depthOfRoot(path: string, root: string | undefined, flavour: Flavour, seen: SeenNames): number {
  if (root === undefined) return 0
  const given = flavour.resolve(root)
  const resolved = realPath(given, flavour, seen)
  const names = [given, ...(resolved.ok ? [resolved.real] : [])].filter((it) =>
    contains(it, path, flavour === win32, flavour),
  )
  return Math.max(0, ...names.map((it) => segmentsOf(it, flavour).length))
}

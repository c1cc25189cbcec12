// Path-name expansion against the real folder, so that what a pattern will name can be checked name by name.
import { lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** More names than this are not followed. */
const MOST = 1_000
/** More folders than this are not read. */
const MOST_FOLDERS = 200

/** A character of a pattern; only an unquoted one can be a wildcard. */
export interface PatternCharacter {
  readonly char: string
  readonly quoted: boolean
}

const isWild = ({ char, quoted }: PatternCharacter): boolean =>
  !quoted && (char === '*' || char === '?' || char === '[')

export const hasWildcard = (pattern: readonly PatternCharacter[]): boolean => pattern.some(isWild)

/**
 * The names that the pattern matches in `cwd`, as the shell would write them. `undefined` if there are too many, if shells
 * read the pattern differently, if a folder cannot be read, or if `may` refuses to have it read.
 */
export function expandGlob(
  pattern: readonly PatternCharacter[],
  cwd: string,
  may: (folder: string) => boolean,
): readonly string[] | undefined {
  const segments: PatternCharacter[][] = [[]]
  for (const it of pattern) {
    if (it.char === '/') segments.push([])
    else segments.at(-1)!.push(it)
  }
  let folders = 0
  let found = ['']
  for (const [index, segment] of segments.entries()) {
    const last = index === segments.length - 1
    const text = segment.map((it) => it.char).join('')
    if (!segment.some(isWild)) {
      const whole = found.map((it) => it + text + (last ? '' : '/'))
      // Behind a wildcard a name must exist to match; in front of it, reading the folder will tell.
      const wildBefore = segments.slice(0, index).some((it) => it.some(isWild))
      found = wildBefore
        ? whole.filter((it) => (last ? exists(absolute(it, cwd)) : isFolder(absolute(it, cwd))))
        : whole
      continue
    }
    // Many stars make matching slow, and nobody types them.
    if (segment.filter((it) => isWild(it) && it.char === '*').length > 4) return undefined
    const regex = segmentPattern(segment)
    if (regex === undefined) return undefined
    const next: string[] = []
    for (const base of found) {
      folders += 1
      const folder = absolute(base, cwd)
      if (folders > MOST_FOLDERS || !may(folder)) return undefined
      const names = read(folder)
      if (names === undefined) return undefined
      for (const name of names) {
        if (!regex.test(name) || (name.startsWith('.') && text[0] !== '.')) continue
        if (!last && !isFolder(join(folder, name))) continue
        next.push(base + name + (last ? '' : '/'))
      }
      if (next.length > MOST) return undefined
    }
    found = next
  }
  return found
}

/** The pattern of one segment; `undefined` for a bracket whose meaning depends on the locale or the shell. */
function segmentPattern(segment: readonly PatternCharacter[]): RegExp | undefined {
  let source = ''
  for (let index = 0; index < segment.length; index += 1) {
    const it = segment[index]!
    if (!isWild(it)) source += it.char.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
    else if (it.char === '*') source += '.*'
    else if (it.char === '?') source += '.'
    else {
      const rest = segment.slice(index).map((later) => (later.quoted ? '\\' : later.char))
      const bracket = /^\[(!?)((?:\d-\d|[\w.])+)\]/.exec(rest.join(''))
      if (bracket === null) {
        if (rest.slice(1).some((char) => char === ']' || char === '\\')) return undefined
        source += '\\['
        continue
      }
      source += `[${bracket[1] === '!' ? '^' : ''}${bracket[2]}]`
      index += bracket[0].length - 1
    }
  }
  return new RegExp(`^${source}$`, 'su')
}

const read = (folder: string): readonly string[] | undefined => {
  try {
    return [...readdirSync(folder), '.', '..']
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    return code === 'ENOENT' || code === 'ENOTDIR' ? [] : undefined
  }
}

const absolute = (path: string, cwd: string): string => (path.startsWith('/') ? path : join(cwd, path))

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

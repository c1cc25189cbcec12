// Path-name expansion against the real folder, so that what a pattern will name can be checked name by name.
import { lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkBudget } from '../budget.ts'

/** More names than this are not followed. */
const MOST = 1_000

/** A character of a pattern; only an unquoted one can be a wildcard. */
export interface PatternCharacter {
  readonly char: string
  readonly quoted: boolean
}

const isWild = ({ char, quoted }: PatternCharacter): boolean =>
  !quoted && (char === '*' || char === '?' || char === '[')

export const hasWildcard = (pattern: readonly PatternCharacter[]): boolean => pattern.some(isWild)

/**
 * The names that the pattern matches in `cwd`, as the shell would write them. `undefined` if there are too many, if
 * shells read the pattern differently, if a folder cannot be read, or if `may` refuses to have it read.
 *
 * @throws TooMuch
 */
export function expandGlob(
  pattern: readonly PatternCharacter[],
  cwd: string,
  may: (folder: string) => boolean,
  budget: WorkBudget,
): readonly string[] | undefined {
  const segments: PatternCharacter[][] = [[]]
  for (const it of pattern) {
    if (it.char === '/') segments.push([])
    else segments.at(-1)!.push(it)
  }
  let found = ['']
  for (const [index, segment] of segments.entries()) {
    const last = index === segments.length - 1
    const text = segment.map((it) => it.char).join('')
    if (!segment.some(isWild)) {
      const whole = found.map((it) => it + text + (last ? '' : '/'))
      // Behind a wildcard a name must exist to match; in front of it, reading the folder decides.
      const wildBefore = segments.slice(0, index).some((it) => it.some(isWild))
      found = wildBefore
        ? whole.filter((it) => (last ? exists(absolute(it, cwd)) : isFolder(absolute(it, cwd))))
        : whole
      continue
    }
    const pattern = segmentPattern(segment, budget)
    if (pattern === undefined) return undefined
    const next: string[] = []
    for (const base of found) {
      budget.spend('folders')
      const folder = absolute(base, cwd)
      if (!may(folder)) return undefined
      const names = read(folder)
      if (names === undefined) return undefined
      budget.spend('entries', names.length)
      budget.spend('steps', names.length * pattern.length)
      for (const name of names) {
        if (!matches(pattern, [...name]) || (name.startsWith('.') && text[0] !== '.')) continue
        if (!last && !isFolder(join(folder, name))) continue
        next.push(base + name + (last ? '' : '/'))
      }
      if (next.length > MOST) return undefined
    }
    found = next
  }
  return found
}

/** Any run of characters, or what one character has to be. */
type Part = '*' | ((char: string) => boolean)

/** The pattern of one segment; `undefined` for a bracket whose meaning depends on the locale or the shell. */
function segmentPattern(segment: readonly PatternCharacter[], budget: WorkBudget): readonly Part[] | undefined {
  const parts: Part[] = []
  for (let index = 0; index < segment.length; index += 1) {
    const it = segment[index]!
    if (!isWild(it)) parts.push((char) => char === it.char)
    else if (it.char === '*') parts.push('*')
    else if (it.char === '?') parts.push(() => true)
    else {
      budget.spend('steps', segment.length - index)
      const rest = segment.slice(index).map((later) => (later.quoted ? '\\' : later.char))
      const [whole, not, set] = /^\[(!?)((?:\d-\d|[\w.])+)\]/.exec(rest.join('')) ?? []
      if (whole === undefined) {
        if (rest.slice(1).some((char) => char === ']' || char === '\\')) return undefined
        parts.push((char) => char === '[')
        continue
      }
      const among = members(set!)
      if (among === undefined) return undefined
      parts.push((char) => among.has(char) === (not === ''))
      index += whole.length - 1
    }
  }
  return parts
}

/** The characters of a bracket, in which only digits have ranges; `undefined` for a range that runs backwards. */
function members(set: string): ReadonlySet<string> | undefined {
  const found = new Set<string>()
  for (const [it, from, to] of set.matchAll(/(\d)-(\d)|./g)) {
    if (from === undefined || to === undefined) found.add(it)
    else if (from > to) return undefined
    else for (let digit = Number(from); digit <= Number(to); digit += 1) found.add(String(digit))
  }
  return found
}

/** With one step back, to the last star: an earlier one could do no better. */
function matches(parts: readonly Part[], chars: readonly string[]): boolean {
  let [part, char] = [0, 0]
  let star: { part: number; char: number } | undefined
  while (char < chars.length) {
    const it = parts[part]
    if (it === '*') {
      part += 1
      star = { part, char }
    } else if (it?.(chars[char]!)) {
      part += 1
      char += 1
    } else {
      if (star === undefined) return false
      star.char += 1
      part = star.part
      char = star.char
    }
  }
  return parts.slice(part).every((it) => it === '*')
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

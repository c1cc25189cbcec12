// From a word as written to the arguments that the program will get, as far as that can be known before it runs.
import type { DoubleQuotedChild, Word, WordPart } from 'unbash'
import { expandBraces } from './braces.ts'
import { expansionUnits } from './expansions.ts'
import { expandGlob, hasWildcard } from './glob.ts'
import type { Argument } from './types.ts'
import type { Unit, WordContext } from './units.ts'

export const literal = (value: string, text = value): Argument => ({ text, value, prefix: value, splits: false })
export const dynamic = (text: string, prefix = '', splits = false): Argument => ({ text, prefix, splits })

/** The arguments that one word becomes. */
export function expandWord(word: Word, context: WordContext): readonly Argument[] {
  const units = unitsOfWord(word, context)
  const words = expandBraces(units, context.scope.budget)
  if (words === undefined) {
    context.unknown({ kind: 'braces', text: word.text, why: 'Shells read these braces differently.' })
    return [dynamic(word.text, '', true)]
  }
  context.scope.budget.spend('characters', words.length === 1 ? 0 : words.reduce((sum, it) => sum + it.length, 0))
  return words.flatMap((it) => {
    // An empty alternative is not a word, unless there are quotes in it.
    if (it.length === 0 && words.length > 1) return /['"]/.test(word.text) ? [dynamic(word.text, '', true)] : []
    return argumentsOf(expandTilde(it, context), word.text, context)
  })
}

/** The value of an assignment: neither braces, patterns nor blanks make several words of it. */
export function expandValue(word: Word, context: WordContext): Argument {
  const units = unitsOfWord(word, context)
  if (units.some((it) => it.type === 'hole')) return dynamic(word.text, prefixOf(units))
  // Assignments expand a tilde after each colon too.
  if (units.some((it) => it.type === 'char' && !it.quoted && it.char === '~')) return dynamic(word.text)
  return literal(prefixOf(units), word.text)
}

/** Reads the expansions of a word whose characters have another meaning than in an argument: patterns, bodies. */
export function visitParts(parts: readonly WordPart[] | undefined, context: WordContext): void {
  for (const part of parts ?? []) partUnits(part, context)
}

function unitsOfWord(word: Word, context: WordContext): readonly Unit[] {
  context.scope.budget.spend('characters', word.text.length)
  const { parts } = word
  if (parts === undefined) return unquoted(word.text, context)
  if (parts.map((it) => it.text).join('') !== word.text)
    context.unknown({ kind: 'word', text: word.text, why: 'The word was not understood to its end.' })
  return parts.flatMap((it) => partUnits(it, context))
}

function partUnits(part: WordPart, context: WordContext): readonly Unit[] {
  switch (part.type) {
    case 'Literal':
      return unquoted(part.text, context)
    case 'SingleQuoted':
      return quoted(part.value)
    case 'AnsiCQuoted':
      context.bashOnly(part.text)
      // Bytes and code points above ASCII depend on the locale, and a NUL ends the word in some shells.
      if (/\\[^abefnrtv\\'"?]/.test(part.text) && !/^[\t\n\x20-\x7e]*$/.test(part.value)) {
        context.unknown({
          kind: 'ansi-c quote',
          text: part.text,
          why: 'The escapes make characters that cannot be shown.',
        })
        return [{ type: 'hole', splits: true }]
      }
      return quoted(part.value)
    case 'DoubleQuoted':
      return part.parts.flatMap((it) => childUnits(it, context))
    case 'LocaleString':
      context.unknown({ kind: 'locale quote', text: part.text, why: 'A $"…" text is translated by the locale.' })
      for (const it of part.parts) childUnits(it, context)
      return [{ type: 'hole', splits: false }]
    case 'Glob':
      if (part.kind === 'bracket') {
        visitParts(part.parts, context)
        if (/["'`$\\]/.test(part.text)) {
          context.unknown({
            kind: 'pattern',
            text: part.text,
            why: 'The pattern has quotes or variables in its brackets.',
          })
          return [{ type: 'hole', splits: true }]
        }
      }
      return unquoted(part.text, context)
    case 'ExtendedGlob':
      visitParts(part.parts, context)
      context.unknown({
        kind: 'pattern',
        text: part.text,
        why: 'Whether this is a pattern depends on an option of the shell.',
      })
      return [{ type: 'hole', splits: true }]
    case 'BraceExpansion': {
      context.bashOnly(part.text)
      if (part.parts === undefined) return unquoted(part.text, context)
      if (`{${part.parts.map((it) => it.text).join('')}}` !== part.text) {
        visitParts(part.parts, context)
        context.unknown({ kind: 'braces', text: part.text, why: 'The braces were not understood.' })
        return [{ type: 'hole', splits: true }]
      }
      return [
        ...unquoted('{', context),
        ...part.parts.flatMap((it) => partUnits(it, context)),
        ...unquoted('}', context),
      ]
    }
    default:
      return expansionUnits(part, false, context, visitParts)
  }
}

function childUnits(part: DoubleQuotedChild, context: WordContext): readonly Unit[] {
  if (part.type !== 'Literal') return expansionUnits(part, true, context, visitParts)
  checkLeftovers(part.text, context)
  if (context.interactive && HISTORY.test(part.text)) history(part.text, context)
  return quoted(part.value)
}

const quoted = (text: string): readonly Unit[] => [...text].map((char) => ({ type: 'char', char, quoted: true }))

/** A dollar or backquote that the parser took for a letter although the shell would not. */
const LEFTOVER = /^(?:\\[\s\S]|[^\\$`]|\$(?![A-Za-z0-9_{(@*#?$!'"[-]))*$/
const checkLeftovers = (text: string, context: WordContext): void => {
  if (!LEFTOVER.test(text)) context.unknown({ kind: 'word', text, why: 'An expansion in the word was not understood.' })
}

const HISTORY = /!(?![\s=(]|$)/
const history = (text: string, context: WordContext): void =>
  context.unknown({
    kind: 'history',
    text,
    why: 'A terminal shell would put an earlier command in the place of the "!".',
  })

function unquoted(text: string, context: WordContext): readonly Unit[] {
  checkLeftovers(text, context)
  if (context.interactive && HISTORY.test(text)) history(text, context)
  const units: Unit[] = []
  const characters = [...text]
  for (let index = 0; index < characters.length; index += 1) {
    const char = characters[index]!
    if (char !== '\\') {
      if (/[;&|<>()`"'\s]/.test(char))
        context.unknown({ kind: 'word', text, why: 'The word holds a character that would end it.' })
      units.push({ type: 'char', char, quoted: false })
      continue
    }
    index += 1
    const next = characters[index]
    if (next === undefined) context.unknown({ kind: 'word', text, why: 'The word ends in a backslash.' })
    else if (next !== '\n') units.push({ type: 'char', char: next, quoted: true })
  }
  return units
}

function expandTilde(units: readonly Unit[], context: WordContext): readonly Unit[] {
  const [first] = units
  if (first?.type !== 'char' || first.quoted || first.char !== '~') return tildesInside(units)
  const end = units.findIndex((it) => it.type === 'char' && !it.quoted && it.char === '/')
  const name = units.slice(1, end < 0 ? undefined : end)
  if (name.some((it) => it.type === 'char' && it.quoted)) return units
  if (name.length > 0 || context.scope.variables.has('HOME'))
    return [{ type: 'hole', splits: false }, ...units.slice(1)]
  return [...quoted(context.home), ...units.slice(1)]
}

/** Some shells expand `~` in every word that looks like an assignment. */
function tildesInside(units: readonly Unit[]): readonly Unit[] {
  const plain = (unit: Unit | undefined, pattern: RegExp): boolean =>
    unit?.type === 'char' && !unit.quoted && pattern.test(unit.char)
  return units.map((unit, index) =>
    plain(unit, /~/) && plain(units[index - 1], /[=:]/) ? { type: 'hole', splits: false } : unit,
  )
}

function argumentsOf(units: readonly Unit[], text: string, context: WordContext): readonly Argument[] {
  const characters: { char: string; quoted: boolean }[] = []
  for (const unit of units) if (unit.type === 'char') characters.push(unit)
  const prefix = prefixOf(units)
  if (characters.length < units.length) {
    const holes = units.filter((it) => it.type === 'hole')
    if (units.length === 1 && holes[0]!.pipe) return [{ text, prefix: '/dev/fd/', splits: false, found: true }]
    const starts = prefix === '' && units[0]?.type === 'hole' && units[0].numeric ? '0' : prefix
    return [dynamic(text, starts, holes.some((it) => it.splits) || hasWildcard(characters))]
  }
  const value = characters.map((it) => it.char).join('')
  if (!hasWildcard(characters)) return [literal(value, text)]

  context.pattern(text)
  const names = new Set<string>()
  if (context.scope.directories.length === 0) return [dynamic(text, prefix, true)]
  for (const directory of context.scope.directories) {
    const matched = expandGlob(characters, directory, context.mayRead, context.scope.budget)
    if (matched === undefined) return [dynamic(text, literalStart(characters), true)]
    for (const name of matched) names.add(name)
    // A pattern without a match is unchanged.
    if (matched.length === 0) names.add(value)
  }
  return [...names].map((it) => literal(it, text))
}

function prefixOf(units: readonly Unit[]): string {
  let prefix = ''
  for (const unit of units) {
    if (unit.type === 'hole') break
    prefix += unit.char
  }
  return prefix
}

function literalStart(characters: readonly { char: string; quoted: boolean }[]): string {
  const wild = characters.findIndex((_, index) => hasWildcard(characters.slice(index, index + 1)))
  return characters
    .slice(0, wild)
    .map((it) => it.char)
    .join('')
}

// Text → terms, the same for documents and questions. FTS5 stems the terms (Porter) and folds accents.
import { telling } from './stop-words.ts'
import { UNSPACED } from './tokens.ts'

const MAX_TERM = 64
/** A question longer than this is cut; so is one with more terms. */
const MAX_QUERY_LENGTH = 4_000
const MAX_QUERY_TERMS = 128

const unspaced = new RegExp(`[${UNSPACED}]`, 'v')
const letter = String.raw`[[\p{L}\p{N}\p{M}]--[${UNSPACED}]]`
// Runs of scripts that write words without spaces; words and identifiers with the signs that join their parts.
const runs = new RegExp(
  String.raw`([${UNSPACED}]+)|(${letter}+(?:[\-._:\/@#\\+'’]+${letter}+)*(?:\+\+|#(?!${letter}))?)`,
  'gv',
)

/**
 * The text for FTS5: its terms with spaces between them, each of at most 64 letters, digits, `.`, `+` and `#`. Meant
 * for passages: the stack of a regular expression does not hold whole books.
 */
export const termsOf = (text: string): string => [...indexed(text)].join(' ')

function* indexed(text: string): Generator<string> {
  for (const { whole, parts } of wordsOf(text)) {
    yield* whole
    yield* parts
    // KX-90-22871 is also found as KX9022871, but not the other way round: 3.12.1 does not mean 3.1.21.
    for (const it of whole) if (it.includes('.') && it.length > 7) yield it.replaceAll('.', '')
  }
}

/** The terms of one word: the identifier as a whole, where it has parts, and the parts. */
interface Word {
  readonly whole: readonly string[]
  readonly parts: readonly string[]
}

function* wordsOf(text: string): Generator<Word> {
  for (const [, unspaced, word] of text.toWellFormed().normalize('NFKC').matchAll(runs))
    yield unspaced === undefined ? identifier(word!) : { whole: [], parts: grams(unspaced) }
}

export interface Query {
  /** All significant terms of the question, each once. */
  readonly any: readonly string[]
  /** Those that are numbers and codes. */
  readonly exact: readonly string[]
  /** Those that are plain words, and may be misspelt. */
  readonly words: readonly string[]
}

/** @example queryOf('where is ORD-2024-00183?').exact // ['ord2024.00183'] */
export function queryOf(text: string): Query {
  const terms = new Set<string>()
  const codes = new Set<string>()
  for (const { whole, parts } of wordsOf(
    text.slice(0, MAX_QUERY_LENGTH).normalize('NFKC').slice(0, MAX_QUERY_LENGTH),
  )) {
    for (const it of [...whole, ...parts]) if (terms.size < MAX_QUERY_TERMS) terms.add(it)
    // Consecutive order numbers share parts.
    for (const it of whole.length > 0 ? whole : parts) if (terms.has(it) && isCode(it)) codes.add(it)
  }
  const any = telling([...terms])
  return { any, exact: [...codes], words: any.filter((it) => /^\p{Ll}{4,}$/u.test(it) && !unspaced.test(it)) }
}

/** A question is data: each term is quoted, so that nothing in it is syntax. */
export const matchAny = (terms: readonly string[]): string => terms.map((it) => `"${it}"`).join(' OR ')

/** An order number, an error code, a date: it has digits, and is too long to occur by chance. */
const isCode = (term: string): boolean =>
  /^\d{5,}$/.test(term) || (/\d/.test(term) && /[a-z.]/.test(term) && term.length > 4)

/** Pairs of neighbours, and each character; see docs/decisions. */
function grams(run: string): string[] {
  const characters = [...run]
  return [...new Set([...characters.slice(1).map((it, n) => characters[n]! + it), ...characters])]
}

/** `getUserById` is getuserbyid, and get, user, by, id. */
function identifier(word: string): Word {
  const components = word
    .replace(/['’]s$/i, '')
    .replace(/['’]/g, '')
    .split(/[.:/@\\]+/)
    .map(partsOf)
  const whole = [components.flat(), ...components].filter((it) => it.length > 1).map(joined)
  return { whole: [...new Set(whole)], parts: [...new Set(components.flat().map(folded))] }
}

function partsOf(component: string): string[] {
  return component
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .split(/[ _-]+|(?<=.)[+#](?=[^+#])/u)
    .filter((it) => it !== '')
}

/**
 * Without the signs between the parts, so that userId, user_id and user-id are one; between digits a dot, so that 1.23
 * is not 12.3.
 */
function joined(parts: readonly string[]): string {
  return folded(parts.reduce((all, it) => all + (/\d$/.test(all) && /^\d/.test(it) ? '.' : '') + it, ''))
}

const folded = (part: string): string =>
  Array.from(part.toLowerCase().slice(0, MAX_TERM * 2))
    .slice(0, MAX_TERM)
    .join('')

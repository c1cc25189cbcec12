// Misspelt words: the nearest terms of the index.
import type { DatabaseSync } from 'node:sqlite'
import { matchAny } from '../text/analyser.ts'

/** The number of words per question that are looked up. */
const MAX_WORDS = 8
/** The number of terms that replace one word. */
const MAX_TERMS = 3
/** The index has stems; shorter ones resemble too many words. */
const MIN_STEM = 4
/** Terms with the same first letter that are compared. */
const MAX_COMPARED = 50_000

/**
 * For each word that no passage has, the stems of the index that differ from its beginning in one letter, or in two
 * when it is long. A word without such stems is left out.
 *
 * @example similarTerms(database, ['delivry']) // Map { 'delivry' → ['deliv'] }
 */
export function similarTerms(database: DatabaseSync, words: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const has = database.prepare('SELECT 1 FROM terms WHERE terms MATCH ? LIMIT 1')
  const missing = words.slice(0, MAX_WORDS).filter((it) => has.get(matchAny([it])) === undefined)
  if (missing.length === 0) return new Map()
  // The terms of the index, as a table of this connection only.
  database.exec('CREATE VIRTUAL TABLE IF NOT EXISTS temp.known USING fts5vocab(main, terms, row)')
  const found = missing.map((it): [string, readonly string[]] => [it, nearest(database, it)])
  return new Map(found.filter(([, terms]) => terms.length > 0))
}

function nearest(database: DatabaseSync, word: string): string[] {
  const most = word.length >= 8 ? 2 : 1
  const first = [...word][0]!
  const rows = database
    .prepare('SELECT term, doc FROM temp.known WHERE term >= ? AND term < ? LIMIT ?')
    .all(first, first + String.fromCodePoint(0x10_ff_ff), MAX_COMPARED) as { term: string; doc: number }[]
  return rows
    .filter((it) => it.term.length >= MIN_STEM && /^\p{L}+$/u.test(it.term))
    .map(({ term, doc }) => ({ term, doc, distance: distance(term, word, most) }))
    .filter((it) => it.distance <= most)
    .sort(
      (a, b) => a.distance - b.distance || b.term.length - a.term.length || b.doc - a.doc || (a.term < b.term ? -1 : 1),
    )
    .slice(0, MAX_TERMS)
    .map((it) => it.term)
}

/** How many letters of a word may follow its stem. */
const endingOf = (stem: string): number => (stem.length > MIN_STEM ? 3 : 1)

/**
 * How many letters of the word to add, drop, replace, or swap with their neighbour, to make it begin with the stem; its
 * ending costs nothing. Anything above `most` is `most + 1`.
 */
function distance(stem: string, word: string, most: number): number {
  const shortest = Math.max(0, word.length - endingOf(stem))
  if (stem.length > word.length + most || stem.length < shortest - most) return most + 1
  let before: number[] = []
  let row = Array.from({ length: word.length + 1 }, (_, at) => at)
  for (let i = 1; i <= stem.length; i++) {
    const next = [i]
    for (let j = 1; j <= word.length; j++) {
      const cost = stem[i - 1] === word[j - 1] ? 0 : 1
      let best = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + cost)
      const isSwap = i > 1 && j > 1 && stem[i - 1] === word[j - 2] && stem[i - 2] === word[j - 1]
      if (isSwap) best = Math.min(best, before[j - 2]! + 1)
      next.push(best)
    }
    if (Math.min(...next) > most) return most + 1
    before = row
    row = next
  }
  return Math.min(...row.slice(shortest), most + 1)
}

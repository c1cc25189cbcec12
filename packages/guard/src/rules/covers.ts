// Whether a rule allows a command: it names all of it, word by word.
import { matchesPieces } from '../pieces.ts'
import { afterOptions, OPAQUE, programNameOf } from '../programs/wrappers.ts'
import type { Argument, SimpleCommand } from '../words/types.ts'
import type { CommandRule } from './rule.ts'

/**
 * Whether the rule matches the words, all of them. All ways to read it are followed side by side, word by word: the
 * time grows with the length of the rule and of the command, however many wildcards there are.
 *
 * @param named the index of a word that the rule has to name letter by letter
 */
function matchesAll(rule: CommandRule, words: readonly Argument[], named: number | undefined): boolean {
  // Which words of the rule may come next; the first one is always the program.
  let [here, next] = [new Set([0]), new Set<number>()]
  for (const [index, given] of words.entries()) {
    for (const at of here) {
      const it = rule.words[at]
      if (it?.type === 'any') {
        here.add(at + 1)
        if (index !== named) next.add(at)
      }
      if (it?.type !== 'word') continue
      const name = at === 0 ? programNameOf([given]) : undefined
      if ((index !== named || it.pieces.length === 1) && matchesWord(it.pieces, given, name)) next.add(at + 1)
    }
    if (next.size === 0) return false
    ;[here, next] = [next, new Set()]
  }
  for (const at of here) if (rule.words[at]?.type === 'any') here.add(at + 1)
  return here.has(rule.words.length)
}

/** Whether one word of a rule matches one word of a command. */
export function matchesWord(
  pieces: readonly string[],
  { value, prefix, splits }: Argument,
  name: string | undefined,
): boolean {
  if (pieces.length === 1) return value === pieces[0] || (name !== undefined && name === pieces[0])
  if (value === undefined)
    return !splits && pieces.length === 2 && pieces[1] === '' && pieces[0] !== '' && prefix.startsWith(pieces[0]!)
  // A wildcard for names of files does not climb out of their folder.
  if (value.split('/').includes('..') && !pieces.join('').split('/').includes('..')) return false
  return matchesPieces(pieces, value)
}

/**
 * Whether the rule allows this one command. Of a command in a wrapper it must name the inner program: `timeout 5 make
 * *` or `make *`, but `xargs *` says nothing about what xargs runs.
 */
export function ruleCovers(rule: CommandRule, { written, words, start }: SimpleCommand): boolean {
  if (words.length === 0) return false
  const named = (given: readonly Argument[], from: number) => (rule.exact ? undefined : innerIndex(given, from))
  return matchesAll(rule, written, named(written, start)) || (start > 0 && matchesAll(rule, words, named(words, 0)))
}

/** The position of the program in a wrapper, if there is one. */
export function innerIndex(written: readonly Argument[], start: number): number | undefined {
  const name = programNameOf(written.slice(start, start + 1))
  if (name === undefined || !Object.hasOwn(OPAQUE, name)) return start > 0 ? start : undefined
  const rest = afterOptions(written.slice(start + 1), OPAQUE[name]!)
  return rest.length > 0 ? written.length - rest.length : undefined
}

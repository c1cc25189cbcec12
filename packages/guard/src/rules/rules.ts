// Rules that name commands: what they match, and which ones to offer.
import { matchesPieces } from '../pieces.ts'
import { afterOptions, nameOf, OPAQUE } from '../programs/wrappers.ts'
import type { Analysis, Argument, SimpleCommand } from '../words/types.ts'
import type { CommandRule } from './rule.ts'
import { harmlessSurroundings } from './surroundings.ts'
import { runsUnfollowed } from './unfollowed.ts'

/** How a rule is read. */
interface Reading {
  /** Options in front of what is forbidden do not make it another command. */
  readonly loose?: boolean
  /** The command may begin at any of the words. */
  readonly anywhere?: boolean
  /** A word that only the shell will know may be anything. */
  readonly guessing?: boolean
  /** The index of a word that the rule has to name letter by letter. */
  readonly named?: number | undefined
}

/**
 * Whether the rule matches the words. All ways to read it are followed side by side, word by word: the time grows with the
 * length of the rule and of the command, however many wildcards there are.
 */
function matches(
  rule: CommandRule,
  words: readonly Argument[],
  { loose, anywhere, guessing, named }: Reading = {},
): boolean {
  // Which words of the rule may come next; the first one is always the program.
  let [here, next, afterNext] = [new Set([0]), new Set<number>(), new Set<number>()]
  for (const [index, given] of words.entries()) {
    if (anywhere) here.add(0)
    for (const at of here) {
      const it = rule.words[at]
      if (it?.type === 'any') {
        here.add(at + 1)
        if (index !== named) next.add(at)
      }
      if (it?.type !== 'word') continue
      if (guessing && given.value === undefined) {
        // One word, or none or many of them if the shell splits it.
        next.add(at + 1)
        if (given.splits) for (let skipped = at; skipped <= rule.words.length; skipped += 1) next.add(skipped)
      }
      const name = at === 0 ? nameOf([given]) : undefined
      if ((index !== named || it.pieces.length === 1) && matchesWord(it.pieces, given, name)) next.add(at + 1)
      if (!loose || at === 0 || !(given.value ?? given.prefix).startsWith('-')) continue
      next.add(at)
      afterNext.add(at)
    }
    ;[here, next, afterNext] = [next, afterNext, new Set()]
  }
  for (const at of here) if (rule.words[at]?.type === 'any') here.add(at + 1)
  return here.has(rule.words.length)
}

function matchesWord(
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
 * Whether the rule allows this one command. Of a command in a wrapper it must name the inner program: `timeout 5 make *`
 * or `make *`, but `xargs *` says nothing about what xargs runs.
 */
export function ruleCovers(rule: CommandRule, { written, words, start }: SimpleCommand): boolean {
  if (words.length === 0) return false
  const naming = (given: readonly Argument[], from: number): Reading => ({
    named: rule.exact ? undefined : innerIndex(given, from),
  })
  return matches(rule, written, naming(written, start)) || (start > 0 && matches(rule, words, naming(words, 0)))
}

/** Where the program in a wrapper stands, if there is one. */
function innerIndex(written: readonly Argument[], start: number): number | undefined {
  const name = nameOf(written.slice(start))
  if (name === undefined || !Object.hasOwn(OPAQUE, name)) return start > 0 ? start : undefined
  const rest = afterOptions(written.slice(start + 1), OPAQUE[name]!)
  return rest.length > 0 ? written.length - rest.length : undefined
}

/** Whether a rule that forbids, or asks, means this command: also in a wrapper, also behind other options. */
export function ruleMeans(rule: CommandRule, { written, words }: SimpleCommand, guessing = false): boolean {
  const name = nameOf(words)
  const anywhere = name !== undefined && Object.hasOwn(OPAQUE, name)
  return matches(rule, written, { loose: true, guessing }) || matches(rule, words, { loose: true, guessing, anywhere })
}

/** Whether such a rule could mean the command, for all that the words tell. */
export const ruleCouldMean = (rule: CommandRule, command: SimpleCommand): boolean =>
  ruleMeans(rule, command, true) || runsUnfollowed(command)

/** Sub-commands that are worth a rule of their own: they do the same kind of thing whatever follows. */
const SUBCOMMANDS: Readonly<Record<string, RegExp>> = {
  git: /^(add|commit|switch)$/,
  npm: /^(test|ci|ls|outdated|run [\w:.-]+)$/,
  pnpm: /^(test|ls|outdated|run [\w:.-]+)$/,
  yarn: /^(test|run [\w:.-]+)$/,
  bun: /^(test|run [\w:-]+)$/,
  cargo: /^(build|check|test|clippy|fmt|bench|doc|tree)$/,
  go: /^(build|test|fmt)$/,
  dotnet: /^(build|test|restore|format)$/,
  deno: /^(test|check|lint|fmt)$/,
  docker: /^(ps|images|logs|inspect|compose (ps|logs))$/,
  kubectl: /^(logs|top)$/,
  gh: /^((pr|issue|run|release|repo) (view|list|status|diff|checks))$/,
  terraform: /^(plan|validate|fmt|show)$/,
}
/** Tools of which the name is enough: they check or format, or run the tests of the project. */
const TOOLS = new Set(
  'eslint prettier biome oxlint tsc vitest jest mocha pytest ruff mypy black isort flake8 pylint rubocop rspec phpunit shellcheck'.split(
    ' ',
  ),
)

/**
 * Rules that would allow the command the next time, the narrowest first: its exact words; for tools that are known, its
 * sub-command with anything behind it. None for more than one command, a wrapper, or anything that is not written out.
 */
export function suggestFrom({ simple, unknown, compound }: Analysis): readonly string[] {
  const [command] = simple
  if (command === undefined || compound || unknown.length > 0 || simple.length > 1) return []
  const { words, start, via, script } = command
  const name = nameOf(words)
  if (name === undefined || start > 0 || via.length > 0 || script !== undefined || !harmlessSurroundings(command))
    return []
  if (Object.hasOwn(OPAQUE, name) || INTERPRETERS.test(name) || words[0]!.value !== name || !/^[\w.+-]+$/.test(name))
    return []
  if (!words.every(isWrittenOut)) return []
  const exact = words.map((it) => quote(it.value!)).join(' ')
  const values = words.slice(1).map((it) => it.value!)
  const known = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined
  const length = [2, 1].find((it) => values.length >= it && known?.test(values.slice(0, it).join(' ')))
  if (length !== undefined) return [...new Set([exact, `${[name, ...values.slice(0, length)].join(' ')} *`])]
  return TOOLS.has(name) ? [...new Set([exact, `${name} *`])] : [exact]
}

/** Whether the word stands in the text letter by letter, apart from quotes. */
const isWrittenOut = ({ text, value }: Argument): boolean =>
  value !== undefined && !/[\n\0]/.test(value) && value.replace(/['"\\]/g, '') === text.replace(/['"\\]/g, '')

const INTERPRETERS =
  /^(ba|da|z|k|c|tc|fi)?sh$|^(eval|source|\.|exec|trap|alias|export|python[\d.]*|node|deno|bun|perl|ruby|php|lua|osascript|awk|gawk|mawk|sed|find|tar|ssh|curl|wget|rm|dd|kill|ed|vim?|nvim|emacs|less|man)$/

const quote = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

// Rules that name commands: what they match, and which ones to offer.
import type { CommandRule } from './rule.ts'
import { harmlessSurroundings } from './surroundings.ts'
import type { Analysis, Argument, SimpleCommand } from './types.ts'
import { afterOptions, nameOf, OPAQUE } from './wrappers.ts'

/** The indexes of the words that the rule names letter by letter, or `undefined` if it does not match. */
function match(rule: CommandRule, words: readonly Argument[], loose: boolean): readonly number[] | undefined {
  const named: number[] = []
  const from = (pattern: number, word: number): boolean => {
    const it = rule.words[pattern]
    if (it === undefined) return word === words.length
    if (it.type === 'any') {
      for (let next = word; next <= words.length; next += 1) if (from(pattern + 1, next)) return true
      return false
    }
    const given = words[word]
    if (given === undefined) return false
    if (matchesWord(it.pieces, given, word === 0 ? nameOf(words) : undefined)) {
      const length = named.length
      if (it.pieces.length === 1) named.push(word)
      if (from(pattern + 1, word + 1)) return true
      named.length = length
    }
    // Options in front of what is forbidden do not make it another command.
    const skips = loose && word > 0 && (given.value ?? given.prefix).startsWith('-')
    return skips && (from(pattern, word + 1) || from(pattern, word + 2))
  }
  return from(0, 0) ? named : undefined
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
  const pattern = pieces.map((it) => it.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^]*')
  return new RegExp(`^${pattern}$`, 'u').test(value)
}

/**
 * Whether the rule allows this one command. Of a command in a wrapper it must name the inner program: `timeout 5 make *`
 * or `make *`, but `xargs *` says nothing about what xargs runs.
 */
export function ruleCovers(rule: CommandRule, command: SimpleCommand): boolean {
  const { written, words, start } = command
  if (words.length === 0) return false
  const named = match(rule, written, false)
  const inner = innerIndex(written, start)
  if (named !== undefined && (rule.exact || inner === undefined || named.includes(inner))) return true
  return start > 0 && match(rule, words, false) !== undefined && ruleReaches(rule, words)
}

const ruleReaches = (rule: CommandRule, words: readonly Argument[]): boolean => {
  const inner = innerIndex(words, 0)
  return inner === undefined || rule.exact || (match(rule, words, false)?.includes(inner) ?? false)
}

/** Where the program in a wrapper stands, if there is one. */
function innerIndex(written: readonly Argument[], start: number): number | undefined {
  const name = nameOf(written.slice(start))
  if (name === undefined || !Object.hasOwn(OPAQUE, name)) return start > 0 ? start : undefined
  const rest = afterOptions(written.slice(start + 1), OPAQUE[name]!)
  return rest.length > 0 ? written.length - rest.length : undefined
}

/** Whether a rule that forbids, or asks, means this command: also in a wrapper, also behind other options. */
export function ruleMeans(rule: CommandRule, command: SimpleCommand): boolean {
  const name = nameOf(command.words)
  const suffixes = [command.written, command.words]
  if (name !== undefined && Object.hasOwn(OPAQUE, name))
    for (let index = 1; index < command.words.length; index += 1) suffixes.push(command.words.slice(index))
  return suffixes.some((it) => match(rule, it, true) !== undefined)
}

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

// Whether a deny or ask rule matches a command, in any spelling and any disguise.
import { runsNoWord } from '../programs/lookup.ts'
import { OPAQUE, programNameOf } from '../programs/wrappers.ts'
import type { Argument, SimpleCommand } from '../words/types.ts'
import { literal } from '../words/words.ts'
import { matchesWord } from './covers.ts'
import type { CommandRule } from './rule.ts'
import { hasOption, isSubcommand, withoutManagement } from './spellings.ts'
import { runsUnfollowed } from './unfollowed.ts'

type Answer = boolean | 'unknown'

/** A list of words in which a rule is looked for. */
interface Reading {
  readonly words: readonly Argument[]
  /** The command may begin at any of the words. */
  readonly anywhere: boolean
  /** A match here may run, and need not. */
  readonly perhaps: boolean
}

/** A command as rules look at it. Made once, and compared with all rules. */
export interface CommandView {
  readonly readings: readonly Reading[]
  /** Names of all programs that a rule could find in the readings. */
  readonly names: ReadonlySet<string>
  /** A program whose name only the shell will know. */
  readonly open: boolean
  /** It runs something that its words do not show. */
  readonly unfollowed: boolean
}

/** The name of a program without its folder, as case-folding systems would find it. */
const baseName = (value: string): string =>
  value
    .slice(value.lastIndexOf('/') + 1)
    .replace(/\.(exe|cmd|bat|com)$/i, '')
    .toLowerCase()

/** Programs that run things of the project, and are called with variables every day. */
const COMMON = new Set(
  'cargo cmake composer curl deno docker dotnet gh go gradle helm kubectl make mvn node npm php pip pip3 pnpm podman pytest python python3 ruby scp tar terraform unzip wget yarn zip'.split(
    ' ',
  ),
)

export function ruleViewOf(command: SimpleCommand): CommandView {
  const { written, words } = command
  const name = programNameOf(words)
  const opaque = name !== undefined && Object.hasOwn(OPAQUE, name)
  const readings: Reading[] = [{ words: written, anywhere: false, perhaps: false }]
  if (words !== written || opaque) readings.push({ words, anywhere: opaque, perhaps: false })
  let unfollowed = runsUnfollowed(command)
  if (name !== undefined && !opaque) {
    const args = words.slice(1)
    if (!runsNoWord(name, args)) {
      // A program that is not known may run any of its words: `choom -- rm x`, `man -P "rm x"`.
      const later = args.flatMap(({ value }) => value?.split(/[\s;|&()'"`=,]+/).filter(Boolean) ?? [])
      readings.push({ words: later.map((it) => literal(it)), anywhere: true, perhaps: true })
      unfollowed ||= !name.includes('/') && !COMMON.has(name) && args.some((it) => it.value === undefined)
    }
  }
  const names = new Set<string>()
  let open = false
  for (const { words: list, anywhere } of readings) {
    for (const { value } of anywhere ? list : list.slice(0, 1)) {
      if (value === undefined) open = true
      else names.add(baseName(value))
    }
  }
  return { readings, names, open, unfollowed }
}

/**
 * Whether the rule means the command: also in a wrapper, also with more words than the rule has, its options anywhere
 * and in another spelling. `unknown` if it could.
 */
export function ruleMeans(rule: CommandRule, { readings, names, open, unfollowed }: CommandView): Answer {
  let answer: Answer = unfollowed && 'unknown'
  if (!open && !names.has(baseName(rule.program))) return answer
  for (const reading of readings) {
    const found = meansWords(rule, reading)
    if (found === true && !reading.perhaps) return true
    if (found !== false) answer = 'unknown'
  }
  return answer
}

function meansWords(rule: CommandRule, { words, anywhere }: Reading): Answer {
  const list = withoutManagement(words, (it) => it?.value)
  const options = rule.options.map((pieces): Answer => {
    if (pieces.length > 1) return list.some((it) => matchesWord(pieces, it, undefined))
    const [first, second] = rule.operands
    const subcommand = second?.type === 'word' && second.pieces.length === 1 ? second.pieces[0]! : ''
    return first === undefined ? false : hasOption(pieces[0]!, [rule.program, subcommand], list.slice(anywhere ? 0 : 1))
  })
  if (options.includes(false)) return false
  if (hasOperands(rule, list, anywhere, false)) return options.every((it) => it === true) || 'unknown'
  return hasOperands(rule, list, anywhere, true) && 'unknown'
}

/**
 * Whether the program, the sub-command and the operands of a rule stand among the words in this order. Options, and
 * their values, may stand between them, and other operands from the second one on; anything may follow.
 */
function hasOperands(
  { operands, program, words: rule }: CommandRule,
  words: readonly Argument[],
  anywhere: boolean,
  guessing: boolean,
): boolean {
  // A word after an option in the rule may be its value, so it must follow the option in the command too.
  const firstIsValue = rule[1]?.type === 'word' && rule[1].pieces[0]!.startsWith('-')
  const isEnd = (at: number): boolean => operands.slice(at).every((it) => it.type === 'any')
  let [here, next, afterNext] = [new Set([0]), new Set<number>(), new Set<number>()]
  for (const given of words) {
    if (anywhere) here.add(0)
    for (const at of here) {
      const it = operands[at]
      if (it?.type === 'any') {
        here.add(at + 1)
        next.add(at)
      }
      if (it?.type !== 'word') continue
      if (at === 0) {
        if (isProgram(program, given) || (guessing && given.value === undefined)) next.add(1)
        if (guessing && given.value === undefined && given.splits)
          for (let skipped = 1; skipped <= operands.length; skipped += 1) next.add(skipped)
        continue
      }
      if (guessing && given.value === undefined) {
        // One word, or none or many of them if the shell splits it.
        next.add(at + 1)
        if (given.splits) for (let skipped = at; skipped <= operands.length; skipped += 1) next.add(skipped)
      }
      if (isOperand(it.pieces, given) || (at === 1 && isNamed(program, it.pieces, given))) next.add(at + 1)
      const option = (given.value ?? given.prefix).startsWith('-')
      if (option || at > 1 || firstIsValue || /[/.*]/.test(it.pieces.join('*'))) next.add(at)
      if (option) afterNext.add(at)
    }
    for (const at of next) if (isEnd(at)) return true
    ;[here, next, afterNext] = [next, afterNext, new Set()]
  }
  return false
}

const isProgram = (program: string, { value }: Argument): boolean =>
  value !== undefined &&
  (value === program ||
    (program.includes('/')
      ? programNameOf([{ text: '', value, prefix: value, splits: false }]) === program
      : baseName(value) === baseName(program)))

/** As a word, or as the value of an option that is joined to it: `-XPOST`, `--request=POST`. */
function isOperand(pieces: readonly string[], given: Argument): boolean {
  if (matchesWord(pieces, given, undefined)) return true
  const joined = /^(?:--[^=]+=|-[A-Za-z])(.+)$/s.exec(given.value ?? '')?.[1]
  return joined !== undefined && matchesWord(pieces, literal(joined), undefined)
}

const isNamed = (program: string, pieces: readonly string[], { value }: Argument): boolean =>
  pieces.length === 1 && value !== undefined && isSubcommand(program, pieces[0]!, value)

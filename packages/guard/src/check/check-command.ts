// Analyses a command line and decides about it.
import { homedir } from 'node:os'
import { secretIn, shows } from '../programs/environment.ts'
import { ruleCovers } from '../rules/covers.ts'
import { type CommandView, ruleMeans, ruleViewOf } from '../rules/meaning.ts'
import { readRule } from '../rules/reading.ts'
import type { CommandRule } from '../rules/rule.ts'
import { suggestFrom } from '../rules/suggest.ts'
import { harmlessSurroundings, writesFile } from '../rules/surroundings.ts'
import { analyse, type Look, makeLook, notUnderstood, type Walked } from '../walk/analyse.ts'
import { FORK_BOMB } from '../walk/walk.ts'
import type {
  AnalyseOptions,
  Analysis,
  CommandCheck,
  CommandOptions,
  Construct,
  Reason,
  SimpleCommand,
} from '../words/types.ts'
import { checkProgram, checkSurroundings, type SimpleOptions } from './check-simple.ts'
import { disasterOf } from './disasters.ts'
import { outrun } from './outrun.ts'
import { notesOf } from './traps.ts'

/** A command line that has been taken apart. What it holds of the file system must not outlive one check. */
export interface CommandLine {
  readonly text: string
  readonly walked: Walked
  readonly look: Look
  /** Its commands as rules that deny or ask look at them; made when the first one does. */
  readonly views: () => readonly CommandView[]
}

export function readLine(text: string, options: AnalyseOptions): CommandLine {
  const look = makeLook()
  const walked = analyse(text, options, look)
  let views: readonly CommandView[] | undefined
  return { text, walked, look, views: () => (views ??= walked.simple.map(ruleViewOf)) }
}

/**
 * Splits a command line into its simple commands, at any depth. The text is parsed as a shell parses it
 * that is started for this one command (`bash -c`, or `sh -c`; see `shell`), without a terminal.
 *
 * It reads folders to expand patterns and to follow links, and writes nothing. It does not see what another process
 * changes between this look and the run of the command. Its work is bounded: a text that is too long, or costs too much
 * to follow, has an entry in `unknown`.
 *
 * @example analyseCommand('cd src && ls', { cwd, roots: [cwd] }).simple.map((it) => it.text) // ['cd src', 'ls']
 */
export const analyseCommand = (text: string, options: AnalyseOptions): Analysis => analysisOf(readLine(text, options))

function analysisOf({ text, walked: { simple, unknown, outside } }: CommandLine): Analysis {
  const compound = simple.length !== 1 || simple[0]!.text !== text.trim()
  return { simple, unknown, outside, notes: notesOf(simple), compound }
}

/**
 * Decides about a command line: allowed if all of it only reads what is inside the roots (or is covered by a rule),
 * denied if a part of it is a plain disaster, and asked about otherwise.
 *
 * @example checkCommand('git status && rm -rf build', { cwd, roots: [cwd] }).decision // 'ask'
 */
export const checkCommand = (text: string, options: CommandOptions): CommandCheck =>
  checkLine(readLine(text, options), options)

export function checkLine(line: CommandLine, options: CommandOptions): CommandCheck {
  const { text, look } = line
  const analysis = analysisOf(line)
  const { simple, unknown, notes } = analysis
  const rules = (options.allow ?? [])
    .map((it) => readRule(it, 'allow'))
    .filter((it): it is CommandRule => !('problem' in it))
  const home = options.home ?? homedir()
  const simpleOptions: SimpleOptions = {
    ...options,
    look,
    home,
    searchPath: options.searchPath ?? process.env.PATH ?? '',
    allowEdits: options.allowEdits ?? false,
    writes: simple.some(writesFile),
  }

  const reasons: Reason[] = unknown.map(reasonOf)
  for (const command of simple) {
    const disaster = disasterOf(command, { home, roots: options.roots })
    if (disaster !== undefined)
      reasons.push({ decision: 'deny', code: 'disaster', message: disaster, text: command.text })
  }
  for (const folder of analysis.outside)
    reasons.push({
      decision: 'ask',
      code: 'path',
      message: `A pattern lists the names in ${folder}, outside the allowed folders.`,
      text: text.slice(0, 80),
    })
  let readOnly = !simpleOptions.writes
  const covered: SimpleCommand[] = []
  try {
    for (const command of simple) {
      const around = checkSurroundings(command, simpleOptions)
      reasons.push(...around)
      const own = checkProgram(command, simpleOptions)
      if (own.length > 0) {
        readOnly = false
        if (rules.some((it) => ruleCovers(it, command))) covered.push(command)
        else reasons.push(...own)
      }
    }
    reasons.push(...outrun(text, line.walked, covered, simpleOptions.writes))
  } catch (error) {
    reasons.push(reasonOf(notUnderstood(text, error as Error)))
  }
  for (const word of line.walked.between) {
    const secret = secretIn(word)
    if (secret !== undefined) reasons.push({ decision: 'ask', code: 'secret', message: shows(secret), text: word })
  }
  if (simple.length === 0 && reasons.length === 0)
    reasons.push({ decision: 'ask', code: 'construct', message: 'The text contains no command.', text })

  const distinct = [...new Map(reasons.map((it) => [`${it.code}\0${it.message}\0${it.text}`, it])).values()]
  distinct.sort((one, other) => Number(other.decision === 'deny') - Number(one.decision === 'deny'))
  const decision = distinct[0] === undefined ? 'allow' : distinct[0].decision
  return {
    decision,
    readOnly: decision === 'allow' && readOnly,
    reasons: distinct,
    simple,
    unknown,
    notes,
    suggestions: decision === 'ask' ? suggestFrom(analysis) : [],
  }
}

const reasonOf = ({ kind, why, text }: Construct): Reason =>
  kind === FORK_BOMB
    ? { decision: 'deny', code: 'disaster', message: why, text }
    : { decision: 'ask', code: kind === 'budget' || kind === 'too long' ? 'too much' : 'construct', message: why, text }

const NOWHERE: AnalyseOptions = { cwd: '/', roots: [] }

/**
 * Whether one rule allows the whole text: every simple command in it, however deep, must be matched, there may be
 * nothing that is not understood, and no output may go to a file. For several rules together, and for pipes into
 * commands that only read, use `checkCommand` with `allow`.
 *
 * @example commandMatches('git commit *', 'git commit -m x; rm y') // false
 */
export const commandMatches = (pattern: string, text: string, options: AnalyseOptions = NOWHERE): boolean =>
  lineMatches(pattern, readLine(text, options))

export function lineMatches(pattern: string, { walked: { simple, unknown } }: CommandLine): boolean {
  if (unknown.length > 0 || simple.length === 0) return false
  const rule = readRule(pattern, 'allow')
  if ('problem' in rule) return false
  return simple.every((it) => ruleCovers(rule, it) && harmlessSurroundings(it))
}

/**
 * Whether a rule that forbids or asks means any command in the text: inside wrappers, substitutions and scripts, by any
 * path of the program, and behind options that come first (`git -C x push` for `git push *`). `'unknown'` if the text
 * runs something that cannot be followed, so that the rule could mean it (`$cmd`, `… | sh`, `python -c …`): the gate
 * then asks. It does not look at what a program does when it runs, nor at the files from which it reads commands.
 *
 * @example commandMentions('git push *', 'cd x && git -C y push') // true
 */
export const commandMentions = (
  pattern: string,
  text: string,
  options: AnalyseOptions = NOWHERE,
): boolean | 'unknown' => lineMentions(pattern, readLine(text, options))

export function lineMentions(pattern: string, { walked: { unknown }, views }: CommandLine): boolean | 'unknown' {
  const rule = readRule(pattern, 'deny')
  // A rule that forbids and cannot be read forbids everything.
  if ('problem' in rule) return true
  const answers = views().map((it) => ruleMeans(rule, it))
  if (answers.includes(true)) return true
  return (unknown.length > 0 || answers.includes('unknown')) && 'unknown'
}

/** Rules to offer with a question about the text; see `suggestFrom`. */
export const suggestRules = (text: string, options: AnalyseOptions = NOWHERE): readonly string[] =>
  suggestFor(readLine(text, options))

export const suggestFor = (line: CommandLine): readonly string[] => suggestFrom(analysisOf(line))

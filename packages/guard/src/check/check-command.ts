// Analyses a command line and decides about it.
import { homedir } from 'node:os'
import { checkPath } from '../paths/check-path.ts'
import { secretIn, shows } from '../programs/names.ts'
import { type CommandRule, readCommandRule } from '../rules/rule.ts'
import { ruleCouldMean, ruleCovers, ruleMeans, suggestFrom } from '../rules/rules.ts'
import { harmlessSurroundings } from '../rules/surroundings.ts'
import { FORK_BOMB, walkScript } from '../walk/walk.ts'
import { deceptive, loadParser } from '../words/parser.ts'
import type {
  AnalyseOptions,
  Analysis,
  CommandCheck,
  CommandOptions,
  Construct,
  Reason,
  SimpleCommand,
} from '../words/types.ts'
import { checkProgram, checkSurroundings, pathOptions, type SimpleOptions } from './check-simple.ts'
import { disasterOf } from './disasters.ts'
import { notesOf } from './traps.ts'

/**
 * Takes a command line apart into the simple commands in it, wherever they stand. The text is read as a shell reads it
 * that is started for this one command (`bash -c`, or `sh -c`; see `shell`), without a terminal.
 *
 * It looks at folders to expand patterns and to follow links, and writes nothing. What another process changes between
 * this look and the run of the command is not seen.
 */
export async function analyseCommand(text: string, options: AnalyseOptions): Promise<Analysis> {
  const parser = await loadParser()
  const simple: SimpleCommand[] = []
  const unknown: Construct[] = []
  const strange = deceptive(text)
  if (strange !== undefined) unknown.push(strange)
  // Too long a text is still searched for what is forbidden, up to a length that costs nothing.
  if (text.length < 500_000) {
    const home = options.home ?? homedir()
    const mayRead = (folder: string): boolean => checkPath(folder, pathOptions(options.cwd, 'read', options)).inside
    try {
      const walk = { parser, home, interactive: options.interactive ?? false, mayRead, simple, unknown }
      walkScript(walk, text, { variables: new Map(), directories: [options.cwd] }, options.shell ?? 'sh')
    } catch (error) {
      // The stack is the only thing that hostile nesting can exhaust; then the text has not been understood.
      unknown.push({
        kind: 'syntax',
        text: text.slice(0, 80),
        why: `The command was not understood: ${(error as Error).message}`,
      })
    }
  }
  const compound = simple.length !== 1 || simple[0]!.text !== text.trim()
  return { simple, unknown, notes: notesOf(simple), compound }
}

/**
 * Decides about a command line: allowed if all of it only reads what is inside the roots (or is covered by a rule),
 * denied if a part of it is a plain disaster, and asked about otherwise.
 *
 * @example (await checkCommand('git status && rm -rf build', { cwd, roots: [cwd] })).decision // 'ask'
 */
export async function checkCommand(text: string, options: CommandOptions): Promise<CommandCheck> {
  const analysis = await analyseCommand(text, options)
  const { simple, unknown, notes } = analysis
  const rules = (options.allow ?? []).map(readCommandRule).filter((it): it is CommandRule => !('problem' in it))
  const home = options.home ?? homedir()
  const simpleOptions: SimpleOptions = {
    ...options,
    home,
    searchPath: options.searchPath ?? process.env.PATH ?? '',
    allowEdits: options.allowEdits ?? false,
  }

  const reasons: Reason[] = unknown.map(({ kind, why, text: part }) => ({
    decision: kind === FORK_BOMB ? 'deny' : 'ask',
    code: kind === FORK_BOMB ? 'disaster' : 'construct',
    message: why,
    text: part,
  }))
  let readOnly = true
  for (const command of simple) {
    const disaster = disasterOf(command, { home, roots: options.roots })
    if (disaster !== undefined)
      reasons.push({ decision: 'deny', code: 'disaster', message: disaster, text: command.text })
    const around = checkSurroundings(command, simpleOptions)
    reasons.push(...around)
    const own = checkProgram(command, simpleOptions)
    if (own.length > 0) {
      readOnly = false
      if (!rules.some((it) => ruleCovers(it, command))) reasons.push(...own)
    }
    if (options.allowEdits && around.length === 0 && !harmlessSurroundings(command))
      readOnly &&= checkSurroundings(command, { ...simpleOptions, allowEdits: false }).length === 0
  }
  // What stands between the commands, such as the list of a loop, is of none of them.
  const between = simple.reduce((rest, it) => rest.replace(it.text, ' '), text)
  const secret = secretIn(between)
  if (secret !== undefined)
    reasons.push({ decision: 'ask', code: 'secret', message: shows(secret), text: between.trim().slice(0, 80) })
  if (simple.length === 0 && reasons.length === 0)
    reasons.push({ decision: 'ask', code: 'construct', message: 'There is no command in the text.', text })

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

const NOWHERE: AnalyseOptions = { cwd: '/', roots: [] }

/**
 * Whether one rule allows the whole text: every simple command in it, however deep, must be matched, there may be
 * nothing that is not understood, and no output may go to a file. For several rules together, and for pipes into commands
 * that only read, use `checkCommand` with `allow`.
 *
 * @example await commandMatches('git commit *', 'git commit -m x; rm y') // false
 */
export async function commandMatches(
  pattern: string,
  text: string,
  options: AnalyseOptions = NOWHERE,
): Promise<boolean> {
  const rule = readCommandRule(pattern)
  if ('problem' in rule) return false
  const { simple, unknown } = await analyseCommand(text, options)
  return (
    unknown.length === 0 && simple.length > 0 && simple.every((it) => ruleCovers(rule, it) && harmlessSurroundings(it))
  )
}

/**
 * Whether a rule that forbids or asks means any command in the text: inside of wrappers, substitutions and scripts, by any
 * path of the program, and behind options that come first (`git -C x push` for `git push *`). `'unknown'` if the text runs
 * something that cannot be followed, so that the rule could mean it (`$cmd`, `… | sh`, `python -c …`): the gate then asks.
 * What a program does by itself, and the files that it reads its orders from, are not looked at.
 */
export async function commandMentions(
  pattern: string,
  text: string,
  options: AnalyseOptions = NOWHERE,
): Promise<boolean | 'unknown'> {
  const rule = readCommandRule(pattern)
  // What forbids and cannot be read forbids everything.
  if ('problem' in rule) return true
  const { simple, unknown } = await analyseCommand(text, options)
  if (simple.some((it) => ruleMeans(rule, it))) return true
  return unknown.length > 0 || simple.some((it) => ruleCouldMean(rule, it)) ? 'unknown' : false
}

/** Rules to offer with a question about the text; see `suggestFrom`. */
export async function suggestRules(text: string, options: AnalyseOptions = NOWHERE): Promise<readonly string[]> {
  return suggestFrom(await analyseCommand(text, options))
}

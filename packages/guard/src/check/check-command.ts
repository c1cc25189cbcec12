// The whole judgement of a command line; its public side is judge.ts.
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
  Construct,
  Judgement,
  JudgeOptions,
  Reason,
  SimpleCommand,
} from '../words/types.ts'
import { judgeProgram, judgeSurroundings, pathOptions, type SimpleOptions } from './check-simple.ts'
import { disasterOf } from './disasters.ts'
import { notesOf } from './traps.ts'

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

export async function judgeCommand(text: string, options: JudgeOptions): Promise<Judgement> {
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
    const around = judgeSurroundings(command, simpleOptions)
    reasons.push(...around)
    const own = judgeProgram(command, simpleOptions)
    if (own.length > 0) {
      readOnly = false
      if (!rules.some((it) => ruleCovers(it, command))) reasons.push(...own)
    }
    if (options.allowEdits && around.length === 0 && !harmlessSurroundings(command))
      readOnly &&= judgeSurroundings(command, { ...simpleOptions, allowEdits: false }).length === 0
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

export async function suggestRules(text: string, options: AnalyseOptions = NOWHERE): Promise<readonly string[]> {
  return suggestFrom(await analyseCommand(text, options))
}

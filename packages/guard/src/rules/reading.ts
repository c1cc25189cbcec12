// A rule goes through the same analysis as a command, so that one that could never match is an error and not silent.
import { isShell, isWrapper, programNameOf, unwrap } from '../programs/wrappers.ts'
import { analyse, makeLook } from '../walk/analyse.ts'
import type { SimpleCommand } from '../words/types.ts'
import { literal } from '../words/words.ts'
import { innerIndex } from './covers.ts'
import { type CommandRule, type PatternWord, parseCommandRule, type RuleOrProblem } from './rule.ts'

/** Longer than any rule that a person writes. */
const LONGEST = 1_000
/** A rule depends on nothing but its text, so it is read once; every command is compared with all rules. */
const read = new Map<string, RuleOrProblem>()
const MOST_KEPT = 2_000

/** The effect of a rule: allow commands that it covers, or deny, or ask about, commands that it means. */
export type RuleUse = 'allow' | 'deny'

/** The rule, or what is wrong with it. A rule with a problem could never match. */
export function readRule(pattern: string, use: RuleUse): RuleOrProblem {
  const key = `${use} ${pattern}`
  const known = read.get(key)
  if (known !== undefined) return known
  const rule = ruleOf(pattern, use)
  if (read.size >= MOST_KEPT) read.clear()
  read.set(key, rule)
  return rule
}

function ruleOf(pattern: string, use: RuleUse): RuleOrProblem {
  if (pattern.length > LONGEST) return { problem: `The rule has more than ${LONGEST} characters.` }
  const rule = parseCommandRule(pattern)
  if ('problem' in rule) return rule
  if (/\s/.test(rule.program))
    return {
      problem: `No program is called ${JSON.stringify(rule.program)}. Quote words one by one, not the whole command.`,
    }
  const problem = problemOf(rule, use)
  return problem === undefined ? rule : { problem }
}

function problemOf(rule: CommandRule, use: RuleUse): string | undefined {
  const { simple, unknown } = analyse(rule.sample, { cwd: '/', roots: [], shell: 'bash' }, makeLook())
  const syntax = unknown.find((it) => /^(syntax|word|budget|characters|too long)$/.test(it.kind))
  if (syntax !== undefined) return syntax.why
  const command = simple.find((it) => it.text === rule.sample.trim()) ?? simple.at(0)
  if (command === undefined) return 'The shell finds no command in it.'
  if (command.assignments.length > 0 && command.written.length < rule.words.length)
    return 'Variables in front of a command are not part of a rule. Leave them out.'
  const differs = rule.words.findIndex((it, index) => !isReadAs(it, command, index))
  if (differs >= 0) return differently(rule, command, differs)
  const takenApart = command.script !== undefined && isShell(rule.program)
  if (takenApart && (use === 'allow' || rule.exact))
    return `The text that ${rule.program} runs is parsed. Write a rule for the command in it.`
  if (use === 'deny') return undefined
  const [construct] = unknown
  if (construct !== undefined) return `No rule can allow it. ${construct.why}`
  return namesInner(rule)
    ? undefined
    : `${rule.program} runs another program, which the rule must name: ${rule.program} PROGRAM *.`
}

const isReadAs = (word: PatternWord, { written }: SimpleCommand, index: number): boolean => {
  const given = written[index]
  if (given?.value === undefined) return false
  return given.value === (word.type === 'any' ? 'x' : word.pieces.join('x'))
}

function differently({ program, words }: CommandRule, { written }: SimpleCommand, index: number): string {
  const word = words[index]!
  const text = word.type === 'any' ? '*' : word.pieces.join('*')
  if (text.startsWith('~')) return 'The shell replaces "~" by the home folder. Write the whole path.'
  const rest = written.map((it) => it.value ?? it.text).join(' ')
  return `The shell reads it as ${JSON.stringify(rest)}. Write a rule for that, without ${JSON.stringify(index === 0 ? program : text)}.`
}

/** Whether a rule for a program that runs another one names that one before its first wildcard. */
function namesInner({ words }: CommandRule): boolean {
  const end = words.findIndex((it) => it.type === 'any' || it.pieces.length > 1)
  if (end < 0) return true
  const written = words.slice(0, end).map((it) => literal(it.type === 'any' ? '' : it.pieces[0]!))
  // With one more word for the wildcard, the wrapper may run that word.
  const { start } = unwrap([...written, literal('x')])
  const inner = innerIndex([...written, literal('x')], start)
  return inner === undefined ? !isWrapper(programNameOf(written) ?? '') : inner < written.length
}

/**
 * What is wrong with a pattern of a rule about commands; undefined when nothing is. For `checkPattern` of a tool.
 *
 * @param kind what the rule does; a rule that allows must name more than one that denies or asks
 * @example commandPatternProblem('git push; rm *') // 'A rule is one command; ";" stands between commands. …'
 */
export function commandPatternProblem(pattern: string, kind: 'allow' | 'ask' | 'deny' = 'allow'): string | undefined {
  const rule = readRule(pattern, kind === 'allow' ? 'allow' : 'deny')
  return 'problem' in rule ? rule.problem : undefined
}

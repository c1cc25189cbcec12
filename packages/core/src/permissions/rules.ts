// Rules as people write them: `tool`, `prefix*`, `tool(argument pattern)`.

import { defined } from '../checks/defined.ts'
import { matchesWildcard } from '../checks/wildcard.ts'
import { OxbowError } from '../errors.ts'
import type { DecisionContext, RuleKind, Tool } from '../tools/tool.ts'
import { argumentMatches, argumentPatternProblem } from './argument-pattern.ts'

export interface Rule {
  /** As written. */
  readonly text: string
  /** A tool's name, with `*` for any run of characters. */
  readonly tool: string
  /** Interpreted by the tool's `matches`; without it any call of the tool matches. */
  readonly pattern?: string
  /** For a remembered rule: the origin of the tool that it was accepted for; '' is the agent's own. */
  readonly origin?: string
}

const FORM = /^([A-Za-z0-9_*-]{1,128})(?:\((.+)\))?$/s

/** @throws OxbowError `rule_invalid`, naming the rule and what is wrong with it */
export function parseRule(text: string): Rule {
  const [, tool, pattern] = FORM.exec(text) ?? []
  if (tool === undefined)
    throw invalid(text, 'write it as TOOL or TOOL(PATTERN); a tool is letters, digits, _ and -, with * for any of them')
  return { text, tool, ...defined({ pattern }) }
}

/**
 * A rule that can never match is a mistake, and one that denies nothing is a dangerous one.
 *
 * @throws OxbowError `rule_invalid`
 */
export function checkRule(rule: Rule, kind: RuleKind, tools: readonly Tool[]): void {
  const named = tools.filter((it) => namesTool(rule, kind, it))
  if (named.length === 0)
    throw invalid(
      rule.text,
      `it matches none of the tools (${tools.map((it) => it.name).join(', ') || 'there are none'})`,
    )
  if (rule.pattern === undefined) return
  const problem = named.map((it) => patternProblem(rule.pattern!, kind, it)).find((it) => it !== undefined)
  if (problem !== undefined) throw invalid(rule.text, problem)
}

/** Deny and ask rules match a tool by each of its names, so that none is lost when the tool is renamed. */
export function namesTool(
  { tool, origin }: Rule,
  kind: RuleKind,
  it: Pick<Tool, 'name'> & Partial<Pick<Tool, 'aliases' | 'origin'>>,
): boolean {
  if (origin !== undefined && origin !== (it.origin ?? '')) return false
  const names = kind === 'allow' ? [it.name] : [it.name, ...(it.aliases ?? [])]
  return names.some((name) => matchesWildcard(tool, name))
}

/** An invalid answer of a tool. */
export interface MatchFault {
  readonly fault: string
}

export type MatchAnswer = boolean | 'unknown' | MatchFault

export const isFault = (answer: MatchAnswer): answer is MatchFault => typeof answer === 'object'

/**
 * Whether the rule matches the call. For a rule that denies or asks: `unknown` if the tool cannot say; a pattern that
 * the tool cannot read matches all of its calls; any answer but true, false and `unknown`, and an error, is a fault.
 * For an allow rule, only true is a match. A promise only where the tool returns one: there may be hundreds of
 * rules.
 */
export function matchesCall(
  rule: Rule,
  kind: RuleKind,
  tool: Tool,
  input: Readonly<Record<string, unknown>>,
  context: DecisionContext,
): MatchAnswer | Promise<MatchAnswer> {
  if (!namesTool(rule, kind, tool)) return false
  const { pattern } = rule
  if (pattern === undefined) return true
  if (patternProblem(pattern, kind, tool) !== undefined) return kind !== 'allow'
  if (tool.matches === undefined) return argumentMatches(pattern, input, kind)
  const read = (answer: unknown): MatchAnswer => {
    if (kind === 'allow') return answer === true
    if (answer === true || answer === false || answer === 'unknown') return answer
    const given = answer instanceof Error ? `the error "${answer.message}"` : (JSON.stringify(answer) ?? String(answer))
    return {
      fault: `matches of ${tool.name} answered ${given} for this rule. It must answer true, false or "unknown".`,
    }
  }
  try {
    const answer: unknown = tool.matches(pattern, input, kind, context)
    return answer instanceof Promise ? answer.then(read, read) : read(answer)
  } catch (error) {
    return read(error)
  }
}

/** Whether a deny rule matches every call of the tool, with any arguments. */
export const forbidsAll = (rule: Rule, tool: Tool): boolean =>
  namesTool(rule, 'deny', tool) &&
  (rule.pattern === undefined || patternProblem(rule.pattern, 'deny', tool) !== undefined)

const patternProblem = (pattern: string, kind: RuleKind, tool: Tool): string | undefined =>
  tool.matches === undefined ? argumentPatternProblem(pattern, tool) : tool.checkPattern?.(pattern, kind)

const invalid = (text: string, what: string) =>
  new OxbowError('rule_invalid', `permission rule ${JSON.stringify(text)}: ${what}`)

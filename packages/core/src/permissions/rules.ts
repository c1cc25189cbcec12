// Rules as people write them: `tool`, `prefix*`, `tool(argument pattern)`.

import { matchesWildcard } from '../checks/wildcard.ts'
import { OxbowError } from '../errors.ts'
import type { RuleKind, Tool } from '../tools/tool.ts'

export interface Rule {
  /** As it was written. */
  readonly text: string
  /** A tool's name, with `*` for any run of characters. */
  readonly tool: string
  /** Interpreted by the tool's `matches`; a call matches without it whatever its arguments are. */
  readonly pattern?: string
  /** Of a rule that a person has accepted: the origin of the tool that it was accepted for; '' is the agent's own. */
  readonly origin?: string
}

const FORM = /^([A-Za-z0-9_*-]{1,128})(?:\((.+)\))?$/s

/** @throws OxbowError `rule_invalid`, naming the rule and what is wrong with it */
export function parseRule(text: string): Rule {
  const [, tool, pattern] = FORM.exec(text) ?? []
  if (tool === undefined)
    throw invalid(text, 'write it as TOOL or TOOL(PATTERN); a tool is letters, digits, _ and -, with * for any of them')
  return { text, tool, ...(pattern !== undefined && { pattern }) }
}

/**
 * Rules that could never match are mistakes of whoever wrote them, and a rule that denies nothing is a dangerous one.
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
  const deaf = named.filter((it) => it.matches === undefined).map((it) => it.name)
  if (deaf.length > 0) throw invalid(rule.text, `${deaf.join(', ')} cannot interpret a pattern of arguments`)
  const problem = named.map((it) => it.checkPattern?.(rule.pattern!)).find((it) => it !== undefined)
  if (problem !== undefined) throw invalid(rule.text, problem)
}

/** Rules that take away mean a tool by each of its names, so that none is lost when it has to be called otherwise. */
export function namesTool(
  { tool, origin }: Rule,
  kind: RuleKind,
  it: Pick<Tool, 'name'> & Partial<Pick<Tool, 'aliases' | 'origin'>>,
): boolean {
  if (origin !== undefined && origin !== (it.origin ?? '')) return false
  const names = kind === 'allow' ? [it.name] : [it.name, ...(it.aliases ?? [])]
  return names.some((name) => matchesWildcard(tool, name))
}

/**
 * Whether the rule means the call. Of a rule that forbids or asks, `unknown` if that cannot be told; a pattern that the tool
 * cannot read then stands for all of its calls. For `allow` whatever is not a plain yes is no match.
 */
export async function matchesCall(
  rule: Rule,
  kind: RuleKind,
  tool: Tool,
  input: Readonly<Record<string, unknown>>,
): Promise<boolean | 'unknown'> {
  if (!namesTool(rule, kind, tool)) return false
  const { pattern } = rule
  if (pattern === undefined) return true
  if (!isReadable(pattern, tool)) return kind !== 'allow'
  const answer: unknown = await tool.matches?.(pattern, input, kind)
  if (kind === 'allow') return answer === true
  return answer === 'unknown' ? answer : Boolean(answer)
}

/** Whether a deny rule means every call of the tool, whatever its arguments. */
export const forbidsAll = (rule: Rule, tool: Tool): boolean =>
  namesTool(rule, 'deny', tool) && (rule.pattern === undefined || !isReadable(rule.pattern, tool))

const isReadable = (pattern: string, { matches, checkPattern }: Tool): boolean =>
  matches !== undefined && checkPattern?.(pattern) === undefined

const invalid = (text: string, what: string) =>
  new OxbowError('rule_invalid', `permission rule ${JSON.stringify(text)}: ${what}`)

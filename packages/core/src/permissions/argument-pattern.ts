// Patterns of rules for tools that do not read patterns themselves, such as those of MCP servers: `branch=release/*`.

import { matchesWildcard } from '../checks/wildcard.ts'
import type { RuleKind, Tool } from '../tools/tool.ts'

const FORM = /^([^=*\s]+)=(.*)$/s

/**
 * What is wrong with a pattern on an argument of the tool; undefined when nothing is.
 *
 * @example argumentPatternProblem('brunch=main', push) // 'push has no argument "brunch". Arguments: branch, force'
 */
export function argumentPatternProblem(pattern: string, { name, jsonSchema }: Tool): string | undefined {
  const names = Object.keys((jsonSchema.properties as object | undefined) ?? {})
  const [, argument] = FORM.exec(pattern) ?? []
  if (argument === undefined)
    return `${name} cannot interpret a pattern of arguments other than NAME=TEXT: ${JSON.stringify(pattern)}. Arguments: ${names.join(', ') || 'none'}`
  if (names.includes(argument)) return undefined
  return `${name} has no argument ${JSON.stringify(argument)}. Arguments: ${names.join(', ') || 'none'}`
}

/**
 * Whether a call has an argument that the pattern matches. Texts, numbers and booleans are compared as they are
 * written,
 * `*` is any run of characters. Of a list a rule that denies or asks matches with one element, a rule that allows only
 * with all. An object cannot be compared: `unknown`.
 *
 * @example argumentMatches('branch=release/*', { branch: 'release/1' }, 'deny') // true
 */
export function argumentMatches(
  pattern: string,
  input: Readonly<Record<string, unknown>>,
  kind: RuleKind,
): boolean | 'unknown' {
  const [, argument = '', wanted = ''] = FORM.exec(pattern) ?? []
  const value = Object.hasOwn(input, argument) ? input[argument] : undefined
  if (value === undefined) return false
  const answers = (Array.isArray(value) ? value : [value]).map((it) => compare(wanted, it))
  if (kind === 'allow') return answers.length > 0 && answers.every((it) => it === true)
  return answers.includes(true) || (answers.includes('unknown') && 'unknown')
}

const compare = (wanted: string, value: unknown): boolean | 'unknown' =>
  typeof value === 'object' && value !== null ? 'unknown' : matchesWildcard(wanted, String(value))

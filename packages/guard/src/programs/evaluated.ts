// Builtins of shells that evaluate their operands a second time: an index of an array in a name is arithmetic, and
// arithmetic runs the substitutions in it. Whatever a rule says of such a command, it is not followed.

import type { Argument } from '../words/types.ts'
import { checkFormat, checkTest } from './small.ts'

/** A word that the builtin can only take as a name, an option or a text without an index. */
const isPlain = ({ value }: Argument): boolean => value !== undefined && !value.includes('[')

/** `NAME=text`, where the text is not evaluated: the name alone has to be plain. */
const assignsPlainly = ({ prefix, splits, value }: Argument): boolean =>
  value === undefined ? /^[A-Za-z_]\w*=/.test(prefix) && !splits : /^[^[=]*(=|$)/.test(value)

/** Attributes that make the shell evaluate what is assigned, or follow a name. */
const EVALUATING = /^[-+][A-Za-z]*[in]/

const namesOnly = (words: readonly Argument[]): boolean => words.every(isPlain)
const declares = (words: readonly Argument[]): boolean =>
  words.every(assignsPlainly) && !words.some((it) => EVALUATING.test(it.value ?? it.prefix))
const never = (): boolean => false
const passes = (check: (words: readonly Argument[]) => string | readonly Argument[]) => (words: readonly Argument[]) =>
  typeof check(words) !== 'string'
/** Calls with one of these options run a text, or evaluate a name. */
const without = (options: RegExp) => (words: readonly Argument[]) =>
  words.every((it) => it.value !== undefined && !options.test(it.value))

/** For each builtin the calls that evaluate nothing. */
const CALLS: Readonly<Record<string, (words: readonly Argument[]) => boolean>> = {
  '[': (words) => passes(checkTest)(words.at(-1)?.value === ']' ? words.slice(0, -1) : words),
  bind: without(/^-\w*x/),
  compgen: without(/^-\w*[CFW]/),
  complete: without(/^-\w*[CFW]/),
  declare: declares,
  enable: without(/^-\w*f/),
  export: declares,
  getopts: namesOnly,
  hash: without(/^-\w*p/),
  let: never,
  local: declares,
  mapfile: (words) => namesOnly(words) && without(/^-\w*C/)(words),
  printf: passes(checkFormat),
  read: namesOnly,
  readarray: (words) => namesOnly(words) && without(/^-\w*C/)(words),
  readonly: declares,
  test: passes(checkTest),
  typeset: declares,
  unset: namesOnly,
  wait: namesOnly,
}

/** Why the operands of a builtin may be run, or nothing. */
export function evaluates(name: string, words: readonly Argument[]): string | undefined {
  if (!Object.hasOwn(CALLS, name) || CALLS[name]!(words)) return undefined
  return `${name} may evaluate its operands, and a text that is evaluated can run commands.`
}

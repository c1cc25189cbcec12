// Checks of commands whose harmless calls are not a list of options.

import type { Argument } from '../words/types.ts'
import { isPlainName, mayBeSecret } from './environment.ts'
import type { Call } from './options.ts'
import { optionList, readOptions } from './options.ts'

type Raw = string | readonly Argument[]

const values = (words: readonly Argument[]): readonly string[] => words.map((it) => it.value ?? '\0')

/** `date`: an operand without a plus sets the clock. */
export const checkDate = ({ operands }: Call): string | undefined =>
  operands.every((it) => it.prefix.startsWith('+') && !it.splits) && operands.length <= 1
    ? undefined
    : 'It may set the clock.'

export const checkNumber = (words: readonly Argument[]): Raw =>
  words.length <= 1 && words.every((it) => /^(\d+(\.\d+)?[smh]?|"?\$\?"?)$/.test(it.value ?? it.text))
    ? []
    : 'It takes one number.'

export const checkPlainNames = ({ operands }: Call): string | undefined =>
  operands.every((it) => it.value !== undefined && isPlainName(it.value))
    ? undefined
    : 'It changes a variable that other programs look at.'

/** `printenv` without a name shows all that the environment holds, and keys are what it often holds. */
export const checkShownVariables = ({ operands }: Call): string | undefined =>
  operands.length > 0 && operands.every((it) => it.value !== undefined && !mayBeSecret(it.value))
    ? undefined
    : 'It may show secrets of the environment.'

export const checkRead = (call: Call): string | undefined =>
  call.options.every((it) => it.name !== '-a' || isPlainName(it.value?.value ?? ''))
    ? checkPlainNames(call)
    : 'It sets a variable that other programs look at.'

/**
 * `set -euo pipefail` and its parts. The rest replaces the arguments of the script or changes how it is read; `-x` and
 * `-v` print the values of variables.
 */
export const checkSet = (words: readonly Argument[]): Raw => {
  const texts = values(words)
  const known = texts.every((it, index) =>
    /^[-+][euo]*o$/.test(it)
      ? /^(pipefail|errexit|nounset)$/.test(texts[index + 1] ?? '')
      : /^[-+][eu]+$/.test(it) || (texts[index - 1] ?? '').endsWith('o'),
  )
  return known && texts.length > 0 ? [] : 'It changes how the shell reads the rest.'
}

/** `printf`: an option or `%n` sets a variable. */
export const checkFormat = (words: readonly Argument[]): Raw => {
  const [format, ...rest] = words[0]?.value === '--' ? words.slice(1) : words
  if (format?.value === undefined || format.value.startsWith('-')) return 'The format is not written out.'
  if (/%[^%]*?n/.test(format.value.replace(/%[-+ #0]*(\*|\d+)?(\.(\*|\d+)?)?[sdiuoxXfeEgGcbq%]/g, '')))
    return 'The format may set a variable.'
  return rest
}

const UNARY = /^-[bcdefghknprstuwxzGLNOS]$/
const BINARY = /^(=|==|!=|<|>|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef)$/

/** `test`: `-v` evaluates the name of a variable. Words that decide which operator applies must be literal. */
export const checkTest = (words: readonly Argument[]): Raw => {
  const refuse = 'The test is not one of the forms that are known to be harmless.'
  if (words.some((it) => it.splits)) return 'A variable without quotes may become an operator of the test.'
  const rest = words[0]?.value === '!' ? words.slice(1) : words
  const [one, two, three] = rest
  if (rest.length <= 1) return []
  if (rest.length === 2) return UNARY.test(one!.value ?? '') ? [] : refuse
  if (rest.length === 3 && two!.value !== undefined) {
    // Some shells evaluate what these compare.
    if (
      /^-[egln][qet]$/.test(two!.value) &&
      [one!, three!].some((it) => it.value !== undefined && !/^[-+]?\d+$/.test(it.value))
    )
      return refuse
    if (BINARY.test(two!.value)) return []
    return one!.value === '(' && three!.value === ')' ? [] : refuse
  }
  // `a -o b` and `a -a b` are split only where they are unambiguous.
  if (rest.every((it) => it.value !== undefined)) {
    const parts: Argument[][] = [[]]
    for (const it of rest) {
      if (/^-[ao]$/.test(it.value!)) parts.push([])
      else parts.at(-1)!.push(it)
    }
    if (parts.length > 1 && parts.every((it) => it.length > 0 && it.length <= 3 && typeof checkTest(it) !== 'string'))
      return []
  }
  return refuse
}

/** Options of `ps`; a colon means that the next word is the value. */
const PS_OPTIONS =
  /^-(e|f|ef|A|a|x|F|l|L|H|T|eLf|efww|w+|ww|aux|ef?jH|axu)$|^--(no-headers|forest|headers|sort[=][\w,+-]*|[p]?pid=[\d,]*|cols=\d*)$/
const PS_WITH_VALUE = /^-(p|o|C|u|U|t|q|G|g|axo|eo|Ao)$|^--(sort|pid|ppid|cols)$/

/** `ps`: the letter e without a dash, and the field `environ`, show the environment of other processes. */
export const checkProcesses = (words: readonly Argument[]): Raw => {
  const texts = values(words)
  for (let index = 0; index < texts.length; index += 1) {
    const text = texts[index]!
    if (/^(aux?w*f?|axf?|axjf|ax?uf?|ux?|x|[0-9,]+)$/.test(text) || PS_OPTIONS.test(text)) continue
    if (!PS_WITH_VALUE.test(text)) return `What ${words[index]!.text} shows is not known.`
    index += 1
    const value = texts[index] ?? ''
    if (!/^[\w%,=:+.][\w%,=:+.-]*$/.test(value) || /environ/i.test(value)) return `What ${text} shows is not known.`
  }
  return []
}

export const checkTop = ({ options }: Call): string | undefined =>
  options.some((it) => it.name === '-b' || it.name === '-l')
    ? undefined
    : 'It waits for keys, and its keys end processes.'

const JQ = optionList(
  '-acCejnrRsSM --compact-output --color-output --monochrome-output --exit-status --null-input --raw-output --raw-input --slurp --sort-keys --tab --indent: --join-output --ascii-output --seq --stream --raw-output0',
)

/** `ip`: its options may be abbreviated, and `-b FILE` runs the commands in a file. */
export const checkIp = (words: readonly Argument[]): Raw =>
  /^(-(4|6|c|d|h|j|o|p|s|br|brief|color|json) )*(a|addr|address|l|link|r|route|n|neigh)( (s|show|ls|list)( (dev )?\w[\w.]*)?)?$/.test(
    values(words).join(' '),
  )
    ? []
    : 'Only showing addresses, links and routes reads.'

/** `jq`: a program can import files and read the environment. Returns the files that it is given. */
export const checkJq = (words: readonly Argument[]): Raw => {
  // --arg NAME VALUE takes two words.
  const rest: Argument[] = []
  for (let index = 0; index < words.length; index += 1) {
    const text = words[index]!.value
    if (text === '--arg' || text === '--argjson') {
      if (words[index + 1]?.value === undefined || words[index + 2] === undefined || words[index + 2]!.splits)
        return 'The arguments are not known.'
      index += 2
    } else rest.push(words[index]!)
  }
  const call = readOptions(rest, JQ)
  if ('problem' in call) return call.problem
  const [program, ...files] = call.operands
  if (program === undefined) return []
  if (program.value === undefined) return 'The program is not known.'
  if (/\b(import|include|input_line_number|modulemeta|get_search_list)\b/.test(program.value))
    return 'The program reads other files.'
  // A field may have the name, as in `.env`; the function and the variable show the environment. Space and comments may
  // stand between the dollar sign and the name.
  if (/(^|[^.\w])(env|ENV)\b|\.\.\s*env\b/.test(program.value)) return 'The program may read the environment.'
  return files
}

// `awk`: a program is split into tokens; only one that reads its input and prints passes.

import type { Argument } from '../words/types.ts'
import { optionList, readOptions } from './options.ts'

const OPTIONS = optionList('-F: -v: --field-separator: --assign: --posix --traditional --re-interval')

/** Returns what is wrong, or the files that are read. */
export function checkAwk(words: readonly Argument[]): string | readonly Argument[] {
  const call = readOptions(words, OPTIONS, { permute: false })
  if ('problem' in call) return call.problem
  for (const { name, value } of call.options) {
    if ((name === '-v' || name === '--assign') && !/^(?!ARG|ENVIRON)[A-Za-z_]\w*=/.test(value?.prefix ?? ''))
      return 'It sets a variable that is not known.'
  }
  const [program, ...files] = call.operands
  if (program?.value === undefined) return 'The program is not known.'
  const problem = problemOf(program.value)
  if (problem !== undefined) return problem
  // An operand with an equals sign assigns; and a minus would be an option of some versions.
  if (files.some((it) => /=/.test(it.value ?? it.prefix) || (it.prefix.startsWith('-') && it.value !== '-')))
    return 'An operand may be an assignment or an option.'
  return files
}

const FORBIDDEN = new Set([
  'system',
  'getline',
  'close',
  'ARGV',
  'ARGC',
  'ARGIND',
  'SYMTAB',
  'FUNCTAB',
  'PROCINFO',
  'extension',
  'ENVIRON',
])

type Token = { readonly type: 'word' | 'number' | 'string' | 'regex' | 'operator'; readonly text: string }

function problemOf(program: string): string | undefined {
  const tokens = tokensOf(program)
  if (tokens === undefined) return 'The program is not understood.'
  let depth = 0
  let braces = 0
  let printed = false
  for (const [index, { type, text }] of tokens.entries()) {
    if (type === 'word') {
      if (FORBIDDEN.has(text)) return `The program uses ${text}.`
      if (text !== 'print' && text !== 'printf') continue
      // A statement may stand in the head of a `for` loop, where `>` writes as it does elsewhere.
      if (depth > 0) return 'The program prints in the head of a loop.'
      printed = true
      continue
    }
    if (type !== 'operator') continue
    if (text === '(' || text === '[') depth += 1
    else if (text === ')' || text === ']') depth -= 1
    else if (text === '|' || text === '|&') return 'The program has a pipe.'
    else if (text === '@') return 'The program calls or loads something by its name.'
    else if (text === '>>') return 'The program writes a file.'
    // After `print` it writes to a file or compares, as the grammar has it; before `print` it compares.
    else if (text === '>' && printed) return 'The program may write a file.'
    else if (text === '{') braces += 1
    else if (text === '}') {
      braces -= 1
      if (braces <= 0) printed = false
    }
    if (text === '<' && tokens[index - 1]?.text === 'getline') return 'The program reads a file.'
  }
  return depth === 0 ? undefined : 'The program is not understood.'
}

/** `undefined` where a slash could begin a pattern or divide. */
function tokensOf(program: string): readonly Token[] | undefined {
  const tokens: Token[] = []
  let rest = program
  while (rest !== '') {
    const blank = /^([ \t\r]+|\\\n|#[^\n]*)/.exec(rest)
    if (blank) {
      rest = rest.slice(blank[0].length)
      continue
    }
    const next = rest.startsWith('/') ? slash(rest, tokens.at(-1)) : plain(rest)
    if (next === undefined) return undefined
    tokens.push(next)
    rest = rest.slice(next.text.length)
  }
  return tokens
}

/** Behind these a value may begin, or they are one. */
const KEYWORDS = new Set(
  'BEGIN BEGINFILE END ENDFILE break case continue default delete do else exit for func function if in length next nextfile print printf return switch while'.split(
    ' ',
  ),
)

const PLAIN: readonly (readonly [Token['type'], RegExp])[] = [
  ['string', /^"(?:[^"\\\n]|\\[^\n])*"/],
  ['number', /^(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/],
  ['word', /^[A-Za-z_]\w*/],
  ['operator', /^(?:\|\||&&|\|&|>>|>=|<=|==|!=|\+\+|--|\+=|-=|\*=|%=|\^=|\*\*=?|[-+*%^!<>|?:~$=(),;{}\n[\]@])/],
]

function plain(rest: string): Token | undefined {
  for (const [type, pattern] of PLAIN) {
    const found = pattern.exec(rest)
    if (found !== null) return { type, text: found[0] }
  }
  return undefined
}

/** Behind a value a slash divides, elsewhere it begins a pattern; in some places that is not sure. */
function slash(rest: string, last: Token | undefined): Token | undefined {
  if (last?.type === 'word' && KEYWORDS.has(last.text)) return undefined
  if (last?.text === ')' || last?.text === '++' || last?.text === '--') return undefined
  if (last !== undefined && (last.type !== 'operator' || last.text === ']')) return { type: 'operator', text: '/' }
  // A slash in brackets ends the pattern for some versions and not for others.
  const found = /^\/(?:[^/\\[\n]|\\[^\n]|\[\^?\]?(?:[^\]/\\\n]|\\[^\n/])*\])+\//.exec(rest)
  return found === null ? undefined : { type: 'regex', text: found[0] }
}

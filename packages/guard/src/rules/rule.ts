// How a rule about commands is written.
import { withoutManagement } from './spellings.ts'

export type PatternWord =
  /** Any words, or none. */
  | { readonly type: 'any' }
  /** One word; between the pieces there may be anything. */
  | { readonly type: 'word'; readonly pieces: readonly string[] }

export interface CommandRule {
  readonly words: readonly PatternWord[]
  /** Nothing in it is left open. */
  readonly exact: boolean
  /** The first word. */
  readonly program: string
  /** The words that are not options, for rules that deny or ask. */
  readonly operands: readonly PatternWord[]
  /** Its options, each as the pieces between wildcards. */
  readonly options: readonly (readonly string[])[]
  /** The rule as a command, with a letter for each wildcard. */
  readonly sample: string
}

export type RuleOrProblem = CommandRule | { readonly problem: string }

/**
 * Reads a rule: words as in a shell, with quotes. `*` as a separate word matches any words or none, `*` inside a
 * word for any characters of this one word: `git commit *`, `npm run test:*`.
 *
 * @returns the rule, or what is wrong with it; such a rule could never match.
 */
export function parseCommandRule(pattern: string): RuleOrProblem {
  const words: PatternWord[] = []
  let pieces: string[] | undefined
  let quote = ''
  let bare = true
  let sample = ''
  const end = (): void => {
    if (pieces === undefined) return
    const any = bare && pieces.length === 2 && pieces.every((it) => it === '')
    words.push(any ? { type: 'any' } : { type: 'word', pieces })
    pieces = undefined
    bare = true
  }
  for (let index = 0; index < pattern.length; index += 1) {
    const char = pattern[index]!
    sample += char === '*' && quote === '' ? 'x' : char
    if (quote === '' && (char === ' ' || char === '\t')) {
      end()
      continue
    }
    if (/[\n\r\0]/.test(char)) return { problem: 'A rule is one line.' }
    pieces ??= ['']
    if (quote !== '') {
      if (char === quote) quote = ''
      else pieces.push(pieces.pop()! + char)
    } else if (char === "'" || char === '"') {
      quote = char
      bare = false
    } else if (char === '\\' && index + 1 < pattern.length) {
      index += 1
      sample += pattern[index]!
      pieces.push(pieces.pop()! + pattern[index]!)
      bare = false
    } else if (char === '*') pieces.push('')
    else if (/[;&|<>()`$]/.test(char))
      return {
        problem: `A rule is one command; "${char}" stands between commands. Write one rule for each, or quote it.`,
      }
    else pieces.push(pieces.pop()! + char)
  }
  if (quote !== '') return { problem: `The quote ${quote} is not closed.` }
  end()
  const [first] = words
  if (first === undefined) return { problem: 'The rule is empty.' }
  if (first.type === 'any' || first.pieces.length > 1)
    return { problem: 'The rule must begin with the name of a program.' }
  const isOption = (it: PatternWord): boolean => it.type === 'word' && /^-./.test(it.pieces[0]!)
  return {
    words,
    sample,
    exact: words.every((it) => it.type === 'word' && it.pieces.length === 1),
    program: first.pieces[0]!,
    operands: withoutManagement(
      words.filter((it) => !isOption(it)),
      (it) => (it?.type === 'word' && it.pieces.length === 1 ? it.pieces[0] : undefined),
    ),
    options: words.flatMap((it) =>
      it.type === 'word' && isOption(it) && it.pieces.join('*') !== '--' ? [it.pieces] : [],
    ),
  }
}

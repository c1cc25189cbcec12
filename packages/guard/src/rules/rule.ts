// How a rule about commands is written. It stands alone so that settings can be checked without the rest.

type PatternWord =
  /** Any words, or none. */
  | { readonly type: 'any' }
  /** One word; between the pieces there may be anything. */
  | { readonly type: 'word'; readonly pieces: readonly string[] }

export interface CommandRule {
  readonly words: readonly PatternWord[]
  /** Nothing in it is left open. */
  readonly exact: boolean
}

/**
 * Reads a rule: words as in a shell, with quotes. `*` as a word of its own stands for any words or none, `*` inside of a
 * word for any characters of this one word: `git commit *`, `npm run test:*`.
 *
 * @returns the rule, or what is wrong with it; such a rule could never match.
 */
export function readCommandRule(pattern: string): CommandRule | { readonly problem: string } {
  const words: PatternWord[] = []
  let pieces: string[] | undefined
  let quote = ''
  let bare = true
  const end = (): void => {
    if (pieces === undefined) return
    const any = bare && pieces.length === 2 && pieces.every((it) => it === '')
    words.push(any ? { type: 'any' } : { type: 'word', pieces })
    pieces = undefined
    bare = true
  }
  for (let index = 0; index < pattern.length; index += 1) {
    const char = pattern[index]!
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
  return { words, exact: words.every((it) => it.type === 'word' && it.pieces.length === 1) }
}

/**
 * What is wrong with a pattern of a rule about commands; undefined when nothing is. For `checkPattern` of a tool.
 *
 * @example commandPatternProblem('git push; rm *') // 'A rule is one command; ";" stands between commands. …'
 */
export function commandPatternProblem(pattern: string): string | undefined {
  const rule = readCommandRule(pattern)
  return 'problem' in rule ? rule.problem : undefined
}

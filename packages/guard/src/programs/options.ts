// Reads the options of a command against a list of those that are known, the way getopt does. What is not on the list is
// a separate answer: long options may be abbreviated and short ones joined, so only exact names count.
import type { Argument } from '../words/types.ts'

export type ValueKind = 'none' | 'text' | 'path' | 'optional'

export interface OptionList {
  readonly short: ReadonlyMap<string, ValueKind>
  readonly long: ReadonlyMap<string, ValueKind>
  /** Takes `-20` for a number. */
  readonly number: boolean
}

export interface GivenOption {
  readonly name: string
  readonly value?: Argument
}

export interface Call {
  readonly options: readonly GivenOption[]
  readonly operands: readonly Argument[]
  /** Values of options that name files to be read. */
  readonly paths: readonly Argument[]
}

const KINDS: Readonly<Record<string, ValueKind>> = { ':': 'text', '@': 'path', '?': 'optional' }

/**
 * Reads a list such as `-alh -n: -f@ --color? --max-count:`. Letters behind one dash are options of one letter. A mark
 * behind the last one says that it takes a value: `:` a text, `@` the path of a file to read, `?` a text that must be
 * attached. `-#` allows a number.
 */
export function optionList(text: string): OptionList {
  const short = new Map<string, ValueKind>()
  const long = new Map<string, ValueKind>()
  let number = false
  for (const entry of text.split(/\s+/).filter(Boolean)) {
    const kind = KINDS[entry.at(-1)!]
    const name = kind === undefined ? entry : entry.slice(0, -1)
    if (name === '-#') number = true
    else if (name.startsWith('--')) long.set(name, kind ?? 'none')
    else for (const letter of name.slice(1)) short.set(`-${letter}`, kind ?? 'none')
  }
  return { short, long, number }
}

/** Whether the program could take the argument for an option. */
export const mayBeOption = ({ prefix, value }: Argument): boolean =>
  value === undefined ? prefix === '' || prefix.startsWith('-') : value.startsWith('-') && value !== '-'

type Problem = { readonly problem: string; readonly dynamic?: true }

/**
 * Takes the arguments apart. With `permute` (the default) options may follow operands. An argument whose value is not
 * known must be certain not to be an option; it is then an operand, or the value of the option before it.
 */
export function readOptions(
  words: readonly Argument[],
  list: OptionList,
  { permute = true }: { permute?: boolean } = {},
): Call | Problem {
  const options: GivenOption[] = []
  const operands: Argument[] = []
  const paths: Argument[] = []
  const take = (name: string, kind: ValueKind, value: Argument): Problem | undefined => {
    if (value.splits) return { problem: `The value of ${name} may become several words.`, dynamic: true }
    options.push({ name, value })
    if (kind === 'path') paths.push(value)
    return undefined
  }
  const next = (name: string, kind: ValueKind, index: number): Problem | undefined => {
    const value = words[index]
    if (value === undefined) return { problem: `${name} lacks its value.` }
    // Another version of the program may know the option without a value; then an option would follow here.
    if (value.value === undefined ? false : mayBeOption(value) && !/^-\d+$/.test(value.value))
      return { problem: `${name} is followed by ${value.text}, which may be an option.` }
    return take(name, kind, value)
  }

  for (let index = 0; index < words.length; index += 1) {
    const word = words[index]!
    if (!permute && operands.length > 0) {
      operands.push(word)
      continue
    }
    if (word.value === '--') {
      operands.push(...words.slice(index + 1))
      break
    }
    if (!mayBeOption(word)) {
      operands.push(word)
      continue
    }
    const text = word.value ?? word.prefix
    if (text === '') return { problem: `${word.text} may become an option.`, dynamic: true }

    if (text.startsWith('--')) {
      const equals = text.indexOf('=')
      const name = equals < 0 ? text : text.slice(0, equals)
      const kind = list.long.get(name)
      if (kind === undefined || (word.value === undefined && equals < 0))
        return word.value === undefined && equals < 0
          ? { problem: `Which option ${word.text} is, is known only when the shell runs.`, dynamic: true }
          : { problem: `The option ${name} is not known to be harmless.` }
      let problem: Problem | undefined
      if (equals >= 0) {
        if (kind === 'none') problem = { problem: `${name} takes no value.` }
        else problem = take(name, kind, { ...word, ...attached(word, equals + 1) })
      } else if (kind === 'none' || kind === 'optional') options.push({ name })
      else {
        index += 1
        problem = next(name, kind, index)
      }
      if (problem !== undefined) return problem
      continue
    }

    if (list.number && word.value !== undefined && /^-\d+$/.test(text)) {
      options.push({ name: '-#', value: word })
      continue
    }
    let at = 1
    for (; at < text.length; at += 1) {
      const name = `-${text[at]}`
      const kind = list.short.get(name)
      if (kind === undefined) return { problem: `The option ${name} is not known to be harmless.` }
      if (kind === 'none') {
        options.push({ name })
        continue
      }
      const rest = attached(word, at + 1)
      let problem: Problem | undefined
      if (rest.value !== '') problem = take(name, kind, { ...word, ...rest })
      else if (kind === 'optional') options.push({ name })
      else {
        index += 1
        problem = next(name, kind, index)
      }
      if (problem !== undefined) return problem
      break
    }
    if (at >= text.length && word.value === undefined)
      return { problem: `Which options ${word.text} has is known only when the shell runs.`, dynamic: true }
  }
  return { options, operands, paths }
}

const attached = (word: Argument, from: number): Pick<Argument, 'value' | 'prefix'> => ({
  prefix: word.prefix.slice(from),
  ...(word.value === undefined ? {} : { value: word.value.slice(from) }),
})

// `sed`: a script is read command by command; only those that change nothing but the output pass.

import type { Argument } from '../words/types.ts'
import { optionList, readOptions } from './options.ts'

const OPTIONS = optionList(
  '-nErsuz -e: --quiet --silent --expression: --regexp-extended --separate --unbuffered --null-data --posix --sandbox --debug',
)

/** Returns what is wrong, or the files that are read. */
export function checkSed(words: readonly Argument[]): string | readonly Argument[] {
  const call = readOptions(words, OPTIONS)
  if ('problem' in call) return call.problem
  const scripts = call.options.filter((it) => it.name === '-e' || it.name === '--expression').map((it) => it.value!)
  const files = scripts.length > 0 ? call.operands : call.operands.slice(1)
  if (scripts.length === 0) scripts.push(...call.operands.slice(0, 1))
  if (scripts.length === 0) return 'The script is missing.'
  for (const { value } of scripts) {
    if (value === undefined) return 'The script is not known.'
    if (!isHarmless(value)) return 'The script may write files or run commands, or is not known.'
  }
  return files
}

/** A strict reading: text that two versions of sed could read differently is not harmless. */
function isHarmless(script: string): boolean {
  let rest = script
  const take = (pattern: RegExp): boolean => {
    const found = pattern.exec(rest)
    if (found === null) return false
    rest = rest.slice(found[0].length)
    return true
  }
  /** Takes text up to the delimiter. GNU ends at the first one; BSD looks for the end of brackets before. */
  const takeUntil = (delimiter: string): boolean => {
    let bracket = false
    for (let index = 0; index < rest.length; index += 1) {
      const char = rest[index]!
      if (char === '\n') return false
      if (char === '\\') {
        index += 1
        if (rest[index] === '\n') return false
      } else if (char === delimiter) {
        if (bracket) return false
        rest = rest.slice(index + 1)
        return true
      } else if (char === '[') bracket = true
      else if (char === ']') bracket = false
    }
    return false
  }
  const takeAddress = (): boolean | undefined => {
    if (take(/^(\d+(~\d+)?|\$)/)) return true
    if (!rest.startsWith('/')) return undefined
    rest = rest.slice(1)
    return takeUntil('/') && take(/^[IM]*/)
  }

  for (;;) {
    take(/^[\s;]+/)
    if (rest === '') return true
    if (take(/^[{}]/)) continue
    const first = takeAddress()
    if (first === false) return false
    if (first === true && take(/^\s*,\s*/)) {
      if (!take(/^[+~]\d+/) && takeAddress() !== true) return false
    }
    take(/^[\s!]+/)
    if (take(/^{/)) continue
    if (take(/^[pPdDgGhHnNxz=](?=\s*($|[;}\n]))/)) continue
    if (take(/^[qQl]\s*\d*(?=\s*($|[;}\n]))/)) continue
    if (take(/^s/)) {
      const delimiter = rest[0]
      if (delimiter === undefined || !/[/|,#:@!%_~+=]/.test(delimiter)) return false
      rest = rest.slice(1)
      if (!takeUntil(delimiter) || !takeReplacement(delimiter) || !take(/^[gpiI\d]*(?=\s*($|[;}\n]))/)) return false
      continue
    }
    if (take(/^y\//)) {
      if (!takeReplacement('/') || !takeReplacement('/') || !take(/^(?=\s*($|[;}\n]))/)) return false
      continue
    }
    return false
  }

  function takeReplacement(delimiter: string): boolean {
    for (let index = 0; index < rest.length; index += 1) {
      const char = rest[index]!
      if (char === '\n') return false
      if (char === '\\') {
        index += 1
        if (rest[index] === '\n') return false
      } else if (char === delimiter) {
        rest = rest.slice(index + 1)
        return true
      }
    }
    return false
  }
}

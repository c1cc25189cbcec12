// Brace expansion as bash does it, on the units of a word.
import type { WorkBudget } from '../budget.ts'
import type { Unit } from './units.ts'

/** More words than this from one word are not followed. */
const MOST = 200

const isOpen = (unit: Unit | undefined): boolean => unit?.type === 'char' && !unit.quoted && unit.char === '{'
const isChar = (unit: Unit | undefined, char: string): boolean =>
  unit?.type === 'char' && !unit.quoted && unit.char === char

/**
 * The words that the braces of one word make, in order; `undefined` if that is not clear.
 *
 * @throws TooMuch
 */
export function expandBraces(units: readonly Unit[], budget: WorkBudget): readonly (readonly Unit[])[] | undefined {
  budget.spend('steps', units.length)
  const start = units.findIndex(isOpen)
  if (start < 0) return [units]
  const before = units.slice(0, start)

  let depth = 0
  let end = -1
  const commas: number[] = []
  for (let index = start; index < units.length; index += 1) {
    const unit = units[index]
    if (isOpen(unit)) depth += 1
    else if (isChar(unit, '}')) {
      depth -= 1
      if (depth === 0) {
        end = index
        break
      }
    } else if (depth === 1 && isChar(unit, ',')) commas.push(index)
  }

  const inner = units.slice(start + 1, end)
  if (end > 0 && commas.length > 0) {
    const tails = expandBraces(units.slice(end + 1), budget)
    if (tails === undefined) return undefined
    const words: Unit[][] = []
    for (const [index, from] of [start, ...commas].entries()) {
      const middles = expandBraces(units.slice(from + 1, commas[index] ?? end), budget)
      if (middles === undefined) return undefined
      budget.spend('steps', middles.length * tails.length * units.length)
      if (words.length + middles.length * tails.length > MOST) return undefined
      for (const middle of middles) for (const tail of tails) words.push([...before, ...middle, ...tail])
    }
    return words
  }

  const sequence = end > 0 ? expandSequence(inner) : undefined
  if (sequence !== undefined) {
    const tails = expandBraces(units.slice(end + 1), budget)
    if (tails === undefined || sequence.length * tails.length > MOST) return undefined
    budget.spend('steps', sequence.length * tails.length * units.length)
    return sequence.flatMap((middle) => tails.map((tail) => [...before, ...middle, ...tail]))
  }
  // `{}` and `{word}` stay as they are. Everything else with a comma or two dots is read differently by
  // different shells and versions.
  const rest = units.slice(start + 1)
  const plain = end > 0 && !inner.some((unit) => isOpen(unit) || unit.type !== 'char')
  const dots = rest.some((unit, index) => isChar(unit, '.') && isChar(rest[index + 1], '.'))
  if (!plain && (dots || rest.some((unit) => isChar(unit, ',')))) return undefined
  if (plain && inner.some((unit, index) => isChar(unit, '.') && isChar(inner[index + 1], '.'))) return undefined
  const tails = expandBraces(rest, budget)
  return tails?.map((tail) => [...before, units[start]!, ...tail])
}

/** `1..5`, `a..e`, `1..9..2` and, because shells differ in padding, nothing with a leading zero. */
function expandSequence(units: readonly Unit[]): Unit[][] | undefined {
  if (units.some((unit) => unit.type !== 'char' || unit.quoted)) return undefined
  const text = units.map((unit) => (unit.type === 'char' ? unit.char : '')).join('')
  const numbers = /^(-?(?:0|[1-9]\d{0,5}))\.\.(-?(?:0|[1-9]\d{0,5}))$/.exec(text)
  const letters = /^([a-z])\.\.([a-z])$/.exec(text) ?? /^([A-Z])\.\.([A-Z])$/.exec(text)
  const [from, to] = numbers
    ? [Number(numbers[1]), Number(numbers[2])]
    : letters
      ? [letters[1]!.charCodeAt(0), letters[2]!.charCodeAt(0)]
      : []
  if (from === undefined || to === undefined || Math.abs(to - from) >= MOST) return undefined
  const step = to < from ? -1 : 1
  return Array.from({ length: Math.abs(to - from) + 1 }, (_, index) => {
    const value = from + index * step
    return [...(numbers ? String(value) : String.fromCharCode(value))].map((char) => ({
      type: 'char',
      char,
      quoted: false,
    }))
  })
}

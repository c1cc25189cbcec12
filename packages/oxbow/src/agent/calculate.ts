// Arithmetic by a custom parser: nothing is ever evaluated as code.
import { tool } from '@oxbow/core'

const MAX_LENGTH = 500
const MAX_DEPTH = 50

/** A mistake in the expression; it becomes the text of the result. */
class CalculationError extends Error {}

const functions: Record<string, (...values: number[]) => number> = {
  abs: Math.abs,
  ceil: Math.ceil,
  floor: Math.floor,
  ln: Math.log,
  log10: Math.log10,
  max: Math.max,
  min: Math.min,
  round: Math.round,
  sqrt: Math.sqrt,
}
const constants: Record<string, number> = { e: Math.E, pi: Math.PI }

const TOKEN = /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z]\w*)|(\*\*|[-+*/%^(),×÷−]))/y
const SPELLING = new Map([
  ['**', '^'],
  ['×', '*'],
  ['÷', '/'],
  ['−', '-'],
])

function tokens(expression: string): string[] {
  const found: string[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < expression.trimEnd().length) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(expression)
    if (match === null) throw new CalculationError(`unexpected ${JSON.stringify(expression.slice(at).trim()[0])}`)
    const token = match[1] ?? match[2] ?? match[3]!
    found.push(SPELLING.get(token) ?? token)
  }
  return found
}

/** A result, and whether digits were lost, because numbers are doubles. */
export interface Calculated {
  readonly value: number
  readonly rounded: boolean
}

/**
 * The value of an arithmetic expression: `+ - * / % ^`, parentheses, the functions and constants above.
 *
 * @throws Error that names the mistake: too long, nested too deeply, a division by zero, an unknown word
 */
export function calculate(expression: string): Calculated {
  if (expression.length > MAX_LENGTH) throw new CalculationError(`longer than ${MAX_LENGTH} characters`)
  const queue = tokens(expression)
  let next = 0
  let depth = 0
  let rounded = false
  /** Above this limit doubles skip whole numbers. */
  const noted = (value: number): number => {
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) rounded = true
    return value
  }
  const peek = (): string | undefined => queue[next]
  const take = (): string => {
    const token = queue[next++]
    if (token === undefined) throw new CalculationError('the expression ends too early')
    return token
  }
  const expect = (token: string): void => {
    const found = take()
    if (found !== token) throw new CalculationError(`expected ${token} before ${found}`)
  }
  const deeper = <T>(parse: () => T): T => {
    if (++depth > MAX_DEPTH) throw new CalculationError(`nested deeper than ${MAX_DEPTH} levels`)
    const value = parse()
    depth -= 1
    return value
  }

  function sum(): number {
    let value = product()
    for (let sign = peek(); sign === '+' || sign === '-'; sign = peek()) {
      take()
      value = noted(sign === '+' ? value + product() : value - product())
    }
    return value
  }

  function product(): number {
    let value = signed()
    for (let sign = peek(); sign === '*' || sign === '/' || sign === '%'; sign = peek()) {
      take()
      const right = signed()
      if (sign !== '*' && right === 0) throw new CalculationError('division by zero')
      value = noted(sign === '*' ? value * right : sign === '/' ? value / right : value % right)
    }
    return value
  }

  /** A sign binds less than a power: -2^2 is -4. */
  function signed(): number {
    const sign = peek()
    if (sign !== '-' && sign !== '+') return power()
    take()
    return deeper(() => (sign === '-' ? -signed() : signed()))
  }

  function power(): number {
    const base = atom()
    if (peek() !== '^') return base
    take()
    return deeper(() => noted(base ** signed()))
  }

  function atom(): number {
    const token = take()
    if (token === '(') {
      const value = deeper(sum)
      expect(')')
      return value
    }
    if (/^[\d.]/.test(token)) return noted(Number(token))
    if (Object.hasOwn(constants, token)) return constants[token]!
    if (Object.hasOwn(functions, token)) return apply(token)
    if (/^[A-Za-z]/.test(token)) throw new CalculationError(`unknown name ${token}; known: ${known}`)
    throw new CalculationError(`unexpected ${token}`)
  }

  function apply(name: string): number {
    expect('(')
    const values = [deeper(sum)]
    while (peek() === ',') {
      take()
      values.push(deeper(sum))
    }
    expect(')')
    if (values.length > 1 && name !== 'max' && name !== 'min')
      throw new CalculationError(`${name} takes one number, not ${values.length}`)
    return functions[name]!(...values)
  }

  const value = sum()
  const rest = peek()
  if (rest !== undefined) throw new CalculationError(`unexpected ${rest}`)
  if (Number.isNaN(value)) throw new CalculationError('the result is not a real number')
  if (!Number.isFinite(value)) throw new CalculationError('the result is too large')
  return { value, rounded: rounded || (!Number.isInteger(value) && digitsOf(value) === DIGITS) }
}

const known = [...Object.keys(functions), ...Object.keys(constants)].join(', ')

/** As many digits as a double keeps: 0.1 + 0.2 is shown as 0.3. */
const DIGITS = 15
const show = (value: number): string =>
  Number.isSafeInteger(value) ? String(value) : String(Number(value.toPrecision(DIGITS)))
/** True for a fraction that continues beyond these digits. */
const digitsOf = (value: number): number =>
  value
    .toExponential(DIGITS - 1)
    .replace(/e.*|\D/g, '')
    .replace(/0+$/, '').length

export const calculateTool = tool({
  name: 'calculate',
  description:
    'Calculates an arithmetic expression, for example "(17.5 + 3) * 4 / 7", and reports when the result is rounded. ' +
    `Supports + - * / % ^, parentheses and ${known}. Use it for every calculation.`,
  effects: ['read'],
  input: {
    type: 'object',
    properties: { expression: { type: 'string', description: 'The expression, digits and operators only.' } },
    required: ['expression'],
    additionalProperties: false,
  },
  tests: [{ name: 'adds', input: { expression: '1 + 2' }, expect: '1 + 2 = 3' }],
  run({ expression }) {
    try {
      const { value, rounded } = calculate(String(expression))
      return `${String(expression)} = ${show(value)}${rounded ? ` (rounded to ${DIGITS} digits)` : ''}`
    } catch (error) {
      if (error instanceof CalculationError) return `Cannot calculate: ${error.message}.`
      throw error
    }
  },
})

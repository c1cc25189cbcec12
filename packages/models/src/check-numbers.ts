// Numbers in options are checked where they are passed.
import { OxbowError } from '@oxbow/core'

export interface Bounds {
  readonly least?: number
  /** The bound itself is too small as well. */
  readonly above?: number
  readonly most?: number
  /** `Infinity` counts as whole and means no limit. */
  readonly whole?: boolean
}

export type Numbers = Readonly<Record<string, readonly [value: number | undefined, bounds: Bounds]>>

/** One line for each number out of bounds. Undefined means not given. */
export function numberProblems(numbers: Numbers): string[] {
  return Object.entries(numbers).flatMap(([name, [value, bounds]]) =>
    value === undefined || isWithin(value, bounds) ? [] : [`${name} must be ${sentence(bounds)}, not ${String(value)}`],
  )
}

/**
 * @throws OxbowError `model_config`
 * @example checkNumbers('requestQueue', { concurrency: [0, { least: 1, whole: true }] })
 */
export function checkNumbers(of: string, numbers: Numbers): void {
  const problems = numberProblems(numbers)
  if (problems.length > 0) throw new OxbowError('model_config', `${of}: ${problems.join('; ')}.`)
}

const isWithin = (value: number, { least = -Infinity, above = -Infinity, most = Infinity, whole }: Bounds): boolean =>
  typeof value === 'number' &&
  value >= least &&
  (above === -Infinity || value > above) &&
  value <= most &&
  (!whole || Number.isInteger(value) || value === Infinity)

const sentence = ({ least, above, most, whole }: Bounds): string =>
  [
    whole ? 'a whole number' : 'a number',
    least === undefined ? '' : `from ${least} on`,
    above === undefined ? '' : `above ${above}`,
    most === undefined ? '' : `up to ${most}`,
  ]
    .filter((it) => it !== '')
    .join(' ')

/** Bounds of a timeout in milliseconds. */
export const DURATION: Bounds = { above: 0 }
export const COUNT: Bounds = { least: 1, whole: true }
/** Bounds of a weight. */
export const WEIGHT: Bounds = { above: 0, most: 1e9 }

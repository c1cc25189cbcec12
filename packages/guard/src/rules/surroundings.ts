// The surroundings of a command, which rules ignore: assignments and redirections.
import { isSafeAssignment } from '../programs/environment.ts'
import type { SimpleCommand } from '../words/types.ts'

/** Only harmless variables, and output that goes nowhere else. */
export const harmlessSurroundings = ({ assignments, redirections, words }: SimpleCommand): boolean =>
  assignments.every((it) => isSafeAssignment(it, words.length === 0)) &&
  redirections.every(({ operator, targets }) => {
    if (operator.startsWith('<<')) return true
    const value = targets.length === 1 ? targets[0]!.value : undefined
    if (value === undefined) return false
    if (operator === '>&' || operator === '<&') return /^(\d{1,3}-?|-)$/.test(value)
    return value === '/dev/null'
  })

/** Whether it opens a file for writing: any but the null device and the streams that it has. */
export const writesFile = ({ redirections }: SimpleCommand): boolean =>
  redirections.some(
    ({ operator, targets }) =>
      operator.includes('>') &&
      !targets.every(
        ({ value }) =>
          value !== undefined &&
          (/^\/dev\/(null|stdout|stderr|stdin)$/.test(value) || (operator === '>&' && /^(\d{1,3}-?|-)$/.test(value))),
      ),
  )

// Whether a turn still learns anything: a call with the same arguments and the same result as before brings nothing
// new.
import { hash } from 'node:crypto'
import type { Event } from '../events/types.ts'

export interface Repeats {
  /** Digests of the calls of this turn with their results. */
  readonly seen: readonly string[]
  /** Whether a call of the current step was new. */
  readonly fresh: boolean
  /** Steps in a row, before the current one, whose calls had all been made before with the same results. */
  readonly staleSteps: number
}

export const noRepeats: Repeats = { seen: [], fresh: false, staleSteps: 0 }

/** Of a call with its result. The harness adds notes to a result after its first block. */
export const callDigest = (tool: string, args: string, content: Event<'call.finished'>['content']): string =>
  hash('sha256', JSON.stringify([tool, args, content[0]])).slice(0, 16)

export const afterCall = (repeats: Repeats, digest: string): Repeats =>
  repeats.seen.includes(digest) ? repeats : { ...repeats, seen: [...repeats.seen, digest], fresh: true }

/** The next step begins. */
export const afterStep = (repeats: Repeats, calls: number): Repeats => ({
  ...repeats,
  fresh: false,
  staleSteps: staleStepsNow(repeats, calls),
})

/** With the current step, whose calls have all ended. */
export const staleStepsNow = ({ fresh, staleSteps }: Repeats, calls: number): number =>
  calls > 0 && !fresh ? staleSteps + 1 : 0

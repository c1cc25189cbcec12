// The budget of one analysis. A command that exceeds it is not understood, and the gate asks.

/** The units in which work is counted, each with the most that one analysis may spend of it. */
const LIMITS = {
  /** Simple commands that are visited, each turn of a loop anew. */
  commands: 500,
  /** Characters that are parsed or that expansions produce. */
  characters: 200_000,
  /** Elementary steps of matching, merging and copying. */
  steps: 500_000,
  /** Folders that are read. */
  folders: 4_000,
  /** Names in them. */
  entries: 20_000,
  /** Paths that are resolved. */
  paths: 1_000,
} as const

export type Cost = keyof typeof LIMITS

/** A last net under the counters; in milliseconds. */
const LONGEST = 2_000
/** The clock is read once per this many steps. */
const CLOCK_STEPS = 10_000

const MESSAGES: Readonly<Record<Cost | 'time', string>> = {
  commands: `It runs more than ${LIMITS.commands} commands, loops included, which is too many to follow.`,
  characters: `Its expansions produce more than ${LIMITS.characters} characters, which is too much to follow.`,
  steps: 'It takes too many steps to follow.',
  folders: `It reads more than ${LIMITS.folders} folders, which is too many to look through.`,
  entries: `It reads folders with more than ${LIMITS.entries} entries, which is too many to look through.`,
  paths: `It names more than ${LIMITS.paths} paths, which is too many to resolve.`,
  time: 'It takes too long to follow.',
}

/** Thrown by `spend`. The analysis ends there and reports its message. */
export class TooMuch extends Error {}

export interface WorkBudget {
  /**
   * Counts work before it is done.
   *
   * @param amount default 1
   * @throws TooMuch when the analysis has spent all that it may
   */
  readonly spend: (cost: Cost, amount?: number) => void
}

/** A fresh budget, for one analysis. */
export function makeBudget(): WorkBudget {
  const left: Record<Cost, number> = { ...LIMITS }
  const startedAt = performance.now()
  let untilClock = CLOCK_STEPS
  return {
    spend(cost, amount = 1) {
      left[cost] -= amount
      if (left[cost] < 0) throw new TooMuch(MESSAGES[cost])
      untilClock -= cost === 'steps' ? amount : CLOCK_STEPS / 100
      if (untilClock > 0) return
      untilClock = CLOCK_STEPS
      if (performance.now() - startedAt > LONGEST) throw new TooMuch(MESSAGES.time)
    },
  }
}

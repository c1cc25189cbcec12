// A run: turns under faults at random moments, then the invariants.
import { setTimeout as delay } from 'node:timers/promises'
import { kindOf, oneTurn, type Submitted, startCluster } from './cluster.ts'
import { FAULTS } from './faults.ts'
import { type Seen, violations } from './invariants.ts'
import type { Place } from './work.ts'

export interface RunOptions {
  readonly store: Place['store']
  readonly turns: number
  readonly seed: number
  /** How many faults, from the list in an order that the seed gives. Default: all of them once. */
  readonly faults?: number
  /** Only faults whose name contains this. */
  readonly only?: string
  readonly onFault?: (name: string) => void
}

export interface RunReport {
  readonly finished: number
  readonly faults: Readonly<Record<string, number>>
  readonly violations: readonly string[]
  readonly seconds: number
}

const AT_ONCE = 24
/** After the last fault everything must have ended within this time. */
const PATIENCE_MS = 60_000

export async function runCluster({ store, turns, seed, faults, only = '', onFault }: RunOptions): Promise<RunReport> {
  const startedAt = performance.now()
  const random = generator(seed)
  const cluster = await startCluster(store)
  const giveUp = new AbortController()
  try {
    const submitted = Array.from(
      { length: turns },
      (_, n): Submitted => ({
        user: `user${n % 7}`,
        session: `session${n}`,
        turnId: `turn${n}`,
        kind: kindOf(n),
      }),
    )
    const seen: Seen[] = []
    const queue = [...submitted]
    const worker = async (): Promise<void> => {
      for (let turn = queue.shift(); turn !== undefined; turn = queue.shift())
        seen.push({ turn, events: await oneTurn(cluster, turn, giveUp.signal) })
    }
    const work = Promise.all(Array.from({ length: AT_ONCE }, worker))

    const names = Object.keys(FAULTS).filter((it) => it.includes(only))
    if (names.length === 0)
      throw new Error(`No fault contains ${JSON.stringify(only)}: ${Object.keys(FAULTS).join('; ')}`)
    const plan = Array.from({ length: faults ?? names.length }, (_, n) => names[n % names.length]!)
    shuffle(plan, random)
    const counts: Record<string, number> = {}
    for (const name of plan) {
      await delay(200 + random() * 800)
      onFault?.(name)
      await FAULTS[name]!(cluster, Math.floor(random() * cluster.links.length))
      cluster.heal()
      counts[name] = (counts[name] ?? 0) + 1
    }
    const timer = setTimeout(() => giveUp.abort(), PATIENCE_MS + turns * 200)
    await work
    clearTimeout(timer)
    const missing = giveUp.signal.aborted ? [`not everything ended within ${PATIENCE_MS / 1_000} s`] : []
    return {
      finished: seen.length,
      faults: counts,
      violations: [...missing, ...(await violations(cluster.client.backend, cluster.ledger, seen))],
      seconds: (performance.now() - startedAt) / 1_000,
    }
  } finally {
    giveUp.abort()
    await cluster.close()
  }
}

/** A small deterministic generator of numbers in [0, 1). */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

function shuffle(list: string[], random: () => number): void {
  for (let n = list.length - 1; n > 0; n--) {
    const other = Math.floor(random() * (n + 1))
    const kept = list[n]!
    list[n] = list[other]!
    list[other] = kept
  }
}

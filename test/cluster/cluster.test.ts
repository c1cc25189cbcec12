// A short version of `npm run test:cluster`: every fault once, over both shared stores.
import { expect, test } from 'vitest'
import { runCluster } from './run.ts'
import { missingServices } from './services.ts'

if (missingServices !== undefined && process.env.CI !== undefined) throw new Error(missingServices)

test.skipIf(missingServices !== undefined).each(['postgres', 'tiered'] as const)(
  'H13, H14: three replicas on %s lose nothing and repeat nothing, whatever fails',
  { timeout: 180_000 },
  async (store) => {
    const { finished, violations, faults } = await runCluster({ store, turns: 90, seed: 7 })
    expect(violations).toEqual([])
    expect(finished).toBe(90)
    expect(Object.values(faults)).toEqual(Object.keys(faults).map(() => 1))
  },
)

import type { ScriptedModel } from '@oxbow/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startModel, survives, undisturbed } from './matrix.ts'
import { missingFor } from './place.ts'
import { scenarios } from './scenarios.ts'

// Every third point of each scenario, another third in the next one; `npm run test:crash` walks them all.
const STRIDE = 3

let model: ScriptedModel
beforeAll(async () => {
  model = await startModel()
})
afterAll(() => model.close())

describe('X2: a turn that is killed at any point ends as if nothing had happened', () => {
  test.each(Object.keys(scenarios))('%s', { timeout: 180_000 }, async (scenario) => {
    const calm = await undisturbed(scenario, model.url)
    const { points } = calm.report
    expect(points).toContain('append.before')
    expect(points).toContain('model.after')
    if (scenarios[scenario]!.capabilities !== undefined) expect(points).toContain('compaction.after')
    const failures: string[] = []
    const offset = Object.keys(scenarios).indexOf(scenario) % STRIDE
    for (let n = 1 + offset; n <= points.length; n += STRIDE)
      await survives(scenario, model.url, [n], calm).catch((error: Error) =>
        failures.push(`killed at ${n} (${points[n - 1]}): ${error.message}`),
      )
    expect(failures).toEqual([])
  })
})

// Two scenarios at a few points; `npm run test:crash -- --store tiered` walks them all.
describe.each(['postgres', 'tiered'] as const)('X2: on %s', (store) => {
  const missing = missingFor(store)
  if (missing !== undefined && process.env.CI !== undefined) throw new Error(missing)

  test
    .skipIf(missing !== undefined)
    .each(['a write that can be asked about', 'a durable tool with steps, a sleep and a signal'])(
    '%s',
    { timeout: 180_000 },
    async (scenario) => {
      const calm = await undisturbed(scenario, model.url, store)
      const { points } = calm.report
      const failures: string[] = []
      const stride = Math.ceil(points.length / 4)
      for (let n = 2; n <= points.length; n += stride)
        await survives(scenario, model.url, [n], calm, store).catch((error: Error) =>
          failures.push(`killed at ${n} (${points[n - 1]}): ${error.message}`),
        )
      expect(failures).toEqual([])
    },
  )
})

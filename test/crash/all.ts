// `npm run test:crash [-- --store postgres --scenario durable]`: every kill point of every scenario, then lives that are
// killed twice.
import { parseArgs } from 'node:util'
import { startModel, survives, undisturbed } from './matrix.ts'
import { missingFor, STORES } from './place.ts'
import { scenarios } from './scenarios.ts'

const AT_ONCE = 2
/** Every so many points a second kill follows in the next life. */
const PAIR_STRIDE = 2

const { values } = parseArgs({
  options: { store: { type: 'string', default: 'sqlite' }, scenario: { type: 'string', default: '' } },
})
const store = STORES.find((it) => it === values.store)
const missing = store === undefined ? `There is no store ${values.store}: ${STORES.join(', ')}` : missingFor(store)
if (store === undefined || missing !== undefined) {
  console.error(`Cannot run: ${missing}.`)
  process.exit(1)
}

const model = await startModel()
let passed = 0
const failures: string[] = []

for (const scenario of Object.keys(scenarios).filter((it) => it.includes(values.scenario))) {
  const calm = await undisturbed(scenario, model.url, store)
  const { points } = calm.report
  const singles = points.map((_, index) => [index + 1])
  const pairs = singles
    .filter((_, n) => n % PAIR_STRIDE === 0)
    .map(([first]) => [first!, 1 + ((first! * 7) % points.length)])
  const queue = [...singles, ...pairs]
  const total = queue.length
  const failedBefore = failures.length
  const worker = async (): Promise<void> => {
    for (let kills = queue.shift(); kills !== undefined; kills = queue.shift()) {
      try {
        await survives(scenario, model.url, kills, calm, store)
        passed += 1
      } catch (error) {
        const where = kills.map((n) => `${n} (${points[n - 1]})`).join(', then ')
        failures.push(`${scenario}, killed at ${where}: ${(error as Error).message}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  const failed = failures.length - failedBefore
  console.log(`${scenario}: ${points.length} kill points, ${total} runs, ${failed} failed`)
}
await model.close()
for (const it of failures) console.log(it)
console.log(`${passed} passed, ${failures.length} failed`)
process.exitCode = failures.length > 0 ? 1 : 0

// `npm run test:cluster [-- --turns 500 --faults 30 --seed 1 --store tiered --only frozen]`
import { parseArgs } from 'node:util'
import { type RunOptions, runCluster } from './run.ts'
import { missingServices } from './services.ts'

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '500' },
    faults: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    store: { type: 'string' },
    only: { type: 'string', default: '' },
  },
})
if (missingServices !== undefined) {
  console.error(`Cannot run: ${missingServices}.`)
  process.exit(process.env.CI === undefined ? 0 : 1)
}
const stores = values.store === undefined ? (['postgres', 'tiered'] as const) : [values.store as RunOptions['store']]
let failed = 0
for (const store of stores) {
  const seed = Number(values.seed)
  console.log(`${store}: ${values.turns} turns, ${values.faults} faults, seed ${seed}`)
  const report = await runCluster({
    store,
    turns: Number(values.turns),
    faults: Number(values.faults),
    seed,
    only: values.only,
    onFault: (name) => console.log(`  ${name}`),
  })
  for (const it of report.violations) console.log(`  VIOLATION ${it}`)
  failed += report.violations.length
  console.log(
    `${store}: ${report.finished} turns in ${report.seconds.toFixed(0)} s, ${report.violations.length} violations`,
  )
}
process.exitCode = failed > 0 ? 1 : 0

// One replica: takes turns until it is killed.
import { createEngine } from '@oxbow/core'
import { backendAt, type Place, workAt } from './work.ts'

const place = JSON.parse(process.argv[2]!) as Place & { readonly skewMs?: number }
if (place.skewMs !== undefined) {
  // The clock of this machine is wrong.
  const now = Date.now
  Date.now = () => now() + place.skewMs!
}
const engine = createEngine({
  backend: backendAt(place),
  agents: [workAt(place)],
  role: 'worker',
  maxTurns: 20,
  onError: () => {},
})
for (;;)
  try {
    await engine.start()
    break
  } catch {
    // The database is away; a supervisor would start the process again.
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
process.on('SIGTERM', () => void engine.stop(1_000).then(() => process.exit()))
process.send?.('ready')
setInterval(() => {}, 2 ** 30)

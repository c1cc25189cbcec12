// Asks /healthz again and again, on a thread that the readers do not keep busy.
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

const probe = async (): Promise<number> => {
  const startedAt = performance.now()
  await (await fetch(`${workerData}/healthz`)).text()
  return performance.now() - startedAt
}

// The first request loads the client.
await probe()
let isOver = false
parentPort!.once('message', () => {
  isOver = true
})
parentPort!.postMessage('ready')
const all: number[] = []
while (!isOver) {
  all.push(await probe())
  await delay(5)
}
parentPort!.postMessage(all)

// The world outside: it writes down every effect with its operation id, and can be asked what it has done.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Ledger {
  readonly url: string
  /** How often each operation was done. */
  readonly done: ReadonlyMap<string, number>
  close(): void
}

export async function startLedger(): Promise<Ledger> {
  const done = new Map<string, number>()
  const server = createServer((request, response) => {
    const id = decodeURIComponent(request.url!.slice(1))
    if (request.method === 'POST') done.set(id, (done.get(id) ?? 0) + 1)
    response.end(String(done.get(id) ?? 0))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    done,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

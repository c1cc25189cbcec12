// The network between a replica and a server: connections can be cut, or pass bytes in one direction only.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Link {
  readonly url: string
  /** Closes every connection; new ones are refused until `heal`. */
  cut(): void
  /** Drops what goes to the server, or what comes back. Connections look open. */
  drop(direction: 'requests' | 'answers'): void
  heal(): void
  close(): void
}

export async function linkTo(target: string): Promise<Link> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let isCut = false
  let dropped: 'requests' | 'answers' | undefined
  const destroyAll = (): void => {
    for (const it of sockets) it.destroy()
  }
  const server = createServer((client) => {
    if (isCut) return void client.destroy()
    const upstream = connect(Number(port), hostname)
    client.on('data', (bytes) => void (dropped !== 'requests' && upstream.write(bytes)))
    upstream.on('data', (bytes) => void (dropped !== 'answers' && client.write(bytes)))
    const end = (): void => {
      for (const it of [client, upstream]) {
        sockets.delete(it)
        it.destroy()
      }
    }
    for (const it of [client, upstream]) {
      sockets.add(it)
      it.on('close', end).on('error', end)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(target)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    cut() {
      isCut = true
      destroyAll()
    },
    drop(direction) {
      dropped = direction
    },
    heal() {
      isCut = false
      dropped = undefined
      // Bytes are missing: the connections that lost them are of no use any more.
      destroyAll()
    },
    close() {
      server.close()
      destroyAll()
    },
  }
}

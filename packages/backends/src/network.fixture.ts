// A TCP proxy that loses answers and cuts connections, for tests of back ends behind a network.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  /** The address that was given, through the proxy. */
  readonly url: string
  /** Swallows all answers from now on; resolves with the first of them, whose command has been done. */
  loseAnswers(): Promise<void>
  /** Cuts every connection. New ones work. */
  cut(): void
  close(): void
}

export async function proxyTo(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<readonly [Socket, Socket]>()
  let answers = true
  let answered = (): void => {}
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    const pair = [client, upstream] as const
    pairs.add(pair)
    client.on('data', (bytes) => upstream.write(bytes))
    upstream.on('data', (bytes) => {
      if (answers) client.write(bytes)
      else answered()
    })
    const end = (): void => {
      pairs.delete(pair)
      client.destroy()
      upstream.destroy()
    }
    for (const it of pair) it.on('close', end).on('error', end)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  const destroyAll = (): void => {
    for (const pair of pairs) for (const it of pair) it.destroy()
  }
  return {
    url: url.href,
    loseAnswers() {
      answers = false
      return new Promise((resolve) => {
        answered = resolve
      })
    },
    cut() {
      answers = true
      destroyAll()
    },
    close() {
      server.close()
      destroyAll()
    },
  }
}

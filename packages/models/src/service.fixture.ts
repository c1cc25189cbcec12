// A server that answers requests with documents, as embedding and reranking services do.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'

export interface ServiceRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, unknown>>
  // biome-ignore lint/suspicious/noExplicitAny: the tests assert on the wire format.
  readonly body: any
}

export interface ServiceAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** As JSON; a string or bytes unchanged. */
  readonly body?: unknown
  /** Parts in place of a body, each sent after the given delay. */
  readonly parts?: readonly string[]
  readonly everyMs?: number
  /** Sends only this many bytes of the body, then destroys the connection. */
  readonly cutAfterBytes?: number
}

export interface Service {
  readonly url: string
  readonly requests: ServiceRequest[]
  /** The highest number of concurrent requests. */
  readonly most: number
}

/** Closed after the test. */
export async function service(
  answer: (request: ServiceRequest, number: number) => ServiceAnswer | Promise<ServiceAnswer>,
): Promise<Service> {
  const requests: ServiceRequest[] = []
  let open = 0
  let most = 0
  const server = createServer(async (incoming, response) => {
    open++
    most = Math.max(most, open)
    response.on('close', () => open--)
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const { url: path = '', headers } = incoming
    const request = { path, headers, body: JSON.parse(Buffer.concat(chunks).toString()) }
    const number = requests.push(request) - 1
    const { status = 200, headers: own, body = {}, cutAfterBytes, parts, everyMs } = await answer(request, number)
    if (parts !== undefined) {
      response.writeHead(status, { 'content-type': 'application/json', ...own })
      for (const part of parts) {
        response.write(part)
        await sleep(everyMs)
      }
      return response.end()
    }
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': bytes.length,
      ...own,
    })
    if (cutAfterBytes === undefined) response.end(bytes)
    else response.write(bytes.subarray(0, cutAfterBytes), () => incoming.socket.destroySoon())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get most() {
      return most
    },
  }
}

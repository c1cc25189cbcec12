// The ticket service: a system of its own, with its own database and its own idea of who may do what. It knows nothing
// of agents, and trusts none.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { json } from 'node:stream/consumers'

export interface Ticket {
  readonly id: number
  readonly operationId: string
  readonly person: string
  readonly system: string
  readonly days: number
  readonly reason: string
}

export interface TicketService {
  readonly url: string
  all(): Ticket[]
  close(): Promise<void>
}

/** The longest access that a system grants, in days. */
const SYSTEMS: Readonly<Record<string, number>> = { crm: 90, warehouse: 30 }

export async function ticketService(options: {
  readonly path: string
  /** Default: a free one. */
  readonly port?: number
  /** The bearer token that callers must present. */
  readonly token: string
  /** The people who may request access for themselves. */
  readonly people: readonly string[]
  /** Called when a ticket is stored but not yet answered. `cut`: the connection breaks instead of an answer. */
  readonly afterCommit?: () => Promise<'answer' | 'cut'>
}): Promise<TicketService> {
  const database = new DatabaseSync(options.path)
  database.exec(`CREATE TABLE IF NOT EXISTS tickets (
    id INTEGER PRIMARY KEY, operation_id TEXT NOT NULL UNIQUE, person TEXT NOT NULL, system TEXT NOT NULL,
    days INTEGER NOT NULL, reason TEXT NOT NULL) STRICT`)
  const columns = 'id, operation_id AS operationId, person, system, days, reason'
  const byOperation = database.prepare(`SELECT ${columns} FROM tickets WHERE operation_id = ?`)
  const everything = database.prepare(`SELECT ${columns} FROM tickets ORDER BY id`)
  const insert = database.prepare(
    'INSERT INTO tickets (operation_id, person, system, days, reason) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  )

  function refusal(caller: string, { person, system, days, reason }: Record<string, unknown>): string | undefined {
    if (!options.people.includes(caller)) return `${caller} may not request access.`
    if (person !== caller) return `${caller} may only request access for themselves.`
    const longest = SYSTEMS[String(system)]
    if (longest === undefined)
      return `Unknown system ${JSON.stringify(system)}. Systems: ${Object.keys(SYSTEMS).join(', ')}.`
    if (!Number.isInteger(days) || Number(days) < 1 || Number(days) > longest)
      return `${String(system)} grants access for 1 to ${longest} days.`
    return typeof reason === 'string' && reason.trim() !== '' ? undefined : 'A request needs a reason.'
  }

  const server = createServer(async (request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (request.headers.authorization !== `Bearer ${options.token}`) return answer(401, { error: 'Who are you?' })
    const operationId = decodeURIComponent(request.url?.replace('/tickets/', '') ?? '')
    const caller = String(request.headers['on-behalf-of'])
    if (request.method === 'GET') {
      const found = byOperation.get(operationId) as unknown as Ticket | undefined
      // Another person's ticket is not found.
      return found?.person === caller ? answer(200, found) : answer(404, { error: 'No such ticket.' })
    }
    const body = (await json(request)) as Record<string, unknown>
    const refused = refusal(caller, body)
    if (refused !== undefined) return answer(403, { error: refused })
    insert.run(operationId, String(body.person), String(body.system), Number(body.days), String(body.reason))
    if ((await options.afterCommit?.()) === 'cut') return void request.socket.destroy()
    answer(201, byOperation.get(operationId) as object)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    all: () => everything.all() as unknown as Ticket[],
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      database.close()
    },
  }
}

// Runs the ticket service in its own process: `npm run example:tickets`.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { ticketService } from './tickets.ts'

const {
  TICKETS_PORT = '8090',
  TICKETS_TOKEN = 'between-services',
  TICKETS_STORE = '.oxbow/access-tickets.db',
} = process.env

mkdirSync(dirname(TICKETS_STORE), { recursive: true })
try {
  const tickets = await ticketService({
    path: TICKETS_STORE,
    port: Number(TICKETS_PORT),
    token: TICKETS_TOKEN,
    people: ['ann', 'ben'],
    afterCommit: async () => {
      const { id, person, system, days } = tickets.all().at(-1)!
      console.log(`ticket ${id}: ${person} gets ${system} for ${days} days`)
      return 'answer'
    },
  })
  console.log(`listens on ${tickets.url}`)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void tickets.close())
} catch (error) {
  console.error(`The ticket service cannot start: ${(error as Error).message}`)
  process.exitCode = 2
}

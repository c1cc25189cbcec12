// Runs the service: `node -C oxbow-source examples/access-request/main.ts`, with the variables below.
import { modelFromEnvironment, resolveModel } from 'oxbow'
import { accessService } from './service.ts'

const { OXBOW_MODEL, TICKETS_URL, TICKETS_TOKEN } = process.env
if (TICKETS_URL === undefined || TICKETS_TOKEN === undefined)
  throw new Error('Set TICKETS_URL and TICKETS_TOKEN to where the ticket service is and what it expects.')

const model = OXBOW_MODEL === undefined ? modelFromEnvironment(process.env) : resolveModel(OXBOW_MODEL, process.env)
const service = await accessService({ model, tickets: { url: TICKETS_URL, token: TICKETS_TOKEN } })
console.log(`listens on ${service.url}`)
process.once('SIGTERM', () => void service.close())

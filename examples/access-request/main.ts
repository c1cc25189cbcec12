// Runs the service: `npm run example:access`, after the ticket service.
import { join } from 'node:path'
import { modelFromEnvironment, resolveModel } from 'oxbow'
import { accessService } from './service.ts'

process.env.OXBOW_CONFIG ??= join(import.meta.dirname, 'oxbow.toml')
const { OXBOW_MODEL, TICKETS_PORT = '8090', TICKETS_TOKEN = 'between-services' } = process.env
const { TICKETS_URL = `http://127.0.0.1:${TICKETS_PORT}` } = process.env

try {
  const model = OXBOW_MODEL === undefined ? modelFromEnvironment(process.env) : resolveModel(OXBOW_MODEL, process.env)
  const service = await accessService({ model, tickets: { url: TICKETS_URL, token: TICKETS_TOKEN } })
  console.log(`listens on ${service.url}`)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void service.close())
} catch (error) {
  console.error(`The service cannot start: ${(error as Error).message}`)
  process.exitCode = 2
}

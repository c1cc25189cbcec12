// The agent behind HTTP, with people who prove who they are. Configured like every Oxbow service: oxbow.toml,
// variables.
import { createEngine, type Model, sqlite } from 'oxbow'
import { createIdentity, createLogger, createService, engineErrors, loadConfig } from 'oxbow/service'
import { accessAgent } from './agent.ts'
import { ticketClient } from './ticket-client.ts'

export async function accessService(options: {
  readonly model: Model
  readonly tickets: { readonly url: string; readonly token: string }
  /** Settings in addition to oxbow.toml and the environment. */
  readonly settings?: Readonly<Record<string, unknown>>
}): Promise<{ url: string; close(): Promise<void> }> {
  const { model, tickets, settings = {} } = options
  const config = await loadConfig({ overrides: settings })
  const log = createLogger(config.log)
  const backend = sqlite({ path: config.store.path })
  const identity = await createIdentity(config.identity, { onProblem: (problem) => log.warn(problem, 'identity') })
  const engine = createEngine({
    backend,
    agents: [accessAgent(model, ticketClient(tickets.url, tickets.token))],
    // Authorisation is checked again when an approval is used, perhaps days later.
    currentPrincipal: identity.refresh,
    onError: engineErrors(log),
  })
  const service = createService({ engine, config, identity, log })
  const { url } = await service.listen()
  return {
    url,
    async close() {
      await service.close()
      await backend.close()
    },
  }
}

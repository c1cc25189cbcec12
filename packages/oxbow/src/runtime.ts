// What every command needs: configuration, store, model, agent, engine.
import { existsSync } from 'node:fs'
import { memory, sqlite } from '@oxbow/backends'
import { type Backend, createEngine, type Engine, type EngineOptions, type Middleware, OxbowError } from '@oxbow/core'
import { type McpCapability, type McpOptions, mcp } from '@oxbow/harness'
import { createModels, type ModelListeners, type Models } from '@oxbow/models'
import { type Config, loadConfig } from '@oxbow/server'
import { defaultAgent } from './agent/agent.ts'
import { printable } from './transcript.ts'

export interface RuntimeOptions {
  readonly model?: string | undefined
  readonly store?: string | undefined
  readonly host?: string | undefined
  readonly port?: string | undefined
}

/** The configuration, with what was given on the command line on top. */
export function configOf({ model, store, host, port }: RuntimeOptions): Promise<Config> {
  return loadConfig({
    overrides: {
      ...(model !== undefined && { model }),
      ...(store !== undefined && { store: { path: store } }),
      ...((host !== undefined || port !== undefined) && {
        server: { ...(host !== undefined && { host }), ...(port !== undefined && { port: numeral(port) }) },
      }),
    },
  })
}

/** What is no number is told as it was given. */
const numeral = (text: string): number | string =>
  text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)

/** Who only looks must not make an empty store where the path was mistyped. */
export const hasStore = ({ store }: Config): boolean => store.path === ':memory:' || existsSync(store.path)

export const noStore = ({ store }: Config): OxbowError =>
  new OxbowError(
    'no_store',
    `There is no store at ${store.path}, so there are no sessions. Check --store and store.path.`,
  )

export const openBackend = ({ store }: Config): Backend =>
  store.path === ':memory:' ? memory() : sqlite({ path: store.path })

/** For commands that look at the store and run nothing. @throws OxbowError `no_store` */
export async function withBackend(options: RuntimeOptions, work: (backend: Backend) => Promise<void>): Promise<void> {
  const config = await configOf(options)
  if (!hasStore(config)) throw noStore(config)
  const backend = openBackend(config)
  try {
    await work(backend)
  } finally {
    await backend.close()
  }
}

export const openModels = (config: Config, listeners?: ModelListeners): Models =>
  createModels(config.models, process.env, listeners)

/** The MCP servers of the configuration. Whoever opens them closes them. */
export const openMcp = (config: Config, onNotice?: McpOptions['onNotice']): Promise<McpCapability> =>
  mcp(config.mcp, { allowStdio: config.profile !== 'prod', ...(onNotice && { onNotice }) })

/** For commands at a terminal: what somebody should know, on standard error. */
export const complainOfMcp: McpOptions['onNotice'] = ({ level, server, message }) => {
  if (level === 'warn') console.error(`oxbow: MCP server ${server}: ${printable(message)}`)
}

/** The engine with the default agent. Nothing runs before `engine.start()`. */
export function openEngine(
  config: Config,
  backend: Backend,
  models: Models,
  servers: McpCapability,
  options: { middleware?: readonly Middleware[] } & Pick<EngineOptions, 'onError' | 'currentPrincipal'> = {},
): Engine {
  const { instructions, temperature, maxOutputTokens, mode, allow, ask, deny, compaction, ...limits } = config.agent
  const { model: summaries, ...when } = compaction
  const agent = defaultAgent({
    model: models.get('default'),
    backend,
    instructions,
    middleware: options.middleware ?? [],
    limits,
    rules: { mode, allow, ask, deny },
    capabilities: [servers],
    compaction: { ...when, ...(summaries !== undefined && { model: models.get(summaries) }) },
    temperature,
    maxOutputTokens,
  })
  const { onError, currentPrincipal } = options
  return createEngine({
    backend,
    agents: [agent],
    ...(onError && { onError }),
    ...(currentPrincipal && { currentPrincipal }),
  })
}

/** The default model in words: `main (openai:gpt-5), else small or local`. */
export function modelInWords(models: Models): string {
  const it = models.list().find(({ aliases }) => aliases.includes('default'))!
  const spares = it.fallbacks.map(({ model }) => model).join(' or ')
  return `${it.name === it.model ? it.model : `${it.name} (${it.model})`}${spares === '' ? '' : `, else ${spares}`}`
}

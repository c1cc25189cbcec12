// What every command needs: configuration, store, model, agent, engine.

import { existsSync } from 'node:fs'
import { memory, postgres, redis, sqlite, tiered } from '@oxbow/backends'
import {
  type Agent,
  type Backend,
  createEngine,
  type Engine,
  type EngineOptions,
  type Middleware,
  OxbowError,
} from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { type McpCapability, mcp } from '@oxbow/harness'
import { createModels, type ModelListeners, type Models } from '@oxbow/models'
import { type Config, loadConfig } from '@oxbow/server'
import { defaultAgent, type ModelsByAlias } from './agent/agent.ts'
import { type AgentKnowledge, openAgentKnowledge } from './agent/knowledge.ts'
import { inLine } from './terminal/transcript.ts'

export interface RuntimeOptions {
  readonly model?: string | undefined
  readonly store?: string | undefined
  readonly host?: string | undefined
  readonly port?: string | undefined
  readonly role?: string | undefined
}

/** The configuration, overridden by command-line options. */
export function configOf({ model, store, host, port, role }: RuntimeOptions): Promise<Config> {
  return loadConfig({
    overrides: {
      ...defined({ model }),
      ...(store !== undefined && { store: /^(postgres(ql)?|rediss?):/.test(store) ? { url: store } : { path: store } }),
      server: {
        ...defined({ host }),
        ...(port !== undefined && { port: numeral(port) }),
        ...defined({ role }),
      },
    },
  })
}

/** Text that is not a number is kept for the error message. */
const numeral = (text: string): number | string =>
  text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)

/** Reading must not create an empty store where the path was mistyped. */
export const hasStore = ({ store }: Config): boolean =>
  store.url !== undefined ||
  store.path === ':memory:' ||
  // A marker without its database means that the database was lost, which opening it reports.
  ['', '-mark'].some((end) => existsSync(store.path + end))

export const noStore = ({ store }: Config): OxbowError =>
  new OxbowError('no_store', `No store at ${store.path}. Check --store and store.path.`)

export function openBackend({ store: { path, url, hot } }: Config): Backend {
  if (url?.startsWith('redis')) return redis({ url })
  if (url !== undefined && hot !== undefined) return tiered({ store: postgres({ url }), hot: redis({ url: hot }) })
  if (url !== undefined) return postgres({ url })
  return path === ':memory:' ? memory() : sqlite({ path })
}

/** For messages: without the password of a database. */
export const nameOfStore = ({ store }: Config): string =>
  store.url === undefined ? store.path : `${new URL(store.url).host}${new URL(store.url).pathname}`

/** For commands that read the store and run nothing. @throws OxbowError `no_store` */
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

export const openModels = (config: Config): Models => createModels(config.models, process.env)

/** The parts that a command works with. The opener closes it after the engine has stopped. */
export interface Runtime {
  readonly backend: Backend
  readonly models: Models
  readonly agent: Agent
  readonly knowledge: AgentKnowledge
  readonly servers: Pick<McpCapability, 'health'>
  /** Nothing runs before `engine.start()`. */
  readonly engine: Engine
  close(): Promise<void>
}

export interface Listeners {
  /** Notices about MCP servers and the knowledge base. */
  readonly onNotice: (level: 'info' | 'warn', message: string) => void
  readonly models?: ModelListeners
  readonly middleware?: readonly Middleware[]
  readonly engine?: Pick<EngineOptions, 'onError' | 'currentPrincipal' | 'principalMaxAgeMs' | 'role' | 'maxTurns'>
  /** IANA name of the user's time zone, if known. */
  readonly timeZone?: string
}

/** For commands at a terminal: warnings go to standard error. */
export const atTerminal: Listeners = {
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  onNotice: (level, message) => {
    if (level === 'warn') console.error(`oxbow: ${inLine(message)}`)
  },
  engine: {
    onError: (error, { reference }) => {
      // The words of an OxbowError are shown where it ends.
      if (!(error instanceof OxbowError)) console.error(`oxbow: reference ${reference}: ${inLine(String(error))}`)
    },
  },
}

/** The default agent with everything around it. When opening a part fails, the opened parts are closed again. */
export async function openRuntime(config: Config, listeners: Listeners, store?: Backend): Promise<Runtime> {
  const models = createModels(config.models, process.env, listeners.models)
  const opened: { close(): Promise<void> }[] = []
  const close = async (): Promise<void> => {
    for (const it of opened.toReversed()) await it.close()
  }
  const closing = <T extends { close(): Promise<void> }>(it: T): T => {
    opened.push(it)
    return it
  }
  try {
    const backend = closing(store ?? openBackend(config))
    const knowledge = closing(await openAgentKnowledge(config, models, listeners.onNotice))
    const servers = closing(await openMcp(config, listeners.onNotice))
    const { middleware = [], timeZone } = listeners
    const agent = await agentOf(config, { backend, models, knowledge, servers, middleware, timeZone })
    const engine = createEngine({ backend, agents: [agent], ...listeners.engine })
    return { backend, models, agent, knowledge, servers, engine, close }
  } catch (error) {
    await close()
    throw error
  }
}

const openMcp = (config: Config, onNotice: Listeners['onNotice']): Promise<McpCapability> =>
  mcp(config.mcp, {
    allowStdio: config.profile !== 'prod',
    onNotice: ({ level, server, message }) => onNotice(level, `MCP server ${server}: ${message}`),
  })

interface Parts extends Pick<Runtime, 'backend' | 'models' | 'knowledge'> {
  readonly servers: McpCapability
  readonly middleware: readonly Middleware[]
  readonly timeZone: string | undefined
}

function agentOf(config: Config, { backend, models, knowledge, servers, middleware, timeZone }: Parts): Promise<Agent> {
  const { instructions, temperature, maxOutputTokens, agents, mode, allow, ask, deny, compaction, ...limits } =
    config.agent
  const { model: named, ...when } = compaction
  const byAlias = modelsByAlias(config, models)
  const summaries = named ?? (Object.hasOwn(byAlias, 'summarise') ? 'summarise' : undefined)
  return defaultAgent({
    model: models.get('default'),
    models: byAlias,
    backend,
    knowledge,
    instructions,
    agents,
    middleware,
    timeZone,
    limits,
    rules: { mode, allow, ask, deny },
    capabilities: [servers],
    compaction: { ...when, ...(summaries !== undefined && { model: models.get(summaries) }) },
    temperature,
    maxOutputTokens,
  })
}

/** Opened when an agent names one, so a missing key for an unused model is not an error. */
function modelsByAlias({ models: { models: named = {}, aliases = {} } }: Config, models: Models): ModelsByAlias {
  const names = new Set(['default', ...Object.keys(named), ...Object.keys(aliases)])
  return Object.defineProperties(
    {},
    Object.fromEntries([...names].map((name) => [name, { enumerable: true, get: () => models.get(name) }])),
  ) as ModelsByAlias
}

/** The default model in words: `main (openai:gpt-5), else small or local`. */
export function modelInWords(models: Models): string {
  const it = models.list().find(({ aliases }) => aliases.includes('default'))!
  const spares = it.fallbacks.map(({ model }) => model).join(' or ')
  return `${it.name === it.model ? it.model : `${it.name} (${it.model})`}${spares === '' ? '' : `, else ${spares}`}`
}

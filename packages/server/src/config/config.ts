// The configuration that the rest of the program uses, and how it is merged: defaults ← oxbow.toml ← environment ←
// command line.
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { type AgentLimits, OxbowError } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import type { ModelsConfig } from '@oxbow/models'
import { type IdentityConfig, identityConfig } from './identity-config.ts'
import { type McpConfig, mcpConfig } from './mcp-config.ts'
import { modelsConfig } from './models-config.ts'
import {
  DEFAULTS,
  PROFILE_DEFAULTS,
  PROFILES,
  type Profile,
  SETTINGS,
  type Setting,
  type Settings,
  settings,
} from './settings/schema.ts'
import { fromEnvironment, fromObject, fromToml, type GivenSettings } from './sources.ts'

/** Everything that the rest of the program reads. The settings' own descriptions are in settings/schema.ts. */
export type Config = ReturnType<typeof toConfig>
export type ServerConfig = Config['server']

export interface ConfigSources {
  /** Default: the environment of this process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** By key, nested or dotted; overrides every other source. */
  readonly overrides?: Readonly<Record<string, unknown>>
}

/**
 * Reads and checks the configuration. The file is `OXBOW_CONFIG`, or `./oxbow.toml` if that exists.
 *
 * @throws OxbowError `config_invalid`: the message has one line for each problem
 * @example const config = await loadConfig({ overrides: { server: { port: 9000 } } })
 */
export async function loadConfig(sources: ConfigSources = {}): Promise<Config> {
  const { environment = process.env, overrides = {} } = sources
  const problems: string[] = []
  const profile = profileOf(environment, problems)
  const file = await readToml(environment, problems)
  const given = new Map<string, GivenSettings>()
  for (const [key, value] of Object.entries({ ...DEFAULTS, ...PROFILE_DEFAULTS[profile] }))
    if (value !== undefined) given.set(key, { value, source: 'the defaults', shown: true })
  const layers = [
    ...(file === undefined ? [] : [fromToml(file.data, file.path, environment, problems)]),
    fromEnvironment(environment, problems),
    fromObject(overrides, 'the command line', problems),
  ]
  for (const layer of layers) for (const [key, value] of layer) given.set(key, value)

  // A database needs no file; the last given store setting applies.
  if (given.has('store.url')) {
    const path = given.get('store.path')
    if (path === undefined)
      given.set('store.path', { value: DEFAULTS['store.path'], source: 'the defaults', shown: true })
    else if (path.source === 'the command line' && given.get('store.url')!.source !== path.source)
      given.delete('store.url')
  }

  const parsed = settings.safeParse(nested(given))
  if (!parsed.success) {
    // An issue may concern one item of a list.
    const faulty = parsed.error.issues.map((it) => `${it.path.join('.')}.`)
    for (const it of SETTINGS)
      if (faulty.some((path) => path.startsWith(`${it.key}.`))) problems.push(problemOf(it, given.get(it.key), profile))
  }
  if (parsed.success) problems.push(...impossible(parsed.data, profile))
  const models = await modelsConfig(given.get('models')?.value, given.get('model')?.value, problems)
  const mcp = mcpConfig(given.get('mcp')?.value, profile, environment, problems)
  if (profile === 'prod') problems.push(...(await missingInProd(given, models, environment)))
  const identity = parsed.success ? identityConfig(parsed.data.identity, problems) : undefined
  if (problems.length > 0 || !parsed.success || identity === undefined || models === undefined)
    throw invalid(problems, profile)
  return toConfig(profile, parsed.data, models, mcp, identity)
}

function profileOf(environment: Readonly<Record<string, string | undefined>>, problems: string[]): Profile {
  const value = environment.OXBOW_PROFILE ?? 'local'
  const known = PROFILES.find((it) => it === value)
  if (known === undefined) problems.push(`OXBOW_PROFILE: got ${JSON.stringify(value)}; allowed: ${PROFILES.join(', ')}`)
  return known ?? 'local'
}

async function readToml(
  environment: Readonly<Record<string, string | undefined>>,
  problems: string[],
): Promise<{ path: string; data: Record<string, unknown> } | undefined> {
  // An empty variable counts as unset, as everywhere.
  const named = environment.OXBOW_CONFIG === '' ? undefined : environment.OXBOW_CONFIG
  const path = named ?? 'oxbow.toml'
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (named !== undefined || code !== 'ENOENT')
      problems.push(`${path}: cannot be read (${code})${named === undefined ? '' : '; OXBOW_CONFIG names it'}`)
    return undefined
  }
  const { parse } = await import('smol-toml')
  try {
    return { path, data: parse(text) }
  } catch (error) {
    const { message, line, column } = error as Error & { line: number; column: number }
    const what = message.split('\n')[0]!.replace(/^Invalid TOML document: /, '')
    problems.push(`${path}: invalid TOML at line ${line}, column ${column}: ${what}`)
    return undefined
  }
}

function nested(given: ReadonlyMap<string, GivenSettings>): Record<string, unknown> {
  const root: Record<string, unknown> = {}
  // Sections exist even when none of their settings is given.
  for (const { key } of SETTINGS) {
    const parts = key.split('.')
    const last = parts.pop()!
    let at = root
    for (const part of parts) {
      at[part] ??= {}
      at = at[part] as Record<string, unknown>
    }
    if (given.has(key)) at[last] = given.get(key)!.value
  }
  return root
}

function problemOf({ key, variable, allowed }: Setting, given: GivenSettings | undefined, profile: Profile): string {
  if (given === undefined) return `${key}: missing in profile ${profile}; allowed: ${allowed} (or set ${variable})`
  const got = given.shown
    ? JSON.stringify(given.value).slice(0, 100)
    : 'a value that is not shown, because it comes from a variable'
  return `${key}: got ${got} from ${given.source}; allowed: ${allowed}`
}

/** Settings that cannot work together. */
function impossible({ server, store }: Settings, profile: Profile): string[] {
  const problems: string[] = []
  const isDatabase = store.url?.startsWith('postgres') === true
  if (store.hot !== undefined && !isDatabase)
    problems.push('store.hot: Redis needs a durable store beside it. Set store.url to a PostgreSQL database')
  if (profile === 'prod' && store.url !== undefined && !isDatabase && !store.acceptLoss)
    problems.push(
      'store.url: Redis alone can lose events that were acknowledged. Set store.url to a PostgreSQL database and store.hot to the Redis server, or store.acceptLoss to true',
    )
  if (store.url !== undefined) return problems
  if (server.role !== 'all')
    problems.push(
      `server.role: "${server.role}" needs a store whose queue other replicas see. Set store.url to a PostgreSQL database, or server.role to "all"`,
    )
  if (profile === 'prod' && store.path === ':memory:')
    problems.push(
      'store.path: profile prod must not lose its sessions at a restart, which ":memory:" does. Set it to the path of a file, or store.url to a PostgreSQL database',
    )
  return problems
}

/** The settings that profile prod requires: a model, a store and identity. */
async function missingInProd(
  given: ReadonlyMap<string, GivenSettings>,
  models: ModelsConfig | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string[]> {
  const problems: string[] = []
  const model = models === undefined ? undefined : await modelProblem(models, environment)
  if (model !== undefined) problems.push(`model: ${model}`)
  if (given.get('identity.mode')?.value === 'none')
    problems.push(
      'identity.mode: profile prod requires authenticated callers; allowed: "api-keys", "jwt" or "introspection" (see docs/deploy/identity.md), ' +
        'or profile local on a loopback address',
    )
  return problems
}

async function modelProblem(
  models: ModelsConfig,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const { createModels } = await import('@oxbow/models')
  try {
    if (!createModels(models, environment).get('default').id.startsWith('offline')) return undefined
    return 'profile prod requires a language model and its key; the offline model is only for evaluation'
  } catch (error) {
    return (error as Error).message
  }
}

const invalid = (problems: readonly string[], profile: Profile): OxbowError =>
  new OxbowError(
    'config_invalid',
    `The configuration (profile ${profile}) is invalid:\n${problems.map((it) => `  - ${it}`).join('\n')}`,
    {
      details: { problems },
    },
  )

function toConfig(
  profile: Profile,
  { server, store, agent, knowledge, telemetry, log, retention, tasks, agentProtocol }: Settings,
  models: ModelsConfig,
  mcp: McpConfig,
  identity: IdentityConfig,
) {
  const { limits, rateLimits } = server
  const { streamLimit, ...switches } = agentProtocol
  return {
    profile,
    models,
    mcp,
    server: {
      host: server.host,
      port: server.port,
      heartbeatMs: server.heartbeat,
      onDisconnect: server.onDisconnect,
      disconnectGraceMs: server.disconnectGrace,
      shutdownGraceMs: server.shutdownGrace,
      role: server.role,
      maxTurns: server.maxTurns,
      recheckMs: server.recheck,
      rightsMaxAgeMs: server.rightsMaxAge,
      maxBodyBytes: limits.bodyBytes,
      maxHeaderBytes: limits.headerBytes,
      maxMessageLength: limits.messageLength,
      maxJsonDepth: limits.jsonDepth,
      requestTimeoutMs: limits.requestTime,
      allowedHosts: server.allowedHosts,
      mcp: server.mcp,
      metrics: server.metrics,
      cors: server.cors,
      rateLimits,
    },
    store: { path: atHome(store.path), url: store.url, hot: store.hot },
    agent: {
      instructions: agent.instructions,
      mode: agent.mode,
      allow: agent.allow,
      ask: agent.ask,
      deny: agent.deny,
      approvalTimeoutMs: agent.approvalTimeout,
      maxSteps: agent.maxSteps,
      totalTimeoutMs: agent.totalTimeout,
      idleTimeoutMs: agent.idleTimeout,
      stateTimeoutsMs: stateTimeouts(agent.stateTimeouts),
      compaction: { ...agent.compaction, model: agent.compaction.model },
      agents: agent.agents === undefined ? undefined : atHome(agent.agents),
      temperature: agent.temperature,
      maxOutputTokens: agent.maxOutputTokens,
    },
    knowledge: {
      paths: knowledge.paths?.map(atHome),
      index: knowledge.index === undefined ? undefined : atHome(knowledge.index),
      embedder: {
        model: knowledge.embedder.model,
        protocol: knowledge.embedder.protocol,
        dimensions: knowledge.embedder.dimensions,
      },
      reranker: knowledge.reranker,
    },
    telemetry,
    log,
    identity,
    retention: {
      days: retention.days,
      tenants: new Map(
        retention.tenants.map((it) => [it.slice(0, it.lastIndexOf('=')), Number(it.slice(it.lastIndexOf('=') + 1))]),
      ),
    },
    tasks: { streamLimitMs: tasks.streamLimit },
    agentProtocol: { ...switches, streamLimitMs: streamLimit },
  }
}

const atHome = (path: string): string => path.replace(/^~(?=\/)/, homedir())

const stateTimeouts = (given: Settings['agent']['stateTimeouts']): AgentLimits['stateTimeoutsMs'] => ({
  CREATED: given.created,
  WAITING_USER: given.waitingUser,
  ...defined({ RUNNING: given.running, WAITING_TOOL: given.waitingTool }),
})

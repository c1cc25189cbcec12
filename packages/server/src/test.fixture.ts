// A service on a free port, an engine on a back end, and a scripted model over HTTP.

import { memory } from '@oxbow/backends/memory'
import {
  type Agent,
  type AgentDefinition,
  agent,
  type Backend,
  createEngine,
  type Engine,
  type Model,
} from '@oxbow/core'
import { type ModelListeners, type Models, openaiChat } from '@oxbow/models'
import { type Script, type ScriptedModel, type ScriptedRequest, scriptedModel } from '@oxbow/testing'
import { afterEach } from 'vitest'
import {
  type AgentProtocolHost,
  type Config,
  createIdentity,
  createLogger,
  createMetrics,
  createService,
  type Dependency,
  engineErrors,
  type Identity,
  identityProblems,
  loadConfig,
  loggingMiddleware,
  modelListeners,
  type Service,
} from './index.ts'

export interface Rig {
  readonly url: string
  readonly engine: Engine
  readonly service: Service
  readonly model: ScriptedModel
  readonly config: Config
  readonly identity: Identity
  /** The parsed log lines. */
  readonly logged: Record<string, unknown>[]
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>
  get(path: string, init?: RequestInit): Promise<Response>
  close(): Promise<void>
}

export interface RigOptions {
  readonly replies?: Script<ScriptedRequest>
  readonly agent?: Partial<AgentDefinition>
  readonly agents?: (model: Model) => readonly Agent[]
  readonly backend?: Backend
  readonly overrides?: Record<string, unknown>
  readonly environment?: Record<string, string>
  readonly agentProtocol?: AgentProtocolHost
  readonly dependencies?: () => readonly Dependency[]
  readonly model?: ScriptedModel
  /** Replaces the plain driver. */
  readonly models?: (url: string, listeners: ModelListeners) => Models
}

export async function rig(options: RigOptions = {}): Promise<Rig> {
  const model = options.model ?? (await scriptedModel())
  if (options.replies !== undefined) model.script('*', options.replies)
  const config = await loadConfig({
    environment: { OXBOW_PROFILE: 'test', ...options.environment },
    overrides: { 'log.level': 'debug', 'log.format': 'json', ...options.overrides },
  })
  const logged: Record<string, unknown>[] = []
  const log = createLogger({
    ...config.log,
    destination: { write: (line) => logged.push(JSON.parse(line)) },
    environment: {},
  })
  const metrics = createMetrics()
  const identity = await createIdentity(config.identity, { onProblem: identityProblems(log) })
  const models = options.models?.(model.url, modelListeners(log, metrics))
  const driver =
    models?.get('default') ?? openaiChat({ provider: 'scripted', model: 'any', baseUrl: model.url, apiKey: 'sk-test' })
  const backend = options.backend ?? memory()
  const middleware = [loggingMiddleware(log), metrics.middleware]
  const standard = agent({ name: 'assistant', model: driver, instructions: 'Be brief.', middleware, ...options.agent })
  const engine = createEngine({
    backend,
    agents: options.agents?.(driver) ?? [standard],
    onError: engineErrors(log),
    currentPrincipal: identity.refresh,
    principalMaxAgeMs: config.server.rightsMaxAgeMs,
  })
  const { agentProtocol = {}, dependencies = () => [] } = options
  const service = createService({
    engine,
    config,
    log,
    metrics,
    identity,
    agentProtocol,
    dependencies,
    ...(models && { models }),
  })
  const { url } = await service.listen()
  return {
    url,
    engine,
    service,
    model,
    config,
    identity,
    logged,
    post: (path, body, init = {}) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
        headers: { 'content-type': 'application/json', ...init.headers },
      }),
    get: (path, init) => fetch(`${url}${path}`, init),
    async close() {
      await service.close()
      await backend.close()
      if (options.model === undefined) await model.close()
    },
  }
}

/** Creates rigs that are closed after each test. */
export function rigs(): (options?: RigOptions) => Promise<Rig> {
  let open: Rig[] = []
  afterEach(async () => {
    await Promise.all(open.map((it) => it.close()))
    open = []
  })
  return async (options) => {
    const made = await rig(options)
    open.push(made)
    return made
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the assertions check what came over the wire.
type Anything = any

export const json = async (answer: Response | Promise<Response>): Promise<Anything> => (await answer).json()

export const runInput = (text: string, more: Record<string, unknown> = {}) => ({
  threadId: 'thread',
  runId: 'run-1',
  messages: [{ id: 'm-1', role: 'user', content: text }],
  ...more,
})

export type Frame = Record<string, unknown> & { type: string }

/** The frames of a complete event stream. */
export const framesOf = (text: string): Frame[] =>
  text
    .split('\n\n')
    .flatMap((part) => part.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => JSON.parse(line.slice(6)))

export const types = (frames: readonly Frame[]): string[] => frames.map((it) => it.type)

/** The text that a client assembles from a stream. */
export const textOf = (frames: readonly Frame[]): string =>
  frames
    .filter((it) => it.type === 'TEXT_MESSAGE_CONTENT')
    .map((it) => it.delta)
    .join('')

export const custom = (frames: readonly Frame[], name: string): Anything[] =>
  frames.filter((it) => it.type === 'CUSTOM' && it.name === name).map((it) => it.value)

/** Returns the only terminal frame, which must be the last; an interrupted stream has none. */
export function endOf(frames: readonly Frame[]): Frame {
  const ends = frames.filter((it) => it.type === 'RUN_FINISHED' || it.type === 'RUN_ERROR')
  if (ends.length !== 1 || frames.at(-1) !== ends[0]) throw new Error(`not one end, last: ${types(frames).join(' ')}`)
  return ends[0]!
}

// One service on a free port, an engine on a back end, and a scripted model over HTTP.

import { memory } from '@oxbow/backends/memory'
import { type Agent, type AgentDefinition, agent, type Backend, createEngine, type Engine } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { type Reply, type Script, type ScriptedModel, type ScriptedRequest, scriptedModel } from '@oxbow/testing'
import {
  type Config,
  createLogger,
  createMetrics,
  createService,
  engineErrors,
  loadConfig,
  loggingMiddleware,
  type Service,
} from './index.ts'

export interface Rig {
  readonly url: string
  readonly engine: Engine
  readonly service: Service
  readonly model: ScriptedModel
  readonly config: Config
  /** What was logged, parsed. */
  readonly logged: Record<string, unknown>[]
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>
  get(path: string, init?: RequestInit): Promise<Response>
  close(): Promise<void>
}

export interface RigOptions {
  readonly replies?: Script<ScriptedRequest>
  readonly agent?: Partial<AgentDefinition>
  readonly agents?: (model: AgentDefinition['model']) => readonly Agent[]
  readonly backend?: Backend
  readonly overrides?: Record<string, unknown>
  readonly model?: ScriptedModel
}

export async function rig(options: RigOptions = {}): Promise<Rig> {
  const model = options.model ?? (await scriptedModel())
  if (options.replies !== undefined) model.script('*', options.replies)
  const config = await loadConfig({
    environment: { OXBOW_PROFILE: 'test' },
    overrides: { 'log.level': 'debug', 'log.format': 'json', ...options.overrides },
  })
  const logged: Record<string, unknown>[] = []
  const log = createLogger({
    ...config.log,
    destination: { write: (line) => logged.push(JSON.parse(line)) },
    environment: {},
  })
  const metrics = createMetrics()
  const driver = openaiChat({ provider: 'scripted', model: 'any', baseUrl: model.url, apiKey: 'sk-test' })
  const backend = options.backend ?? memory()
  const middleware = [loggingMiddleware(log), metrics.middleware]
  const standard = agent({ name: 'assistant', model: driver, instructions: 'Be brief.', middleware, ...options.agent })
  const engine = createEngine({ backend, agents: options.agents?.(driver) ?? [standard], onError: engineErrors(log) })
  const service = createService({ engine, config, log, metrics })
  const { url } = await service.listen()
  return {
    url,
    engine,
    service,
    model,
    config,
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

export const runInput = (text: string, more: Record<string, unknown> = {}) => ({
  threadId: 'thread',
  runId: 'run-1',
  messages: [{ id: 'm-1', role: 'user', content: text }],
  ...more,
})

export type Frame = Record<string, unknown> & { type: string }

/** The frames of a whole event stream. */
export const framesOf = (text: string): Frame[] =>
  text
    .split('\n\n')
    .flatMap((part) => part.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => JSON.parse(line.slice(6)))

export const replies = (...all: Reply[]): Reply[] => all

// A tree of agents on one store, each with a scripted model of its own name.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memory, sqlite } from '@oxbow/backends'
import {
  type Agent,
  type AgentDefinition,
  agent,
  type Backend,
  createEngine,
  type Engine,
  type Model,
  type Session,
  type Tool,
  tool,
} from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { eventsOf, type Reply, type ScriptedModel, type ScriptedRequest, scriptedModel } from '@oxbow/testing'
import { onTestFinished } from 'vitest'

type Script = readonly (Reply | ((request: ScriptedRequest) => Reply | Promise<Reply>))[]

export interface Tree {
  readonly model: ScriptedModel
  readonly agents: readonly Agent[]
  readonly engine: Engine
  readonly root: Session
  readonly errors: unknown[]
  /** Another engine on the same store, as in another process. Only `sqlite` shares changes between them. */
  another(): Engine
}

export async function tree(
  scripts: Readonly<Record<string, Script>>,
  build: (of: (name: string, more?: Partial<AgentDefinition>) => Agent) => Agent | readonly Agent[],
  options: { store?: 'memory' | 'sqlite' } = {},
): Promise<Tree> {
  const model = await scriptedModel({ scripts })
  const of = (name: string, more: Partial<AgentDefinition> = {}): Agent =>
    agent({ name, model: driver(model, name), instructions: `You are ${name}.`, ...more })
  const built = build(of)
  const agents = Array.isArray(built) ? (built as readonly Agent[]) : [built as Agent]
  const directory = options.store === 'sqlite' ? mkdtempSync(join(tmpdir(), 'oxbow-tree-')) : undefined
  const opened: Backend[] = []
  const errors: unknown[] = []
  const engines: Engine[] = []
  const start = (): Engine => {
    // Each process has its own connection to the file; memory belongs to one process.
    const backend = directory !== undefined ? sqlite({ path: join(directory, 'oxbow.db') }) : (opened[0] ?? memory())
    if (!opened.includes(backend)) opened.push(backend)
    const engine = createEngine({ backend, agents, onError: (error) => errors.push(error) })
    engines.push(engine)
    return engine
  }
  const engine = start()
  onTestFinished(async () => {
    await Promise.all(engines.map((it) => it.stop(0)))
    await Promise.all(opened.map((it) => it.close()))
    if (directory !== undefined) rmSync(directory, { recursive: true })
    await model.close()
  })
  return { model, agents, engine, root: engine.session({ user: 'ann', session: 's1' }), errors, another: start }
}

export const driver = (model: ScriptedModel, name: string): Model =>
  openaiChat({ provider: 'test', model: name, baseUrl: model.url })

export const handOff = (conclusion: string, more: object = {}): Reply => ({
  text: JSON.stringify({ status: 'done', conclusion, facts: [], open_questions: [], ...more }),
})

export const spawn = (agent: string, task = 'Do it.', more: object = {}): Reply => ({
  calls: [{ name: 'agent_spawn', arguments: { agent, task, ...more } }],
})

export const calls = (name: string, given: object = {}): Reply => ({ calls: [{ name, arguments: given }] })

/** A tool that reports its call. */
export function worker(name: string, effects: Tool['effects'], ran: string[] = []): Tool {
  return tool({
    name,
    description: 'Works.',
    effects: [...effects],
    input: { type: 'object', properties: { what: { type: 'string' } } },
    matches: (pattern, input) => String(input.what).startsWith(pattern),
    suggest: (input) => [String(input.what)],
    run: (input) => {
      ran.push(String(input.what))
      return `${name} did ${String(input.what)}`
    },
  })
}

/** The sessions below, in the order of their creation. */
export async function childrenOf(engine: Engine, session: Session): Promise<Session[]> {
  const opened = await eventsOf(session, 'child.opened')
  return [...new Set(opened.map((it) => it.session))].map((it) => engine.session({ ...session.key, session: it }))
}

/** The results and user messages in a model's last request. */
export const sent = (model: ScriptedModel, name: string, role: 'tool' | 'user' = 'tool'): string[] =>
  model.requests
    .filter((it) => it.model === name)
    .at(-1)!
    .messages.filter((it) => it.role === role)
    .map((it) => String(it.content))

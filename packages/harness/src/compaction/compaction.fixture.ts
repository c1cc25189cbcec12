// An engine whose agent compacts, with scripted models over HTTP: `helper` answers, `notes` summarises, `kid` is its
// sub-agent.
import { memory } from '@oxbow/backends'
import {
  type AgentDefinition,
  agent,
  type Backend,
  type Capability,
  createEngine,
  type Engine,
  type Event,
  type Message,
  type Model,
  type Session,
  tool,
} from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import {
  eventsOf,
  type Reply,
  type Script,
  type ScriptedModel,
  type ScriptedRequest,
  scriptedModel,
} from '@oxbow/testing'
import { onTestFinished } from 'vitest'
import { compaction } from './compaction.ts'
import type { CompactionOptions } from './options.ts'

export interface Bench {
  readonly server: ScriptedModel
  readonly backend: Backend
  readonly engine: Engine
  readonly session: Session
  /** The requests to the agent's model, in order. */
  asked(): ScriptedRequest[]
  summaries(): ScriptedRequest[]
}

export const notes = (...texts: readonly string[]): Reply => ({
  text: JSON.stringify({ add: texts.map((text) => ({ kind: 'fact', text })) }),
})

/** `tokens`: the request size that the provider reports. */
export const saying = (text: string, tokens: number, more: Partial<Reply> = {}): Reply => ({
  text,
  usage: { prompt_tokens: tokens, completion_tokens: 10, total_tokens: tokens + 10 },
  ...more,
})

export const tooLong: Reply = {
  status: 400,
  body: { error: { code: 'context_length_exceeded', message: 'maximum context length is 8192 tokens' } },
}

export const read = tool({
  name: 'read',
  description: 'Reads a page.',
  effects: ['read'],
  input: { type: 'object', properties: { page: { type: 'string' } }, required: ['page'] },
  run: ({ page }) => `${String(page)}: ${'long '.repeat(1_150)}end of ${String(page)}`,
})

export async function bench(
  helper: Script<ScriptedRequest>,
  notesScript: Script<ScriptedRequest>,
  options: Partial<CompactionOptions> = {},
  definition: Partial<AgentDefinition> = {},
  more: readonly Capability[] | ((kid: Model) => readonly Capability[]) = [],
  kidScript: Script<ScriptedRequest> = [],
): Promise<Bench> {
  const server = await scriptedModel({ scripts: { helper, notes: notesScript, kid: kidScript } })
  const driver = (model: string) => openaiChat({ provider: 'test', model, baseUrl: server.url })
  const others = typeof more === 'function' ? more(driver('kid')) : more
  const backend = memory()
  const engine = createEngine({
    backend,
    agents: [
      agent({
        name: 'helper',
        model: driver('helper'),
        instructions: 'You help.',
        tools: [read],
        capabilities: [compaction({ journal: backend.journal, model: driver('notes'), ...options }), ...others],
        ...definition,
      }),
    ],
  })
  onTestFinished(async () => {
    await engine.stop(0)
    await backend.close()
    await server.close()
  })
  const of = (model: string) => server.requests.filter((it) => it.model === model)
  return {
    server,
    backend,
    engine,
    session: engine.session({ user: 'ann', session: 's1' }),
    asked: () => of('helper'),
    summaries: () => of('notes'),
  }
}

export const compactions = async (session: Session): Promise<Event<'context.compacted'>[]> =>
  (await eventsOf(session)).filter((it) => it.type === 'context.compacted')

/** All text of a conversation or a request, for searching in tests. */
export const textOf = (messages: readonly Message[] | ScriptedRequest['messages']): string => JSON.stringify(messages)

// What the tests of this package share: an engine on a memory back end, and a scripted model over HTTP.
import { memory } from '@oxbow/backends'
import { openaiChat } from '@oxbow/models'
import { type Reply, type ScriptedModel, type ScriptedRequest, scriptedModel } from '@oxbow/testing'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  type Agent,
  type AgentDefinition,
  agent,
  type Backend,
  createEngine,
  type Engine,
  type EngineOptions,
  type Event,
  isEvent,
  type Session,
  type SessionItem,
  tool,
} from './index.ts'

export interface Bench {
  readonly server: ScriptedModel
  readonly agent: Agent
  readonly backend: Backend
  readonly engine: Engine
  readonly session: Session
  readonly errors: unknown[]
  /** Another engine on the same store, as another process would have it. */
  another(): Engine
}

type Replies = readonly Reply[] | ((request: ScriptedRequest) => Reply | undefined | Promise<Reply | undefined>)

/** An engine whose agent `helper` gets these replies. Everything is closed when the test ends. */
export async function bench(
  replies: Replies,
  definition: Partial<AgentDefinition> = {},
  options: { backend?: Backend } & Pick<EngineOptions, 'currentPrincipal' | 'principalMaxAgeMs'> = {},
): Promise<Bench> {
  const server = await scriptedModel({ scripts: { helper: replies } })
  const helper = agent({
    name: 'helper',
    model: openaiChat({ provider: 'test', model: 'helper', baseUrl: server.url }),
    instructions: 'You help.',
    ...definition,
  })
  const backend = options.backend ?? memory()
  const errors: unknown[] = []
  const engines: Engine[] = []
  const start = (): Engine => {
    const { currentPrincipal, principalMaxAgeMs } = options
    const engine = createEngine({
      backend,
      agents: [helper],
      onError: (error) => errors.push(error),
      ...(currentPrincipal && { currentPrincipal }),
      ...(principalMaxAgeMs !== undefined && { principalMaxAgeMs }),
    })
    engines.push(engine)
    return engine
  }
  const engine = start()
  onTestFinished(async () => {
    await Promise.all(engines.map((it) => it.stop(0)))
    await backend.close()
    await server.close()
  })
  const session = engine.session({ user: 'ann', session: 's1' })
  return { server, agent: helper, backend, engine, session, errors, another: start }
}

export const echo = tool({
  name: 'echo',
  description: 'Says it again.',
  effects: ['read'],
  input: z.object({ text: z.string() }),
  run: ({ text }) => `echo ${text}`,
})

/** A reply that calls tools: `call('echo', { text: 'a' }, 'now', {})`. */
export function call(...namesAndArguments: unknown[]): Reply {
  const calls = []
  for (let i = 0; i < namesAndArguments.length; i += 2)
    calls.push({ name: String(namesAndArguments[i]), arguments: namesAndArguments[i + 1] })
  return { calls }
}

export const ofType = <T extends Event['type']>(items: readonly SessionItem[], type: T): Event<T>[] =>
  items.filter((it): it is Event<T> => isEvent(it) && it.type === type)

/** The text that the model was sent as results of calls, in order. */
export const resultsSent = (request: ScriptedRequest): string[] =>
  request.messages.filter((it) => it.role === 'tool').map((it) => String(it.content))

/** Exactly one terminal event per accepted turn, exactly one end per call, dense numbers. */
export function assertWhole(events: readonly Event[]): void {
  const problems: string[] = []
  events.forEach((it, index) => {
    if (it.seq !== index + 1) problems.push(`event ${index + 1} has number ${it.seq}`)
  })
  const count = (type: string, id: string): number =>
    events.filter((it) => it.type === type && ('callId' in it ? it.callId : 'turnId' in it ? it.turnId : '') === id)
      .length
  for (const { turnId } of ofType(events, 'turn.started')) {
    const ends = ['turn.finished', 'turn.failed', 'turn.cancelled'].reduce((sum, type) => sum + count(type, turnId), 0)
    if (ends !== 1) problems.push(`turn ${turnId} has ${ends} ends`)
  }
  for (const { message } of ofType(events, 'model.finished'))
    for (const block of message.blocks)
      if (block.type === 'call' && count('call.finished', block.callId) !== 1)
        problems.push(`call ${block.callId} has ${count('call.finished', block.callId)} ends`)
  if (problems.length > 0) throw new Error(problems.join('; '))
}

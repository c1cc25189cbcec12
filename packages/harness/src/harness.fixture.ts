// Two agents that talk over HTTP: an engine as the caller, a service as the remote, each with a scripted model.
import { memory } from '@oxbow/backends'
import { type AgentDefinition, agent, createEngine, type Engine, type Session, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { createLogger, createService, loadConfig } from '@oxbow/server'
import { eventsOf, type Reply, type ScriptedModel, scriptedModel } from '@oxbow/testing'
import { onTestFinished } from 'vitest'
import { type RemoteAgentOptions, remoteAgent } from './index.ts'

export interface Pair {
  readonly remoteUrl: string
  readonly remote: Engine
  readonly caller: Engine
  readonly session: Session
  readonly model: ScriptedModel
  /** Another engine on the caller's store, as in another process. */
  another(): Engine
}

export interface PairOptions {
  readonly caller: readonly Reply[]
  readonly remote: readonly Reply[]
  readonly remoteAgent?: Partial<AgentDefinition>
  readonly callerAgent?: Partial<AgentDefinition>
  readonly client?: Partial<RemoteAgentOptions>
}

/** A call of the remote agent. */
export const ask = (task = 'Do it.'): Reply => ({ calls: [{ name: 'researcher', arguments: { task } }] })

export async function pair(options: PairOptions): Promise<Pair> {
  const model = await scriptedModel({ scripts: { caller: options.caller, remote: options.remote } })
  const driver = (name: string) => openaiChat({ provider: 'test', model: name, baseUrl: model.url })
  const config = await loadConfig({ environment: { OXBOW_PROFILE: 'test' } })
  const stores = [memory(), memory()] as const
  const remote = createEngine({
    backend: stores[0],
    agents: [agent({ name: 'remote', model: driver('remote'), instructions: 'You work.', ...options.remoteAgent })],
  })
  const service = createService({
    engine: remote,
    config,
    log: createLogger({ level: 'silent', format: 'json', environment: {} }),
  })
  const { url } = await service.listen()
  const researcher = remoteAgent({ name: 'researcher', description: 'Researches.', url, ...options.client })
  const engines: Engine[] = []
  const start = (): Engine => {
    const engine = createEngine({
      backend: stores[1],
      agents: [
        agent({
          name: 'caller',
          model: driver('caller'),
          instructions: 'You delegate.',
          tools: [researcher],
          allow: ['researcher'],
          ...options.callerAgent,
        }),
      ],
    })
    engines.push(engine)
    return engine
  }
  const caller = start()
  onTestFinished(async () => {
    await Promise.all(engines.map((it) => it.stop(0)))
    await service.close()
    await Promise.all(stores.map((it) => it.close()))
    await model.close()
  })
  const session = caller.session({ user: 'ann', session: 's1' })
  return { remoteUrl: url, remote, caller, session, model, another: start }
}

/** A tool of the remote that needs an approval, and its recorded calls. */
export function bashTool() {
  const ran: unknown[] = []
  const bash = tool({
    name: 'bash',
    description: 'Runs a command.',
    effects: ['exec'],
    input: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
    run(input) {
      ran.push(input)
      return 'ok'
    },
  })
  return { bash, ran }
}

export const bashCall = (command = 'ls'): Reply => ({ calls: [{ name: 'bash', arguments: { command } }] })

/** The tool results in the caller's model requests. */
export const told = (model: ScriptedModel): string[] =>
  model.requests
    .filter((it) => it.model === 'caller')
    .at(-1)!
    .messages.filter((it) => it.role === 'tool')
    .map((it) => String(it.content))

/** The remote's session for the one call of the caller. */
export async function remoteSession({ remote, session }: Pair): Promise<Session> {
  const started = (await eventsOf(session)).find((it) => it.type === 'call.started')!
  return remote.session({ user: 'default', session: started.operationId })
}

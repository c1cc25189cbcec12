// The agents of one engine: those that sessions may name, and all that work below them.
import type { Agent } from '../agents/agent-type.ts'
import { validatorFor } from '../checks/json-schema.ts'
import { OxbowError } from '../errors.ts'

export interface KnownAgents {
  /** Those that sessions may name. */
  readonly named: ReadonlyMap<string, Agent>
  find(name: string): Agent | undefined
  unknown(name: string): OxbowError
  /** @throws OxbowError `unknown_agent` */
  get(name: string): Agent
  /** A schema that cannot be compiled fails the start, not the first call. */
  compileSchemas(): Promise<void>
}

/** @throws OxbowError `agent_invalid` when two have one name */
export function knownAgents(agents: readonly Agent[]): KnownAgents {
  const named = new Map(agents.map((it) => [it.name, it]))
  const twice = agents.find(({ name }, n) => agents.findIndex((it) => it.name === name) !== n)
  if (twice !== undefined)
    throw new OxbowError('agent_invalid', `createEngine(): two agents are named ${twice.name}. Rename one.`)
  const known = withChildren(agents)
  const unknown = (name: string): OxbowError =>
    new OxbowError('unknown_agent', `unknown agent ${JSON.stringify(name)}. Agents: ${[...named.keys()].join(', ')}`)
  return {
    named,
    find: (name) => known.get(name),
    unknown,
    get(name) {
      const found = known.get(name)
      if (found === undefined) throw unknown(name)
      return found
    },
    async compileSchemas() {
      for (const { tools } of known.values())
        for (const it of tools.values()) await validatorFor(it.jsonSchema, `tool ${it.name}, input`)
    },
  }
}

function withChildren(agents: readonly Agent[]): ReadonlyMap<string, Agent> {
  const known = new Map<string, { readonly agent: Agent; readonly from: string }>()
  const add = (agent: Agent, from: string): void => {
    const other = known.get(agent.name)
    if (other?.agent === agent) return
    if (other !== undefined)
      throw new OxbowError('agent_invalid', `two agents are named ${agent.name}: one of ${other.from}, one of ${from}`)
    known.set(agent.name, { agent, from })
    for (const it of agent.agents) add(it, `agent ${agent.name}`)
  }
  for (const it of agents) add(it, 'the engine')
  return new Map([...known].map(([name, it]) => [name, it.agent]))
}

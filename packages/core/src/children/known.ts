import type { Agent } from '../agents/agent-type.ts'
import { OxbowError } from '../errors.ts'

/** The agents and all that work below them, by name. @throws OxbowError `agent_invalid` when a name stands for two */
export function withChildren(agents: readonly Agent[]): ReadonlyMap<string, Agent> {
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

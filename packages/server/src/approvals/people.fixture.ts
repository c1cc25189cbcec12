// A service with authenticated users, and a tool whose calls another user has to approve.
import { type AgentDefinition, type Tool, tool } from '@oxbow/core'
import { z } from 'zod'
import { createApiKey } from '../identity/api-keys/api-key.ts'
import { json, type Rig, type RigOptions } from '../test.fixture.ts'

type Person = 'ann' | 'bob' | 'mia' | 'root'

export interface People extends Rig {
  readonly as: Readonly<
    Record<
      Person,
      {
        get(path: string): Promise<Response>
        post(path: string, body: object): Promise<Response>
        delete(path: string): Promise<Response>
      }
    >
  >
}

/** ann and bob use the tool; mia holds `tickets:approve`; root is an administrator. */
export async function people(
  start: (options: RigOptions) => Promise<Rig>,
  options: RigOptions & { agent: Partial<AgentDefinition> },
): Promise<People> {
  const { parse } = await import('smol-toml')
  const made = {
    ann: createApiKey({ user: 'ann' }),
    bob: createApiKey({ user: 'bob' }),
    mia: createApiKey({ user: 'mia', permissions: ['tickets:approve'] }),
    root: createApiKey({ user: 'root', permissions: ['oxbow:admin'] }),
  }
  const keys = Object.values(made).flatMap(({ toml }) => parse(toml).keys as unknown[])
  const rig = await start({ ...options, overrides: { 'identity.mode': 'api-keys', 'identity.keys': keys } })
  const as = (name: Person) => {
    const headers = { authorization: `Bearer ${made[name].key}` }
    return {
      get: (path: string) => rig.get(path, { headers }),
      post: (path: string, body: object) => rig.post(path, body, { headers }),
      delete: (path: string) => rig.get(path, { method: 'DELETE', headers }),
    }
  }
  return { ...rig, as: { ann: as('ann'), bob: as('bob'), mia: as('mia'), root: as('root') } }
}

export function ticketTool(done: unknown[], more: Partial<Parameters<typeof tool>[0]> = {}): Tool {
  return tool({
    name: 'submit',
    description: 'Submits.',
    effects: ['write'],
    input: z.object({ system: z.string(), days: z.number().max(90) }),
    secrets: ['system'],
    run: (input: unknown) => {
      done.push(input)
      return 'submitted'
    },
    ...more,
  } as Parameters<typeof tool>[0])
}

export const asks = { calls: [{ name: 'submit', arguments: { system: 'crm', days: 30 } }] }

/** Requests a call in a session, and returns the id of its open approval. */
export async function ask(person: People['as'][Person], sessionId: string): Promise<string> {
  const answer = await json(person.post('/api/chat', { sessionId, message: 'Go.', turnId: `t-${sessionId}` }))
  return answer.approvals[0].id
}

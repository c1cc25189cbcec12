// The office of the tests: a ticket service, a scripted model, and the access service in a process of its own, which
// can be killed and replaced.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApiKey } from '@oxbow/server'
import { type Reply, type ScriptedModel, type ScriptedRequest, scriptedModel, until } from '@oxbow/testing'
import { onTestFinished } from 'vitest'
import { type TicketService, ticketService } from './tickets.ts'

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))
type Name = 'ann' | 'ben' | 'mia' | 'root' | 'probe'

// biome-ignore lint/suspicious/noExplicitAny: what came over the wire is judged by the assertions.
type Anything = any

export interface Person {
  get(path: string): Promise<Anything>
  post(path: string, body: object): Promise<{ status: number; body: Anything }>
}

export interface Office {
  readonly tickets: TicketService
  readonly model: ScriptedModel
  readonly as: Readonly<Record<Name, Person>>
  /** kill -9, and another process on the same store. */
  replace(): Promise<void>
  kill(): Promise<void>
  start(): Promise<void>
  /** The file of keys without this permission; resolves when the service has noticed. */
  withdraw(permission: string): Promise<void>
}

const PERMISSIONS: Readonly<Record<Name, readonly string[]>> = {
  ann: ['tickets:submit'],
  ben: ['tickets:submit'],
  mia: ['tickets:approve'],
  root: ['oxbow:admin'],
  probe: [],
}

export async function office(
  replies: (request: ScriptedRequest) => Reply,
  afterCommit?: () => Promise<'answer' | 'cut'>,
): Promise<Office> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-access-'))
  const model = await scriptedModel({ scripts: { '*': replies } })
  const tickets = await ticketService({
    path: join(directory, 'tickets.db'),
    token: 'between-services',
    people: ['ann', 'ben'],
    ...(afterCommit && { afterCommit }),
  })
  const names = Object.keys(PERMISSIONS) as Name[]
  const made = Object.fromEntries(
    names.map((user) => [user, createApiKey({ user, permissions: [...PERMISSIONS[user]] })]),
  ) as Record<Name, ReturnType<typeof createApiKey>>
  const keysFile = join(directory, 'keys.toml')
  writeFileSync(keysFile, names.map((it) => made[it].toml).join('\n'))
  let child: ChildProcess | undefined
  let url = ''

  async function start(): Promise<void> {
    const started = spawn(
      process.execPath,
      ['--conditions=oxbow-source', '--disable-warning=ExperimentalWarning', MAIN],
      {
        cwd: directory,
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          PATH: process.env.PATH ?? '',
          HOME: directory,
          TICKETS_URL: tickets.url,
          TICKETS_TOKEN: 'between-services',
          OXBOW_MODEL: 'vllm:scripted',
          VLLM_BASE_URL: model.url,
          OXBOW_SERVER_PORT: '0',
          OXBOW_LOG_LEVEL: 'silent',
          OXBOW_IDENTITY_MODE: 'api-keys',
          OXBOW_IDENTITY_KEYS_FILE: keysFile,
        },
      },
    )
    child = started
    let seen = ''
    started.stdout!.on('data', (it: Buffer) => {
      seen += it.toString()
    })
    url = await until(() => /listens on (http:\S+)/.exec(seen)?.[1], { deadlineMs: 15_000 })
  }

  async function kill(): Promise<void> {
    const ended = new Promise((resolve) => child?.once('close', resolve))
    child?.kill('SIGKILL')
    await ended
  }

  onTestFinished(async () => {
    await kill()
    await tickets.close()
    await model.close()
    rmSync(directory, { recursive: true })
  })
  await start()

  const person = (name: Name): Person => {
    const headers = { authorization: `Bearer ${made[name].key}`, 'content-type': 'application/json' }
    return {
      get: async (path) => (await fetch(`${url}${path}`, { headers })).json(),
      post: async (path, body) => {
        const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
        return { status: answer.status, body: await answer.json() }
      },
    }
  }

  return {
    tickets,
    model,
    as: Object.fromEntries(names.map((it) => [it, person(it)])) as Record<Name, Person>,
    kill,
    start,
    async replace() {
      await kill()
      await start()
    },
    async withdraw(permission) {
      const left = names
        .filter((it) => it !== 'probe')
        .map((it) => made[it].toml.replace(JSON.stringify(permission), ''))
      writeFileSync(keysFile, left.join('\n'))
      const headers = { authorization: `Bearer ${made.probe.key}` }
      await until(async () => (await fetch(`${url}/api/approvals`, { headers })).status === 401, { deadlineMs: 10_000 })
    },
  }
}

/** The actions of the employee's agent, by the progress of the conversation. */
export function diligent({ messages }: ScriptedRequest): Reply {
  const asked = messages.findLastIndex((it) => it.role === 'user')
  const person = /I am (\w+)/.exec(String(messages[asked]?.content))?.[1] ?? 'ann'
  const wish = { person, system: 'crm', days: 30, reason: 'a new customer' }
  const steps = messages.slice(asked).filter((it) => it.role === 'tool').length
  if (steps === 0) return { calls: [{ name: 'search_policy', arguments: { query: 'access to the crm' } }] }
  if (steps === 1) return { calls: [{ name: 'draft_request', arguments: wish }] }
  if (steps === 2) return { calls: [{ name: 'submit_request', arguments: wish }] }
  return { text: `Done: ${String(messages.at(-1)?.content)}` }
}

/** Requests access; resolves with the pending approval. */
export async function ask(person: Person, name: string, sessionId = 's1'): Promise<Anything> {
  const { status, body } = await person.post('/api/chat', {
    sessionId,
    turnId: `turn-${sessionId}`,
    message: `I am ${name} and need the crm for 30 days.`,
  })
  if (status !== 202) throw new Error(`no approval waits: ${status} ${JSON.stringify(body)}`)
  return body.approvals[0]
}

/** Resolves with the answer of the turn, at its end. */
export const answerOf = (person: Person, sessionId = 's1'): Promise<string> =>
  until(
    async () => {
      const view = await person.get(`/api/sessions/${sessionId}/messages`)
      return view.status === 'idle' && String(view.messages.at(-1).blocks.at(-1).text)
    },
    { deadlineMs: 15_000 },
  )

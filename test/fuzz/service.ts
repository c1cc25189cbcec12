// A whole service on SQLite with people, their sessions, and what must never be seen by others.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlite } from '@oxbow/backends'
import { agent, createEngine, externalTool, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import {
  createApiKey,
  createIdentity,
  createLogger,
  createMetrics,
  createService,
  engineErrors,
  identityProblems,
  loadConfig,
  loggingMiddleware,
} from '@oxbow/server'
import { scriptedModel } from '@oxbow/testing'

export type Person = 'ann' | 'bob' | 'root'

/** Part of all of bob's data. */
export const OF_BOB = 'bobs-marker-5e1f'
/** Part of everything that only the service may know. */
export const SECRET = 'service-secret-77aa'

export interface Target {
  readonly url: string
  readonly keys: Readonly<Record<Person, string>>
  /** The directory of the store, which no answer may name. */
  readonly directory: string
  /** Paths as the router has them: `GET /a/{b}`. */
  readonly routes: readonly string[]
  /** Ids by the name of the parameter or field that takes them. */
  readonly ids: Readonly<Record<string, readonly string[]>>
  readonly logged: Record<string, unknown>[]
  close(): Promise<void>
}

const input = { type: 'object', properties: { text: { type: 'string' } } }
const tools = [
  tool({ name: 'pay', description: 'Pays.', effects: ['write'], input, secrets: ['text'], run: () => 'paid' }),
  externalTool({ name: 'measure', description: 'Measures, at the client.', effects: ['read'], input }),
]

export async function startTarget(mode: 'none' | 'api-keys'): Promise<Target> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-fuzz-'))
  const made = {
    ann: createApiKey({ user: 'ann' }, 'identity.keys'),
    bob: createApiKey({ user: 'bob' }, 'identity.keys'),
    root: createApiKey({ user: 'root', permissions: ['oxbow:admin'] }, 'identity.keys'),
  }
  const file = join(directory, 'oxbow.toml')
  const entries = Object.values(made).map((it) => it.toml)
  writeFileSync(file, mode === 'none' ? '' : `[identity]\nmode = "api-keys"\n${entries.join('')}`)
  const config = await loadConfig({
    environment: { OXBOW_PROFILE: 'test', OXBOW_CONFIG: file },
    overrides: {
      'log.level': 'debug',
      'log.format': 'json',
      'store.path': join(directory, 'fuzz.db'),
      'server.limits.bodyBytes': 200_000,
      'server.rateLimits.failedAuthenticationsPerMinute': 1_000_000,
      'server.disconnectGrace': '0ms',
    },
  })
  const model = await scriptedModel({
    scripts: {
      '*': ({ messages }) => {
        const last = messages.at(-1)
        const text = String(last?.content)
        if (last?.role === 'tool' || last?.role !== 'user') return { text: 'Done.' }
        if (text.includes('please pay')) return { calls: [{ name: 'pay', arguments: { text } }] }
        if (text.includes('please measure')) return { calls: [{ name: 'measure' }] }
        return { text: 'Hello.' }
      },
    },
  })
  const logged: Record<string, unknown>[] = []
  const log = createLogger({
    ...config.log,
    destination: { write: (line) => logged.push(JSON.parse(line)) },
    environment: {},
  })
  const metrics = createMetrics()
  const identity = await createIdentity(config.identity, { onProblem: identityProblems(log) })
  const backend = sqlite({ path: config.store.path })
  const driver = openaiChat({ provider: 'scripted', model: 'any', baseUrl: model.url, apiKey: SECRET })
  const engine = createEngine({
    backend,
    agents: [
      agent({
        name: 'assistant',
        model: driver,
        instructions: `Be brief. ${SECRET}`,
        tools,
        allow: ['measure'],
        middleware: [loggingMiddleware(log), metrics.middleware],
      }),
    ],
    onError: engineErrors(log),
    currentPrincipal: identity.refresh,
  })
  const service = createService({ engine, config, log, metrics, identity })
  const { url } = await service.listen()

  const keys = { ann: made.ann.key, bob: made.bob.key, root: made.root.key }
  const post = async (person: Person, path: string, body: object): Promise<never> => {
    const names = mode === 'none' && !path.startsWith('/tasks') ? { userId: person } : {}
    const answer = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${keys[person]}` },
      body: JSON.stringify({ ...body, ...names }),
    })
    if (!answer.ok) throw new Error(`the service could not be filled: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as never
  }
  const approvals: string[] = []
  const calls: string[] = []
  for (const person of ['ann', 'bob'] as const) {
    const about = person === 'bob' ? OF_BOB : 'of ann'
    await post(person, '/api/chat', { sessionId: `done-${person}`, turnId: 't1', message: about })
    for (const n of [1, 2, 3, 4, 5]) {
      const asked: { approvals: { id: string; callId: string }[] } = await post(person, '/api/chat', {
        sessionId: `asks-${person}-${n}`,
        turnId: 't1',
        message: `please pay ${about}`,
      })
      approvals.push(asked.approvals[0]!.id)
      calls.push(asked.approvals[0]!.callId)
    }
    const measured: { pending: { callId: string }[] } = await post(person, '/api/chat', {
      sessionId: `ext-${person}`,
      turnId: 't1',
      message: `please measure ${about}`,
    })
    calls.push(measured.pending[0]!.callId)
    await post(person, '/agent/task?wait=5', { taskId: `task-${person}`, message: `please pay ${about}` })
    await post(person, '/agent/task?wait=5', { taskId: `paused-${person}`, message: `please measure ${about}` })
    await post(person, `/agent/task/paused-${person}/pause`, {})
    await post(person, '/tasks', { task_id: `agent-${person}`, input: `please pay ${about}` })
    await post(person, '/tasks', { task_id: `agent-done-${person}`, input: about })
  }
  const artifact = 'reports/summary.md'
  const owner = { tenant: 'default', user: mode === 'none' ? 'default' : 'ann', session: 'agent-done-ann' }
  await backend.files.put(owner, artifact, Buffer.from('# Summary'))
  const sessions = [
    'done-ann',
    'asks-ann-1',
    'ext-ann',
    'paused-ann',
    'done-bob',
    'asks-bob-1',
    'ext-bob',
    'task-ann',
    'agent-bob',
  ]
  const tasks = [
    'task-ann',
    'task-bob',
    'agent-ann',
    'agent-done-ann',
    'agent-bob',
    'asks-ann-2:t1',
    'paused-ann',
    'done-bob:t1',
  ]
  return {
    url,
    keys,
    directory,
    routes: service.app.routes
      .filter((it) => it.method !== 'ALL')
      .map((it) => `${it.method} ${it.path.replace(/:(\w+)/g, '{$1}')}`),
    ids: {
      sessionId: sessions,
      threadId: sessions,
      session: sessions,
      taskId: tasks,
      task_id: tasks,
      turnId: ['t1', 't2'],
      runId: ['t1', 'run-1'],
      approvalId: approvals,
      interruptId: approvals,
      artifactId: [Buffer.from(artifact).toString('base64url')],
      callId: calls,
      toolCallId: calls,
      tool_call_id: calls,
      user: ['ann', 'bob'],
      userId: ['ann', 'ann', 'ann', 'bob', ''],
      askedBy: ['ann', 'bob'],
      tenant: ['default', 'default', 'default', 'default', 'other'],
      message: ['Hi.', 'please pay', 'please measure'],
      input: ['Hi.', 'please pay'],
      content: ['Hi.', 'please pay'],
      role: ['user', 'assistant', 'tool'],
      agent: ['assistant'],
      tools: ['pay', 'measure'],
      deny: ['pay'],
      tool_name: ['pay', 'pa*', 'pay(x)'],
      rule: ['pay'],
      agent_id: ['assistant', 'other'],
      after: ['0', '3'],
      'Last-Event-ID': ['0', '5'],
    },
    logged,
    async close() {
      await service.close()
      await backend.close()
      await model.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

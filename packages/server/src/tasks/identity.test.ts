// Tasks of authenticated users, over both protocols.
import { once } from 'node:events'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { deployTool, protocol } from '../agent-protocol/protocol.fixture.ts'
import { createApiKey } from '../identity/api-keys/api-key.ts'
import { json, type RigOptions, rigs } from '../test.fixture.ts'

const start = rigs()

/** A service with keys for ann and bob, and a client for each. */
async function withKeys(options: RigOptions) {
  const made = [createApiKey({ user: 'ann' }), createApiKey({ user: 'bob' })] as const
  const keys = made.flatMap(({ toml }) => parse(toml).keys as unknown[])
  const rig = await start({
    ...options,
    overrides: { 'identity.mode': 'api-keys', 'identity.keys': keys, ...options.overrides },
  })
  const as = ({ key }: { key: string }) => {
    const headers = { authorization: `Bearer ${key}` }
    return {
      headers,
      get: (path: string, init: RequestInit = {}) =>
        rig.get(path, { ...init, headers: { ...headers, ...init.headers } }),
      post: (path: string, body: unknown, init: RequestInit = {}) =>
        rig.post(path, body, { ...init, headers: { ...headers, ...init.headers } }),
    }
  }
  return { rig, ann: as(made[0]), bob: as(made[1]) }
}

const call = { calls: [{ name: 'deploy', arguments: { version: '1' } }] }

test('P8: identity comes from the credentials, never from the body', async () => {
  const { deploy, deployed } = deployTool()
  const { rig, ann, bob } = await withKeys({
    agent: { tools: [deploy] },
    replies: [call, { text: 'Done.' }, { text: 'Of bob.' }],
  })
  expect((await protocol(rig).submit('t1')).status).toBe(401)
  const { submit, wait, resume } = protocol(ann)
  await submit('t1', { context: { user_id: 'bob' } })
  const { pending_confirms } = await wait('t1')
  const decisions = [{ toolCallId: pending_confirms[0].toolCallId, approved: true }]
  for (const path of ['', '/wait', '/events', '/artifacts', '/logs'])
    expect((await bob.get(`/tasks/t1${path}`)).status).toBe(404)
  expect((await protocol(bob).resume('t1', decisions)).status).toBe(404)
  expect((await protocol(bob).cancel('t1')).status).toBe(404)
  expect((await resume('t1', decisions)).status).toBe(200)
  expect(await wait('t1')).toMatchObject({ status: 'success', result: 'Done.' })
  expect(deployed).toMatchObject([{ user: 'ann' }])
  // The same id of another user is a different task.
  await protocol(bob).submit('t1')
  expect(await protocol(bob).wait('t1')).toMatchObject({ status: 'success', result: 'Of bob.' })
})

test('B9: only the owner finds a task, also over a WebSocket', async () => {
  const { rig, ann, bob } = await withKeys({ replies: { always: { text: 'Done.' } } })
  expect((await rig.post('/agent/task', { message: 'Go.' })).status).toBe(401)
  expect((await ann.post('/agent/task', { message: 'Go.', userId: 'bob' })).status).toBe(403)
  const { taskId } = await json(ann.post('/agent/task?wait=30', { message: 'Go.' }))
  expect((await ann.get(`/agent/task/${taskId}`)).status).toBe(200)
  for (const path of [`/agent/task/${taskId}`, `/agent/stream/${taskId}`])
    expect((await bob.get(path)).status).toBe(404)
  const url = `${rig.url.replace('http', 'ws')}/agent/ws/${taskId}`
  for (const [headers, status] of [
    [{}, 401],
    [bob.headers, 404],
  ] as const) {
    const [, answer] = await once(new WebSocket(url, { headers }), 'unexpected-response')
    expect(answer.statusCode).toBe(status)
  }
  const [data] = await once(new WebSocket(url, { headers: ann.headers }), 'message')
  expect(JSON.parse(String(data))).toMatchObject({ event: 'state', data: { state: 'CREATED' } })
})

test('tasks count towards the limit of concurrent turns', async () => {
  const { deploy } = deployTool()
  const { ann, bob } = await withKeys({
    agent: { tools: [deploy] },
    replies: { always: { text: 'one two', silentAfterChunks: 1 } },
    overrides: { 'server.rateLimits.concurrentTurns': 1, 'server.shutdownGrace': '0ms' },
  })
  const { taskId } = await json(ann.post('/agent/task', { message: 'Go.' }))
  expect((await ann.post('/agent/task', { message: 'Go.' })).status).toBe(429)
  expect((await protocol(ann).submit('t1')).status).toBe(429)
  expect((await bob.post('/agent/task', { message: 'Go.' })).status).toBe(202)
  await ann.post(`/agent/task/${taskId}/cancel`, {})
  await (await ann.get(`/agent/stream/${taskId}`)).text()
  expect((await protocol(ann).submit('t1')).status).toBe(200)
})

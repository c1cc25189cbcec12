// A key is revoked while its work still waits, and the same user has another key.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Principal, tool } from '@oxbow/core'
import { gate, until } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'
import { createApiKey } from './api-keys/api-key.ts'

const start = rigs()

async function withTwoKeys() {
  const narrow = createApiKey({ user: 'ann', permissions: ['pay:small'] })
  const broad = createApiKey({ user: 'ann', permissions: ['*'], roles: ['admin'], dataScope: [{ type: 'all' }] })
  const folder = await mkdtemp(join(tmpdir(), 'oxbow-revoked-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const keysFile = join(folder, 'keys.toml')
  await writeFile(keysFile, narrow.toml + broad.toml)
  const paid: Principal[] = []
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    effects: ['write'],
    permission: 'pay:small',
    input: {},
    run: (_, { principal }) => {
      paid.push(principal)
      return 'paid'
    },
  })
  const rig = await start({
    agent: { tools: [pay] },
    replies: [{ calls: [{ name: 'pay' }] }, { text: 'Done.' }],
    overrides: { 'identity.mode': 'api-keys', 'identity.keysFile': keysFile, 'server.recheck': '1s' },
  })
  const as = ({ key }: { key: string }) => ({ headers: { authorization: `Bearer ${key}` } })
  const asked = await json(rig.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Pay.' }, as(narrow)))
  const approve = () => rig.post(`/api/approvals/${asked.approvals[0].id}`, { verdict: 'approved' }, as(broad))
  const revoke = async (): Promise<void> => {
    await writeFile(keysFile, broad.toml)
    await until(async () => (await rig.get('/api/sessions', as(narrow))).status === 401)
  }
  return { rig, narrow, broad, as, approve, revoke, paid, session: rig.engine.session({ user: 'ann', session: 's' }) }
}

test('A call that another key of the same user approves runs with the rights of the requesting key', async () => {
  const { approve, paid, session } = await withTwoKeys()
  expect((await approve()).status).toBe(200)
  await session.wait('t')
  expect(paid).toMatchObject([{ permissions: ['pay:small'], roles: [], dataScope: [{ type: 'own' }] }])
})

test('A call of a revoked key does not run, even if another key of the same user approves it', async () => {
  const { approve, revoke, paid, session } = await withTwoKeys()
  await revoke()
  expect((await approve()).status).toBe(200)
  await expect(session.wait('t')).rejects.toMatchObject({
    code: 'principal_revoked',
    message: 'ann is no longer authorised.',
  })
  expect(paid).toEqual([])
})

test('A stream of a revoked key ends; the stream of another key of the same user continues', async () => {
  const { rig, narrow, broad, as, revoke } = await withTwoKeys()
  await json(rig.post('/agent/task', { taskId: 'task', message: 'Hi.' }, as(broad)))
  const leaving = new AbortController()
  const theirs = await rig.get('/agent/stream/s:t', { ...as(narrow), signal: leaving.signal })
  const other = await rig.get('/agent/stream/s:t', { ...as(broad), signal: leaving.signal })
  let ended = false
  void other.text().then(
    () => {
      ended = true
    },
    () => {},
  )
  await revoke()
  expect(await theirs.text()).toContain('access_withdrawn')
  expect(ended).toBe(false)
  leaving.abort()
})

test('Revoked rights end a running turn at its next call, and the pending answer of its caller', async () => {
  const mine = createApiKey({ user: 'ann', permissions: ['look:*'] })
  const other = createApiKey({ user: 'bob' })
  const folder = await mkdtemp(join(tmpdir(), 'oxbow-revoked-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const keysFile = join(folder, 'keys.toml')
  await writeFile(keysFile, mine.toml + other.toml)
  const ran: string[] = []
  const as = ({ key }: { key: string }) => ({ headers: { authorization: `Bearer ${key}` } })
  const look = tool({
    name: 'look',
    description: 'Looks.',
    effects: ['read'],
    permission: 'look:rows',
    input: {},
    async run() {
      ran.push('look')
      await writeFile(keysFile, other.toml)
      await until(async () => (await rig.get('/api/sessions', as(mine))).status === 401)
      return 'rows'
    },
  })
  const rig = await start({
    agent: { tools: [look] },
    replies: [{ calls: [{ name: 'look' }] }, { calls: [{ name: 'look' }] }, { text: 'The rows.' }],
    overrides: { 'identity.mode': 'api-keys', 'identity.keysFile': keysFile, 'server.rightsMaxAge': '0ms' },
  })
  const answer = await rig.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Look.' }, as(mine))
  expect(ran).toEqual(['look'])
  expect([answer.status, (await json(answer)).error.code]).toEqual([403, 'principal_revoked'])
})

test('A pending answer is not sent to a key that was revoked meanwhile', async () => {
  const mine = createApiKey({ user: 'ann' })
  const other = createApiKey({ user: 'bob' })
  const folder = await mkdtemp(join(tmpdir(), 'oxbow-revoked-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const keysFile = join(folder, 'keys.toml')
  await writeFile(keysFile, mine.toml + other.toml)
  const held = gate()
  const rig = await start({
    replies: [{ text: 'The secret answer.', hold: { atChunk: 1, gate: held } }],
    overrides: { 'identity.mode': 'api-keys', 'identity.keysFile': keysFile, 'server.rightsMaxAge': '0ms' },
  })
  const headers = { authorization: `Bearer ${mine.key}` }
  const chat = rig.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Tell me.' }, { headers })
  await held.reached
  await writeFile(keysFile, other.toml)
  await until(async () => (await rig.get('/api/sessions', { headers })).status === 401)
  held.open()
  const answer = await chat
  expect([answer.status, (await json(answer)).error.code]).toEqual([401, 'access_withdrawn'])
})

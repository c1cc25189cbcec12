// B16: open streams and waiting turns when the host system revokes rights or is unavailable.
import { type Tool, tool } from '@oxbow/core'
import { until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type HostSystem, type HostUser, hostSystem } from '../identity/introspection/host-system.fixture.ts'
import { framesOf, json, type Rig, type RigOptions, rigs, runInput } from '../test.fixture.ts'

const start = rigs()

interface Hosted {
  readonly host: HostSystem
  readonly rig: Rig
  /** Sends requests with the session of this token. */
  as(token: string): {
    get(path: string): Promise<Response>
    post(path: string, body: unknown): Promise<Response>
  }
}

async function hosted(users: Readonly<Record<string, HostUser>>, options: RigOptions): Promise<Hosted> {
  const host = await hostSystem(users)
  onTestFinished(() => host.close())
  const rig = await start({
    ...options,
    overrides: {
      'identity.mode': 'introspection',
      'identity.introspection': { preset: 'ruoyi', url: host.url },
      'server.recheck': '1s',
      'server.shutdownGrace': '0ms',
      ...options.overrides,
    },
  })
  const as = (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    return {
      get: (path: string) => rig.get(path, { headers }),
      post: (path: string, body: unknown) => rig.post(path, body, { headers }),
    }
  }
  return { host, rig, as }
}

const people = { t1: { userName: 'ann' }, t2: { userName: 'bob' }, t3: { userName: 'root', permissions: ['*:*:*'] } }
const silent = { replies: { always: { text: 'one two three', silentAfterChunks: 1 } } }

/** The text of a stream, and whether the stream has ended. */
function reading(answer: Response): { readonly text: Promise<string>; ended: boolean } {
  const it = { text: answer.text(), ended: false }
  void it.text.then(() => {
    it.ended = true
  })
  return it
}

async function socket(url: string, token: string): Promise<{ closed: Promise<CloseEvent>; messages: string[] }> {
  // Node's client accepts headers, but its type is the browser's.
  const Client = WebSocket as unknown as new (url: string, options: object) => WebSocket
  const opened = new Client(url.replace('http', 'ws'), { headers: { authorization: `Bearer ${token}` } })
  const messages: string[] = []
  opened.addEventListener('message', ({ data }) => messages.push(String(data)))
  const closed = new Promise<CloseEvent>((resolve) => opened.addEventListener('close', resolve))
  await new Promise((resolve) => opened.addEventListener('open', resolve))
  return { closed, messages }
}

describe('open streams', () => {
  test('of a user who may no longer act end with a typed error; other users’ streams continue', async () => {
    const { host, rig, as } = await hosted(people, silent)
    const [ann, bob] = [as('t1'), as('t2')]
    const chat = reading(await ann.post('/api/chat/stream', runInput('Hi')))
    await rig.model.nextRequest()
    const again = reading(await ann.get('/api/sessions/thread/stream'))
    await ann.post('/agent/task', { taskId: 'task', message: 'Hi' })
    const task = reading(await ann.get('/agent/stream/task'))
    const ws = await socket(`${rig.url}/agent/ws/task`, 't1')
    await ann.post('/tasks', { task_id: 'agent', input: 'Hi' })
    const protocol = reading(await ann.get('/tasks/agent/events'))
    const other = reading(await bob.post('/api/chat/stream', runInput('Hi')))
    await until(() => rig.model.requests.length === 4)

    const withdrawnAt = performance.now()
    host.sessions.delete('t1')
    for (const it of [chat, again]) {
      const end = framesOf(await it.text).at(-1)
      expect(end).toMatchObject({ type: 'RUN_ERROR', code: 'INTERRUPTED_ERROR' })
      expect(end?.message).toContain('You no longer have access to this')
    }
    for (const it of [task, protocol])
      expect(await it.text).toMatch(
        /\nevent: error\ndata: \{"error":\{"code":"access_withdrawn","message":".+"\}\}\n\n$/,
      )
    const { code, reason } = await ws.closed
    expect([code, reason]).toEqual([1008, 'access_withdrawn'])
    expect(JSON.parse(ws.messages.at(-1)!)).toMatchObject({
      event: 'error',
      data: { error: { code: 'access_withdrawn' } },
    })
    // One interval, plus the delay of a busy machine.
    expect(performance.now() - withdrawnAt).toBeLessThan(5_000)
    expect(other.ended).toBe(false)
    expect((await ann.get('/agent/stream/task')).status).toBe(401)
  })

  test('of an administrator end when that permission is revoked, even if the user may still act', async () => {
    const { host, rig, as } = await hosted(people, silent)
    await as('t1').post('/agent/task', { taskId: 'task', message: 'Hi' })
    await as('t3').post('/agent/task', { taskId: 'own', message: 'Hi' })
    const foreign = reading(await as('t3').get('/agent/stream/task?userId=ann'))
    const own = reading(await as('t3').get('/agent/stream/own'))
    await until(() => rig.model.requests.length === 2)
    host.sessions.set('t3', { userName: 'root', permissions: ['biz:order:query'] })
    expect(await foreign.text).toContain('access_withdrawn')
    expect(own.ended).toBe(false)
  })

  test('stay open while the host is unavailable', async () => {
    const { host, rig, as } = await hosted(people, silent)
    await as('t1').post('/agent/task', { taskId: 'task', message: 'Hi' })
    const open = reading(await as('t1').get('/agent/stream/task'))
    await rig.model.nextRequest()
    host.behave((_request, response) => response.destroy())
    const before = host.asked.length
    await until(() => host.asked.length >= before + 2)
    expect(open.ended).toBe(false)
    host.behave(undefined)
    host.sessions.delete('t1')
    expect(await open.text).toContain('access_withdrawn')
  })
})

describe('a turn whose approval is used while the host is down', () => {
  const payTool = (paid: unknown[]): Tool =>
    tool({
      name: 'pay',
      description: 'Pays.',
      effects: ['write'],
      input: {},
      run: () => {
        paid.push('paid')
        return 'paid'
      },
    })
  const replies = [{ calls: [{ name: 'pay' }] }, { text: 'Done.' }]

  async function approvedWhileDown(limits: object = {}) {
    const paid: unknown[] = []
    const it = await hosted(people, { replies, agent: { tools: [payTool(paid)], limits } })
    const ann = it.as('t1')
    const asked = await json(ann.post('/api/chat', { sessionId: 's', turnId: 't', message: 'Pay.' }))
    it.host.behave((_request, response) => response.destroy())
    // A known caller stays authenticated for a while; the rights for the call are checked again.
    expect((await ann.post(`/api/approvals/${asked.approvals[0].id}`, { verdict: 'approved' })).status).toBe(200)
    await until(() => it.rig.engine.waitingForIdentity === 1)
    return { ...it, ann, paid, session: it.rig.engine.session({ user: 'ann', session: 's' }) }
  }
  const gauge = async ({ as }: Hosted): Promise<string | undefined> =>
    /^oxbow_turns_waiting_for_identity (\d+)$/m.exec(await (await as('t3').get('/metrics')).text())?.[1]

  test('waits, logs it, and continues when the host is back, despite its own time limit', async () => {
    const all = await approvedWhileDown({ totalTimeoutMs: 1_000, idleTimeoutMs: 1_000 })
    const { host, rig, paid, session } = all
    const problems = () => rig.logged.filter((it) => it.level === 'warn' && String(it.msg).startsWith('identity.'))
    // The third question follows the first after a second and a half.
    await until(() => problems().length >= 3)
    expect(rig.logged).toContainEqual(
      expect.objectContaining({
        msg: 'engine error',
        turnId: 't',
        session: 's',
        err: expect.objectContaining({ code: 'identity_unavailable' }),
      }),
    )
    expect((await session.state()).turn?.turnId).toBe('t')
    expect(paid).toEqual([])
    host.behave(undefined)
    expect((await session.wait('t')).text).toBe('Done.')
    expect(paid).toEqual(['paid'])
    expect(await gauge(all)).toBe('0')
  })

  test('appears in /metrics, and can still be stopped', async () => {
    const paid: unknown[] = []
    const it = await hosted(people, { replies, agent: { tools: [payTool(paid)] } })
    const asked = await json(it.as('t1').post('/api/chat', { sessionId: 's', turnId: 't', message: 'Pay.' }))
    // The administrator is already cached.
    expect(await gauge(it)).toBe('0')
    it.host.behave((_request, response) => response.destroy())
    await it.as('t1').post(`/api/approvals/${asked.approvals[0].id}`, { verdict: 'approved' })
    await until(() => it.rig.engine.waitingForIdentity === 1)
    expect(await gauge(it)).toBe('1')
    expect((await it.as('t1').post('/api/sessions/s/interrupt', {})).status).toBe(200)
    expect(await it.rig.engine.session({ user: 'ann', session: 's' }).wait('t')).toMatchObject({ status: 'cancelled' })
    expect(paid).toEqual([])
    expect(it.rig.engine.waitingForIdentity).toBe(0)
  })

  test('is denied when the host is back and no longer knows its user', async () => {
    const { host, paid, session } = await approvedWhileDown()
    host.sessions.delete('t1')
    host.behave(undefined)
    await expect(session.wait('t')).rejects.toMatchObject({ code: 'principal_revoked' })
    expect(paid).toEqual([])
  })
})

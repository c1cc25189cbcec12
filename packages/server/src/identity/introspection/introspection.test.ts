import { type Principal, tool } from '@oxbow/core'
import { gate, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../index.ts'
import { json, rigs } from '../../test.fixture.ts'
import { createIdentity } from '../identity.ts'
import { type HostSystem, type HostUser, hostSystem } from './host-system.fixture.ts'

const start = rigs()

async function ruoyi(users: Readonly<Record<string, HostUser>> = { t1: { userName: 'ann', deptId: 103 } }) {
  const host = await hostSystem(users)
  onTestFinished(() => host.close())
  return host
}

async function identityOf(host: HostSystem, more: Record<string, unknown> = {}, refresh: Record<string, unknown> = {}) {
  const { identity } = await loadConfig({
    environment: { OXBOW_PROFILE: 'test' },
    overrides: {
      identity: { mode: 'introspection', introspection: { preset: 'ruoyi', url: host.url, ...more }, refresh },
    },
  })
  const problems: string[] = []
  const made = await createIdentity(identity, { onProblem: ({ message }) => problems.push(message) })
  const ask = (...rawHeaders: string[]) => made.authenticate({ rawHeaders })
  const bearer = (token: string) => ask('Authorization', `Bearer ${token}`)
  return { ...made, ask, bearer, problems }
}

const codeOf = (result: { accepted: boolean }): string =>
  result.accepted
    ? `accepted ${(result as never as { principal: { user: string } }).principal.user}`
    : (result as never as { code: string }).code

describe('B16: a session of RuoYi', () => {
  test('authenticates the user that /getInfo returns', async () => {
    const host = await ruoyi({
      t1: { userName: 'ann', userId: 7, deptId: 103, roles: ['common'], permissions: ['biz:order:query'] },
    })
    const { bearer } = await identityOf(host)
    expect(await bearer('t1')).toEqual({
      accepted: true,
      principal: {
        tenant: 'default',
        user: 'ann',
        department: '103',
        roles: ['common'],
        permissions: ['biz:order:query'],
        credential: expect.any(String),
      },
    })
    expect(await bearer('t2')).toMatchObject({ accepted: false, status: 401, code: 'credentials_invalid' })
    const byNumber = await identityOf(host, { fields: { user: 'user.userId' } })
    expect(codeOf(await byNumber.bearer('t1'))).toBe('accepted 7')
  })

  test('with *:*:* has every permission, of any number of segments', async () => {
    const { bearer } = await identityOf(await ruoyi({ t1: { userName: 'admin', permissions: ['*:*:*'] } }))
    expect(await bearer('t1')).toMatchObject({ principal: { permissions: ['*:*:*', '*'] } })
  })

  test('RuoYi-Vue-Plus has the same fields below data, with tenants, and receives the client id', async () => {
    const host = await ruoyi()
    host.behave((request, response) => {
      const user = { userName: 'ann', tenantId: '000000', deptId: 103 }
      const ok = request.headers.clientid === 'web'
      response.end(JSON.stringify(ok ? { code: 200, data: { user, roles: ['r'], permissions: ['p'] } } : { code: 401 }))
    })
    const { ask } = await identityOf(host, { preset: 'ruoyi-vue-plus' })
    expect(await ask('Authorization', 'Bearer t1', 'clientid', 'web')).toMatchObject({
      principal: { tenant: '000000', user: 'ann', department: '103', roles: ['r'], permissions: ['p'] },
    })
    expect(codeOf(await ask('Authorization', 'Bearer t1'))).toBe('credentials_invalid')
    expect(codeOf(await ask('clientid', 'web'))).toBe('credentials_missing')
  })

  test('over HTTP: the department reaches a tool, and losing the permission ends the access', async () => {
    const host = await ruoyi({ t1: { userName: 'ann', deptId: 103, permissions: ['biz:order:pay'] } })
    const seen: unknown[] = []
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      effects: ['write'],
      permission: 'biz:order:pay',
      input: { type: 'object', properties: {} },
      run: (_input, { principal }) => {
        seen.push(principal)
        return 'paid'
      },
    })
    const rig = await start({
      overrides: {
        'identity.mode': 'introspection',
        'identity.introspection': { preset: 'ruoyi', url: host.url },
      },
      agent: { tools: [pay] },
      replies: ({ messages }) => (messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : { calls: [{ name: 'pay' }] }),
    })
    const headers = { authorization: 'Bearer t1' }
    const approve = async (session: string) => {
      expect((await rig.post('/api/chat', { sessionId: session, message: 'Pay' }, { headers })).status).toBe(202)
      const handle = rig.engine.session({ user: 'ann', session })
      const { turn } = await handle.state()
      const { approvalId } = turn!.calls[0]!.approval!.requested
      const change = async () => {
        await handle.decide(approvalId, { verdict: 'approved' })
        await until(async () => (await handle.state()).turn === undefined)
        return (await handle.events()).find((it) => it.type === 'call.finished')
      }
      return change
    }
    const first = await approve('s1')
    expect(await first()).toMatchObject({ status: 'success' })
    expect(seen).toMatchObject([{ user: 'ann', department: '103' }])
    const second = await approve('s2')
    host.sessions.set('t1', { userName: 'ann', deptId: 103, permissions: [] })
    expect(await second()).toMatchObject({ status: 'denied' })
    // The cached answer is gone too: the next call is refused without asking the host.
    expect((await rig.post('/api/chat', { sessionId: 's3', message: 'Pay' }, { headers })).status).toBe(200)
    expect(seen).toHaveLength(1)
  })
})

describe('forwarded credentials', () => {
  test('are the configured headers and cookies only', async () => {
    const host = await ruoyi()
    const { ask } = await identityOf(host, { headers: ['x-session'], cookies: ['Admin-Token'] })
    const raw = [
      'Cookie',
      'theme=dark; Admin-Token=t1; other=1',
      'X-Session',
      's',
      'Authorization',
      'Bearer z',
      'X-More',
      'm',
    ]
    expect(codeOf(await ask(...raw))).toBe('accepted ann')
    const { headers } = host.asked[0]!
    expect(headers).toMatchObject({ cookie: 'Admin-Token=t1', 'x-session': 's' })
    expect(headers).not.toHaveProperty('authorization')
    expect(headers).not.toHaveProperty('x-more')
  })

  test('with two cookies of one name are refused without asking the host', async () => {
    const host = await ruoyi()
    const { ask } = await identityOf(host, { headers: [], cookies: ['Admin-Token'] })
    expect(codeOf(await ask('Cookie', 'Admin-Token=t1; Admin-Token=t2'))).toBe('credentials_ambiguous')
    expect(codeOf(await ask('Cookie', 'Admin-Token=t1', 'Cookie', 'Admin-Token=t2'))).toBe('credentials_ambiguous')
    expect(codeOf(await ask('Cookie', 'Admin-Tokens=t1; xAdmin-Token=t1'))).toBe('credentials_missing')
    expect(host.asked).toHaveLength(0)
  })

  test('may be a cookie and a bearer token with the same value; different values are refused', async () => {
    const host = await ruoyi()
    const { ask } = await identityOf(host, { headers: ['authorization'], cookies: ['Admin-Token'] })
    expect(codeOf(await ask('Cookie', 'Admin-Token=t1', 'Authorization', 'Bearer t2'))).toBe('credentials_ambiguous')
    expect(host.asked).toHaveLength(0)
    expect(codeOf(await ask('Cookie', 'Admin-Token=t1', 'Authorization', 'Bearer t1'))).toBe('accepted ann')
  })

  test('with a duplicate header are refused without asking the host', async () => {
    const host = await ruoyi()
    const { ask } = await identityOf(host)
    const twice = await ask('Authorization', 'Bearer t1', 'authorization', 'Bearer t2')
    expect(codeOf(twice)).toBe('credentials_ambiguous')
    expect(codeOf(await ask('Accept', '*/*'))).toBe('credentials_missing')
    expect(host.asked).toHaveLength(0)
  })
})

describe('requests to the host', () => {
  test('an answer is cached, and concurrent requests share one question', async () => {
    const host = await ruoyi()
    const held = gate()
    host.behave(async (_request, response) => {
      await held.pass()
      response.end(JSON.stringify({ code: 200, user: { userName: 'ann' } }))
    })
    const { bearer } = await identityOf(host)
    const all = [bearer('t1'), bearer('t1'), bearer('t1')]
    await held.reached
    held.open()
    expect((await Promise.all(all)).map(codeOf)).toEqual(['accepted ann', 'accepted ann', 'accepted ann'])
    expect(codeOf(await bearer('t1'))).toBe('accepted ann')
    expect(host.asked).toHaveLength(1)
  })

  test('without a cache each request asks the host', async () => {
    const host = await ruoyi()
    const { bearer } = await identityOf(host, { cacheTime: '0ms' })
    expect(codeOf(await bearer('t1'))).toBe('accepted ann')
    host.sessions.delete('t1')
    expect(codeOf(await bearer('t1'))).toBe('credentials_invalid')
  })

  test('the cache is bounded', async () => {
    const host = await ruoyi({ t1: { userName: 'ann' }, t2: { userName: 'bob' } })
    const { bearer } = await identityOf(host, { cacheSize: 1 })
    for (const token of ['t1', 't2', 't1', 't1']) await bearer(token)
    expect(host.asked).toHaveLength(3)
  })

  test.each<[string, Parameters<HostSystem['behave']>[0], string]>([
    ['status 401', (_, response) => response.writeHead(401).end(), 'credentials_invalid'],
    [
      'a redirect to its own page',
      (_, response) => response.writeHead(302, { location: '/login' }).end(),
      'credentials_invalid',
    ],
    ['code 401 in the body', (_, response) => response.end('{"code":401}'), 'credentials_invalid'],
    [
      'status 500',
      (_, response) => response.writeHead(500).end('{"code":200,"user":{"userName":"ann"}}'),
      'identity_unavailable',
    ],
    [
      'code 500 in the body',
      (_, response) => response.end('{"code":500,"user":{"userName":"ann"}}'),
      'identity_unavailable',
    ],
    ['invalid JSON', (_, response) => response.end('<html>code=200</html>'), 'identity_unavailable'],
    ['nothing', (_, response) => response.end(), 'identity_unavailable'],
    ['null', (_, response) => response.end('null'), 'identity_unavailable'],
    ['code 200 without a user', (_, response) => response.end('{"code":200}'), 'identity_unavailable'],
    [
      'a user that is not a string',
      (_, response) => response.end('{"code":200,"user":{"userName":{}}}'),
      'identity_unavailable',
    ],
    [
      'an inherited user',
      (_, response) => response.end('{"code":200,"user":"x","__proto__":{"user":{"userName":"ann"}}}'),
      'identity_unavailable',
    ],
    [
      'an answer that is too large',
      (_, response) => response.end(`{"code":200,"user":{"userName":"ann"},"x":"${'x'.repeat(1_100_000)}"}`),
      'identity_unavailable',
    ],
    ['a broken connection', (_, response) => response.destroy(), 'identity_unavailable'],
    ['an endless answer', (_, response) => void response.writeHead(200).write('{"code":200,'), 'identity_unavailable'],
    ['no answer', () => {}, 'identity_unavailable'],
  ])('%s never authenticates the caller', async (_name, how, code) => {
    const host = await ruoyi()
    host.behave(how)
    const { bearer } = await identityOf(host, { timeout: '300ms' })
    expect(codeOf(await bearer('t1'))).toBe(code)
  })

  test('the circuit breaker opens for a host that is down, and closes after a successful request', async () => {
    const host = await ruoyi({ t1: { userName: 'ann' }, t2: { userName: 'bob' } })
    const { bearer, problems } = await identityOf(host)
    expect(codeOf(await bearer('t1'))).toBe('accepted ann')
    host.behave((_request, response) => response.writeHead(503).end())
    for (let i = 0; i < 10; i++) expect(codeOf(await bearer('t2'))).toBe('identity_unavailable')
    expect(host.asked).toHaveLength(4)
    expect(problems.at(-1)).toMatch(/circuit breaker open/)
    // Cached callers stay authenticated.
    expect(codeOf(await bearer('t1'))).toBe('accepted ann')
    host.behave(undefined)
    await until(async () => codeOf(await bearer('t2')) === 'accepted bob')
  })

  test('over HTTP an unavailable host is a typed 503 with Retry-After, on a stream before it starts', async () => {
    const host = await ruoyi()
    host.behave((_request, response) => response.destroy())
    const rig = await start({
      overrides: { 'identity.mode': 'introspection', 'identity.introspection': { preset: 'ruoyi', url: host.url } },
    })
    const answer = await rig.post('/api/chat/stream', {}, { headers: { authorization: 'Bearer secret-of-ann' } })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
    expect((await json(answer)).error.code).toBe('identity_unavailable')
    expect(JSON.stringify(rig.logged)).not.toContain('secret-of-ann')
    expect((await rig.get('/healthz')).status).toBe(200)
  })
})

describe('refresh', () => {
  const ann = { tenant: 'default', user: 'ann', permissions: ['old', 'new'] }

  test('asks the host about the caller’s session, bypassing the cache', async () => {
    const host = await ruoyi()
    const { bearer, refresh } = await identityOf(host)
    expect(await refresh(ann)).toBeUndefined()
    await bearer('t1')
    host.sessions.set('t1', { userName: 'ann', permissions: ['new', 'newer'] })
    expect(await refresh(ann)).toMatchObject({ permissions: ['new'] })
    host.sessions.set('t1', { userName: 'bob' })
    expect(await refresh(ann)).toBeUndefined()
    host.sessions.delete('t1')
    expect(await refresh(ann)).toBeUndefined()
    // A session that ended at the host ends here.
    expect(codeOf(await bearer('t1'))).toBe('credentials_invalid')
  })

  test('asks about the session that started the turn; another session of the same user adds no rights', async () => {
    const host = await ruoyi({
      'first-token': { userName: 'ann', permissions: ['a:one', 'a:two'] },
      'other-token': { userName: 'ann', permissions: ['*:*:*'], roles: ['admin'] },
    })
    const { bearer, refresh } = await identityOf(host)
    const principalIn = async (token: string) => ((await bearer(token)) as { principal: Principal }).principal
    const [began] = [await principalIn('first-token'), await principalIn('other-token')]
    expect(JSON.stringify(began)).not.toContain('first-token')
    expect(await refresh(began)).toEqual({ ...began, dataScope: [{ type: 'own' }] })
    host.sessions.set('first-token', { userName: 'ann', permissions: ['a:two', 'b:one'] })
    expect(await refresh(began)).toMatchObject({ permissions: ['a:two'], roles: [] })
    // After signing out and in again the new session counts, within the turn's own rights. A stream ends with its
    // session.
    host.sessions.delete('first-token')
    expect(await refresh(began)).toMatchObject({ permissions: ['a:one', 'a:two'], roles: [] })
    expect(await refresh(began, { reading: true })).toBeUndefined()
    host.sessions.delete('other-token')
    expect(await refresh(began)).toBeUndefined()
  })

  test('neither grants nor denies while the host is down', async () => {
    const host = await ruoyi()
    const { bearer, refresh } = await identityOf(host)
    await bearer('t1')
    host.behave((_request, response) => response.destroy())
    await expect(refresh(ann)).rejects.toMatchObject({ code: 'identity_unavailable', retryable: true })
  })
})

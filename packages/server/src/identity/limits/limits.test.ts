// Rate limits, origins and host names.
import { once } from 'node:events'
import { connect } from 'node:net'
import { tool } from '@oxbow/core'
import { gate, until } from '@oxbow/testing'
import { parse } from 'smol-toml'
import { describe, expect, onTestFinished, test } from 'vitest'
import { json, rigs, runInput } from '../../test.fixture.ts'
import { createApiKey } from '../api-keys/api-key.ts'
import { networkOf } from '../guard.ts'
import { hostSystem } from '../introspection/host-system.fixture.ts'
import { buckets } from './buckets.ts'

const start = rigs()
const ann = createApiKey({ user: 'ann' })
const bob = createApiKey({ user: 'bob' })
const keys = [ann, bob].flatMap(({ toml }) => parse(toml).keys as unknown[])
const as = ({ key }: { key: string }, more: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${key}`, ...more },
})
const withKeys = (overrides: Record<string, unknown> = {}) => ({
  overrides: { 'identity.mode': 'api-keys', 'identity.keys': keys, ...overrides },
})

describe('rate limits', () => {
  test('each principal has its own number of requests per minute', async () => {
    const { get } = await start(withKeys({ 'server.rateLimits.requestsPerMinute': 3 }))
    for (let i = 0; i < 3; i++) expect((await get('/api/sessions', as(ann))).status).toBe(200)
    const answer = await get('/api/sessions', as(ann))
    expect(answer.status).toBe(429)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await json(answer)).error.code).toBe('too_many_requests')
    expect((await get('/api/sessions', as(bob))).status).toBe(200)
    expect((await get('/healthz')).status).toBe(200)
  })

  test('a bucket refills over time', () => {
    let now = 0
    const { take } = buckets(60, () => now)
    for (let i = 0; i < 60; i++) expect(take('ann')).toBe(0)
    expect(take('ann')).toBe(1_000)
    now = 500
    expect(take('ann')).toBe(500)
    now = 1_000
    expect(take('ann')).toBe(0)
    expect(take('ann')).toBeGreaterThan(0)
  })

  test('a principal has a limited number of concurrent turns; a retry of the same turn does not count', async () => {
    const held = gate()
    const { post, get } = await start({
      ...withKeys({ 'server.rateLimits.concurrentTurns': 1 }),
      replies: { always: { text: 'one two', hold: { atChunk: 1, gate: held } } },
    })
    const first = post('/api/chat', { sessionId: 'a', message: 'Hi', turnId: 't' }, as(ann))
    await held.reached
    const again = post('/api/chat', { sessionId: 'a', message: 'Hi', turnId: 't' }, as(ann))
    for (const [path, body] of [
      ['/api/chat', { sessionId: 'b', message: 'Hi' }],
      ['/api/chat/stream', runInput('Hi')],
    ] as const) {
      const refused = await post(path, body, as(ann))
      expect([path, refused.status]).toEqual([path, 429])
      expect(refused.headers.get('retry-after')).toBe('5')
      expect((await json(refused)).error.code).toBe('too_many_turns')
    }
    expect((await get('/api/sessions', as(ann))).status).toBe(200)
    const other = post('/api/chat', { sessionId: 'b', message: 'Hi' }, as(bob))
    held.open()
    expect([(await first).status, (await again).status, (await other).status]).toEqual([200, 200, 200])
    expect((await post('/api/chat', { sessionId: 'b', message: 'Hi' }, as(ann))).status).toBe(200)
  })

  const surfaces: readonly (readonly [string, string, (n: number) => object])[] = [
    ['chat', '/api/chat', (n) => ({ sessionId: `c${n}`, message: 'Hi' })],
    ['stream', '/api/chat/stream', (n) => runInput('Hi', { threadId: `s${n}` })],
    ['task', '/agent/task', (n) => ({ taskId: `t${n}`, message: 'Hi' })],
    ['task with wait', '/agent/task?wait=30', (n) => ({ taskId: `w${n}`, message: 'Hi' })],
    ['task of the Agent Protocol', '/tasks', (n) => ({ task_id: `p${n}`, input: 'Hi' })],
  ]

  test.each(surfaces)(
    'a turn over %s takes a slot, and is refused when none is free, on every surface',
    async (_, path, body) => {
      const { post, get, model } = await start({
        ...withKeys({ 'server.rateLimits.concurrentTurns': 1, 'server.shutdownGrace': '0ms' }),
        replies: { always: { text: 'one two', silentAfterChunks: 1 } },
      })
      const holding = post(path, body(1), as(ann))
      await model.nextRequest()
      for (const [, other, bodyOf] of surfaces) {
        const refused = await post(other, bodyOf(2), as(ann))
        expect([other, refused.status, (await json(refused)).error.code]).toEqual([other, 429, 'too_many_turns'])
      }
      // Reading needs no slot: the frames of a task over a socket start no turn.
      expect((await get('/api/sessions', as(ann))).status).toBe(200)
      const { sessions } = await json(get('/api/sessions', as(ann)))
      expect(sessions).toHaveLength(1)
      // The slot is free when the turn ends, on whatever surface it started.
      await post(`/api/sessions/${sessions[0].sessionId}/interrupt`, {}, as(ann))
      await (await holding).text()
      await until(
        async () =>
          (await post(path, body(3), { ...as(ann), signal: AbortSignal.timeout(500) }).catch(() => undefined))
            ?.status !== 429,
      )
    },
  )

  test('a turn that continues without its reader counts until it ends', async () => {
    const held = gate()
    const { post, url, engine } = await start({
      ...withKeys({ 'server.rateLimits.concurrentTurns': 1, 'server.onDisconnect': 'continue' }),
      replies: { always: { text: 'one two', hold: { atChunk: 1, gate: held } } },
    })
    const leaving = new AbortController()
    const stream = await fetch(`${url}/api/chat/stream`, {
      method: 'POST',
      body: JSON.stringify(runInput('Hi')),
      signal: leaving.signal,
      headers: { 'content-type': 'application/json', ...as(ann).headers },
    })
    await held.reached
    leaving.abort()
    await stream.text().catch(() => {})
    expect((await post('/api/chat', { sessionId: 'b', message: 'Hi' }, as(ann))).status).toBe(429)
    held.open()
    await until(async () => (await engine.session({ user: 'ann', session: 'thread' }).state()).turn === undefined)
    await until(async () => (await post('/api/chat', { sessionId: 'b', message: 'Hi' }, as(ann))).status === 200)
  })

  test('a turn that resumes after a pause is never refused, and counts as running', async () => {
    const held = gate()
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      effects: ['write'],
      input: {},
      run: async () => {
        await held.pass()
        return 'paid'
      },
    })
    const asks = [{ calls: [{ name: 'pay' }] }]
    const { post, engine } = await start({
      ...withKeys({ 'server.rateLimits.concurrentTurns': 1 }),
      agent: { tools: [pay] },
      replies: [...asks, ...asks, ...Array.from({ length: 4 }, () => ({ text: 'Done.' }))],
    })
    const begin = (session: string) =>
      post('/api/chat', { sessionId: session, turnId: session, message: 'Pay.' }, as(ann))
    // Waiting turns do not count.
    const waiting = [await json(begin('a')), await json(begin('b'))]
    for (const { approvals } of waiting)
      expect((await post(`/api/approvals/${approvals[0].id}`, { verdict: 'approved' }, as(ann))).status).toBe(200)
    await until(() => engine.runningTurns.length === 2)
    const refused = await begin('c')
    expect([refused.status, (await json(refused)).error.code]).toEqual([429, 'too_many_turns'])
    expect((await post('/api/chat', { sessionId: 'c', message: 'Hi' }, as(bob))).status).toBe(200)
    held.open()
    for (const session of ['a', 'b'])
      expect((await engine.session({ user: 'ann', session }).wait(session)).status).toBe('finished')
    await until(() => engine.runningTurns.length === 0)
    expect((await begin('c')).status).toBe(200)
  })

  test('many invalid credentials from one address lead to a 429; valid ones are still accepted', async () => {
    const { get } = await start(withKeys({ 'server.rateLimits.failedAuthenticationsPerMinute': 2 }))
    const wrong = createApiKey({ user: 'ann' })
    for (let i = 0; i < 2; i++) expect((await get('/api/sessions', as(wrong))).status).toBe(401)
    const answer = await get('/api/sessions', as(wrong))
    expect(answer.status).toBe(429)
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
    expect((await get('/api/sessions', as(ann))).status).toBe(200)
    expect((await get('/api/sessions')).status).toBe(401)
  })

  test('after invalid credentials, questions to the host are throttled; valid credentials are accepted, known ones without waiting', async () => {
    const held: (() => void)[] = []
    const host = await hostSystem()
    host.behave(({ headers }, response) => {
      const token = headers.authorization!.slice('Bearer '.length)
      const known = /^t\d$/.test(token) && { code: 200, user: { userName: token } }
      const answer = () => response.writeHead(200).end(JSON.stringify(known || { code: 401 }))
      if (token.startsWith('hold')) held.push(answer)
      else answer()
    })
    onTestFinished(() => host.close())
    const { get } = await start({
      overrides: {
        'identity.mode': 'introspection',
        'identity.introspection': { preset: 'ruoyi', url: host.url, cacheSize: 1 },
        'server.rateLimits.failedAuthenticationsPerMinute': 2,
      },
    })
    const status = async (key: string) => (await get('/api/sessions', as({ key }))).status
    expect(await status('t1')).toBe(200)
    for (const key of ['x1', 'x2']) expect(await status(key)).toBe(401)
    expect(await status('x3')).toBe(429)
    // A first request, which pushes the other session out of the cache.
    expect(await status('t2')).toBe(200)
    const asked = host.asked.length
    const wrong = Array.from({ length: 60 }, (_, n) => status(`hold${n}`))
    // Requests beyond the queue are refused at once, while two questions are open.
    await Promise.race(wrong)
    await until(() => held.length === 2)
    expect(await status('t1')).toBe(200)
    expect(host.asked).toHaveLength(asked + 3)
    const late = status('t3')
    host.behave(({ headers }, response) => {
      const right = headers.authorization === 'Bearer t3'
      response.writeHead(200).end(JSON.stringify(right ? { code: 200, user: { userName: 't3' } } : { code: 401 }))
    })
    for (const answer of held) answer()
    expect(new Set(await Promise.all(wrong))).toEqual(new Set([429]))
    // The request may have exceeded the queue.
    expect([await late, await status('t3')]).toContain(200)
  })

  test.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '::ffff:10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('%s belongs to the network %s', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })
})

describe('pages of other origins', () => {
  const page = 'https://app.example.com'

  test('are rejected unless they are configured', async () => {
    const { get } = await start(withKeys())
    const preflight = await get('/api/chat', {
      method: 'OPTIONS',
      headers: { origin: page, 'access-control-request-method': 'POST' },
    })
    expect([preflight.status, (await json(preflight)).error.code]).toEqual([403, 'origin_not_allowed'])
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull()
    const other = await start(withKeys({ 'server.cors.origins': ['https://other.example.com'] }))
    const refused = await other.get('/api/chat', {
      method: 'OPTIONS',
      headers: { origin: page, 'access-control-request-method': 'POST' },
    })
    expect([refused.status, (await json(refused)).error.code]).toEqual([403, 'origin_not_allowed'])
  })

  test('that are configured may read every answer, streams and refusals included', async () => {
    const { get, post } = await start({
      ...withKeys({ 'server.cors.origins': [page] }),
      replies: { always: { text: 'Hello.' } },
    })
    const preflight = await get('/api/chat/stream', {
      method: 'OPTIONS',
      headers: {
        origin: page,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization,content-type')
    expect(preflight.headers.get('access-control-allow-methods')).toContain('POST')
    const stream = await post('/api/chat/stream', runInput('Hi'), as(ann, { origin: page }))
    const refused = await get('/api/sessions', { headers: { origin: page } })
    expect(refused.status).toBe(401)
    for (const answer of [preflight, stream, refused]) {
      expect(answer.headers.get('access-control-allow-origin')).toBe(page)
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
      expect(answer.headers.get('vary')).toContain('origin')
      await answer.text()
    }
  })

  test.each(['https://app.example.com.evil.example', 'http://app.example.com', 'https://APP.example.com', 'null'])(
    '%s is a different origin',
    async (origin) => {
      const { get } = await start(withKeys({ 'server.cors.origins': [page], 'server.cors.credentials': true }))
      const answer = await get('/api/sessions', as(ann, { origin }))
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    },
  )

  test('cannot use the cookie of a host session', async () => {
    const host = await hostSystem({ t1: { userName: 'ann' } })
    onTestFinished(() => host.close())
    const { get, url } = await start({
      overrides: {
        'identity.mode': 'introspection',
        'identity.introspection': { preset: 'ruoyi', url: host.url, cookies: ['Admin-Token'] },
        'server.cors.origins': [page],
        'server.cors.credentials': true,
      },
    })
    const status = async (origin: string | undefined) =>
      (
        await get('/api/sessions/s/interrupt', {
          method: 'POST',
          headers: { cookie: 'Admin-Token=t1', ...(origin !== undefined && { origin }) },
        })
      ).status
    expect(await status('https://evil.example')).toBe(403)
    expect(await status('null')).toBe(403)
    for (const origin of [undefined, page, url]) expect(await status(origin)).toBe(404)
  })
})

describe('beyond loopback', () => {
  test('with identity the service may listen on any address', async () => {
    const { service, config } = await start(withKeys({ 'server.host': '0.0.0.0' }))
    expect(config.server.host).toBe('0.0.0.0')
    expect(service.routes.length).toBeGreaterThan(5)
  })

  test('the service does not start without the configured identity', async () => {
    const { createService, createLogger } = await import('../../index.ts')
    const { engine, config } = await start(withKeys())
    const log = createLogger({ level: 'silent', format: 'json' })
    expect(() => createService({ engine, config, log })).toThrow(/Pass the result of createIdentity/)
  })

  test('only configured host names are accepted, except for probes', async () => {
    const { url } = await start(withKeys({ 'server.allowedHosts': ['oxbow.example.com', 'other.example:81'] }))
    const status = async (host: string, path = '/openapi.json') => {
      const { hostname, port } = new URL(url)
      const socket = connect(Number(port), hostname)
      const parts: Buffer[] = []
      socket.on('data', (data) => parts.push(data))
      socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
      await once(socket, 'close')
      return Number(/^HTTP\/1\.1 (\d+)/.exec(Buffer.concat(parts).toString())?.[1])
    }
    expect(await status('oxbow.example.com')).toBe(200)
    expect(await status('OXBOW.example.com:8080')).toBe(200)
    expect(await status('other.example:81')).toBe(200)
    expect(await status('other.example:82')).toBe(403)
    expect(await status('evil.example')).toBe(403)
    expect(await status('oxbow.example.com.evil.example')).toBe(403)
    expect(await status('10.0.0.7', '/healthz')).toBe(200)
  })

  test('duplicate credentials are refused', async () => {
    const { url } = await start(withKeys())
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    const parts: Buffer[] = []
    socket.on('data', (data) => parts.push(data))
    const head = `authorization: Bearer ${ann.key}\r\nAuthorization: Bearer ${bob.key}`
    socket.write(`GET /api/sessions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${head}\r\n\r\n`)
    await once(socket, 'close')
    expect(Buffer.concat(parts).toString()).toMatch(/^HTTP\/1\.1 401 [\s\S]*credentials_ambiguous/)
  })
})

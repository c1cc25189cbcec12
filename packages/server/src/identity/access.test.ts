// Requests every route with every kind of credentials in every mode.
import { externalTool } from '@oxbow/core'
import { until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { RouteInfo } from '../http/route-info.ts'
import { json, type Rig, rigs, runInput } from '../test.fixture.ts'
import { createApiKey } from './api-keys/api-key.ts'
import { hostSystem } from './introspection/host-system.fixture.ts'
import { AUDIENCE, issuer, seconds } from './jwt/issuer.fixture.ts'

const start = rigs()

interface Setting {
  readonly overrides: Record<string, unknown>
  /** The value of `Authorization` for each person. */
  readonly ann: string
  readonly bob: string
  readonly root: string
  readonly wrong: string
  readonly expired: string
}

const ADMIN = ['oxbow:admin']

function expiredKey(): ReturnType<typeof createApiKey> {
  const { toml, ...key } = createApiKey({ user: 'ann' })
  return { ...key, toml: `${toml}expires = "2020-01-01"\n` }
}

async function apiKeys(): Promise<Setting> {
  const { parse } = await import('smol-toml')
  const made = {
    ann: createApiKey({ user: 'ann' }),
    bob: createApiKey({ user: 'bob' }),
    root: createApiKey({ user: 'root', permissions: ADMIN }),
    expired: expiredKey(),
  }
  const keys = Object.values(made).flatMap(({ toml }) => parse(toml).keys as unknown[])
  return {
    overrides: { 'identity.mode': 'api-keys', 'identity.keys': keys },
    ann: `Bearer ${made.ann.key}`,
    bob: `Bearer ${made.bob.key}`,
    root: `Bearer ${made.root.key}`,
    wrong: `Bearer ${createApiKey({ user: 'ann' }).key}`,
    expired: `Bearer ${made.expired.key}`,
  }
}

async function tokens(): Promise<Setting> {
  const made = await issuer()
  const stranger = await issuer()
  onTestFinished(() => made.close())
  onTestFinished(() => stranger.close())
  return {
    overrides: {
      'identity.mode': 'jwt',
      'identity.jwt': { jwksUrl: made.jwksUrl, issuer: made.url, audience: AUDIENCE },
    },
    ann: `Bearer ${await made.sign({ sub: 'ann' })}`,
    bob: `Bearer ${await made.sign({ sub: 'bob' })}`,
    root: `Bearer ${await made.sign({ sub: 'root', permissions: ADMIN })}`,
    wrong: `Bearer ${await stranger.sign({ sub: 'ann', iss: made.url })}`,
    expired: `Bearer ${await made.sign({ sub: 'ann', exp: seconds(-3_600) })}`,
  }
}

async function sessionsOfAHost(): Promise<Setting> {
  const host = await hostSystem({
    'a-token': { userName: 'ann' },
    'b-token': { userName: 'bob' },
    'r-token': { userName: 'root', permissions: ADMIN },
  })
  onTestFinished(() => host.close())
  return {
    overrides: {
      'identity.mode': 'introspection',
      'identity.introspection': { preset: 'ruoyi', url: host.url },
    },
    ann: 'Bearer a-token',
    bob: 'Bearer b-token',
    root: 'Bearer r-token',
    wrong: 'Bearer no-token',
    expired: 'Bearer signed-out-token',
  }
}

const SECRET_TEXT = 'The combination is 4711'

/** Only the fields that the schema has. */
const known = (fields: Record<string, string>, schema: z.ZodType | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => schema instanceof z.ZodObject && name in schema.shape))

/** A request that the route would accept from the owner of the session. */
function requestOf(
  it: RouteInfo,
  callId: string,
  named: Record<string, string> = {},
  session = 'annas',
): [string, RequestInit] {
  const path = it.path.replace('{sessionId}', session).replace(/\{\w+\}/g, callId)
  const query = new URLSearchParams({ ...known({ q: 'word' }, it.query), ...named })
  if (it.body === undefined) return [`${path}?${query}`, { method: it.method.toUpperCase() }]
  const body =
    it.id === 'chatStream'
      ? runInput('Hi', { threadId: session, ...named })
      : {
          ...known({ message: 'Hi', sessionId: session, content: 'done', verdict: 'approved', name: 'go' }, it.body),
          ...named,
        }
  return [
    path,
    { method: it.method.toUpperCase(), body: JSON.stringify(body), headers: { 'content-type': 'application/json' } },
  ]
}

async function ask(
  rig: Rig,
  [path, init]: [string, RequestInit],
  authorization?: string,
): Promise<{ status: number; text: string; headers: Headers }> {
  const answer = await rig.get(path, {
    ...init,
    headers: { ...init.headers, ...(authorization !== undefined && { authorization }) },
  })
  return { status: answer.status, text: await answer.text(), headers: answer.headers }
}

describe.each([
  ['api-keys', apiKeys],
  ['jwt', tokens],
  ['introspection', sessionsOfAHost],
])('P8: with identity.mode %s', (_mode, make) => {
  async function rigWithSession() {
    const setting = await make()
    const wait = externalTool({
      name: 'ask_office',
      description: 'Asks.',
      effects: ['read'],
      input: { type: 'object', properties: {} },
    })
    const rig = await start({
      overrides: { 'server.rateLimits.failedAuthenticationsPerMinute': 1_000, ...setting.overrides },
      agent: { tools: [wait] },
      replies: ({ messages }) => {
        const said = JSON.stringify(messages)
        return said.includes(SECRET_TEXT) && !messages.some((it) => it.role === 'tool')
          ? { calls: [{ name: 'ask_office' }] }
          : { text: 'Hello.' }
      },
    })
    const opened = await rig.post(
      '/api/chat',
      { sessionId: 'annas', message: SECRET_TEXT, turnId: 'turn-1' },
      { headers: { authorization: setting.ann } },
    )
    expect(opened.status).toBe(202)
    const callId: string = (await json(opened)).pending[0].callId
    return { rig, setting, callId }
  }

  test('anonymous callers get a 401 from every protected route, and learn nothing', async () => {
    const { rig, setting, callId } = await rigWithSession()
    const requests = rig.model.requests.length
    for (const it of rig.service.routes) {
      for (const [name, authorization] of [
        ['none', undefined],
        ['wrong', setting.wrong],
        ['expired', setting.expired],
        ['another scheme', 'Basic YW5uOmFubg=='],
        ['empty', 'Bearer '],
      ] as const) {
        const answer = await ask(rig, requestOf(it, callId), authorization)
        const where = `${it.id} with ${name}`
        expect(`${where}: ${answer.text}`).not.toMatch(/4711|annas|scripted|memory/)
        if (it.access === 'open' || it.access === 'optional') {
          expect([where, answer.status]).toEqual([where, 200])
          continue
        }
        expect([where, answer.status]).toEqual([where, 401])
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="oxbow"/)
        expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
        expect(JSON.parse(answer.text).error.code).toMatch(/^credentials_/)
      }
    }
    expect(rig.model.requests.length).toBe(requests)
    expect((await rig.engine.sessions({ tenant: 'default', user: 'ann' })).length).toBe(1)
    expect(await rig.engine.sessions({ tenant: 'default', user: 'default' })).toEqual([])
  })

  test('ids of other users get the same answer as unknown ids', async () => {
    const { rig, setting, callId } = await rigWithSession()
    for (const it of rig.service.routes.filter((route) => route.path.includes('{sessionId}'))) {
      const foreign = await ask(rig, requestOf(it, callId), setting.bob)
      const unknown = await ask(rig, requestOf(it, 'call_none', {}, 'never'), setting.bob)
      expect([it.id, foreign.status]).toEqual([it.id, 404])
      expect(unknown.status).toBe(404)
      expect(foreign.text).toBe(unknown.text.replaceAll('never', 'annas').replaceAll('call_none', callId))
      expect([...foreign.headers.keys()]).toEqual([...unknown.headers.keys()])
    }
    expect(JSON.parse((await ask(rig, ['/api/sessions', {}], setting.bob)).text)).toEqual({ sessions: [] })
  })

  test('a chat under the session id of another user opens the caller’s own session', async () => {
    const { rig, setting } = await rigWithSession()
    for (const id of ['chat', 'chatStream']) {
      const it = rig.service.routes.find((route) => route.id === id)!
      const answer = await ask(rig, requestOf(it, ''), setting.bob)
      expect(answer.status).toBe(200)
      expect(answer.text).not.toContain('4711')
    }
    expect(JSON.stringify(rig.model.requests.at(-1)?.messages)).not.toContain('4711')
    const state = await rig.engine.session({ user: 'ann', session: 'annas' }).state()
    expect(state.turn?.turnId).toBe('turn-1')
    expect(await rig.engine.sessions({ tenant: 'default', user: 'bob' })).toHaveLength(1)
  })

  test('naming another user or tenant is a 403, naming oneself is not', async () => {
    const { rig, setting, callId } = await rigWithSession()
    const takesNames = rig.service.routes.filter((it) => it.access === undefined)
    expect(takesNames.length).toBeGreaterThan(6)
    for (const it of takesNames) {
      for (const [named, code] of [
        [{ userId: 'ann' }, 'user_mismatch'],
        [{ tenant: 'other' }, 'tenant_mismatch'],
        [{ userId: 'bob', tenant: 'other' }, 'tenant_mismatch'],
      ] as const) {
        const answer = await ask(rig, requestOf(it, callId, named), setting.bob)
        expect([it.id, answer.status]).toEqual([it.id, 403])
        expect(JSON.parse(answer.text).error.code).toBe(code)
      }
      const own = await ask(rig, requestOf(it, callId, { userId: 'bob', tenant: 'default' }), setting.bob)
      expect([401, 403]).not.toContain(own.status)
    }
  })

  test('the right credentials reach every route', async () => {
    const { rig, setting, callId } = await rigWithSession()
    // The request that ends the turn comes last, because the others read that turn.
    for (const it of rig.service.routes.toSorted((one, other) => order(one) - order(other))) {
      const { status } = await ask(rig, requestOf(it, callId), setting.ann)
      if (it.access === 'admin') expect([it.id, status]).toEqual([it.id, 403])
      else if (it.method === 'get' && !it.path.replace('{sessionId}', '').includes('{'))
        expect([it.id, status]).toEqual([it.id, 200])
      // Other tests cover resources that do not exist and bodies that are rejected.
      else expect([it.id, [401, 403, 429].includes(status) || status > 499]).toEqual([it.id, false])
    }
    await until(async () => (await rig.engine.session({ user: 'ann', session: 'annas' }).state()).turn === undefined)
  })

  test('holders of oxbow:admin see other users of their tenant only, and the audit log records the administrator', async () => {
    const { rig, setting, callId } = await rigWithSession()
    const messages = await ask(rig, ['/api/sessions/annas/messages?userId=ann', {}], setting.root)
    expect(messages.text).toContain('4711')
    expect(
      (await json(rig.get('/api/sessions?userId=ann', { headers: { authorization: setting.root } }))).sessions,
    ).toHaveLength(1)
    expect((await ask(rig, ['/metrics', {}], setting.root)).status).toBe(200)
    expect((await ask(rig, ['/metrics', {}], setting.bob)).status).toBe(403)
    expect((await ask(rig, ['/api/sessions?userId=ann&tenant=other', {}], setting.root)).status).toBe(403)
    const call = rig.service.routes.find((it) => it.id === 'bringCallResult')!
    expect((await ask(rig, requestOf(call, callId, { userId: 'ann' }), setting.root)).status).toBe(202)
    const events = await rig.engine.session({ user: 'ann', session: 'annas' }).events()
    expect(events.find((it) => it.type === 'external.resolved')).toMatchObject({ principal: { user: 'root' } })
    expect(events.find((it) => it.type === 'turn.started')).toMatchObject({
      principal: { user: 'ann', tenant: 'default' },
    })
  })

  test('logs identify the caller and never contain credentials', async () => {
    const { rig, setting } = await rigWithSession()
    for (const who of [setting.ann, setting.wrong, setting.expired]) await ask(rig, ['/api/sessions', {}], who)
    const lines = rig.logged.map((it) => JSON.stringify(it)).join('\n')
    for (const secret of [setting.ann, setting.wrong, setting.expired])
      expect(lines).not.toContain(secret.slice('Bearer '.length))
    const requests = rig.logged.filter((it) => it.path === '/api/sessions')
    expect(requests[0]).toMatchObject({ status: 200, user: 'ann', tenant: 'default' })
    expect(requests[1]).toMatchObject({ status: 401, refusal: 'credentials_invalid' })
    expect(requests[1]).not.toHaveProperty('user')
  })

  test('/readyz shows details to authenticated callers only', async () => {
    const { rig, setting } = await rigWithSession()
    expect(await json(rig.get('/readyz'))).toEqual({ status: 'ready' })
    // A probe without credentials was not refused.
    expect(rig.logged.findLast((it) => it.path === '/readyz')).not.toHaveProperty('refusal')
    const known = await json(rig.get('/readyz', { headers: { authorization: setting.bob } }))
    expect(known.capabilities.store.ok).toBe(true)
  })

  test('the OpenAPI document says how to send credentials, and where none are needed', async () => {
    const { rig } = await rigWithSession()
    const document = await json(rig.get('/openapi.json'))
    expect(document.components.securitySchemes.bearer).toMatchObject({ type: 'http', scheme: 'bearer' })
    expect(document.security).toContainEqual({ bearer: [] })
    expect(document.paths['/healthz'].get.security).toEqual([])
    expect(document.paths['/api/chat'].post.security).toBeUndefined()
    expect(Object.keys(document.paths['/api/chat'].post.responses)).toEqual(
      expect.arrayContaining(['401', '403', '429', '503']),
    )
  })
})

const order = ({ id, method }: RouteInfo): number =>
  id === 'eraseSession' || id === 'eraseData'
    ? 5
    : id === 'interruptTurn'
      ? 4
      : id === 'bringCallResult'
        ? 2
        : id === 'chatStream'
          ? 3
          : method === 'get'
            ? 0
            : 1

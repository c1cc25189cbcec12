// Behaviour that all routes share.
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { json, rigs, runInput } from '../test.fixture.ts'

const start = rigs()
const always = { always: { text: 'Hello there.' } }

/** Sends raw bytes and returns the whole answer. */
async function raw(url: string, ...parts: (string | Buffer)[]): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const received: Buffer[] = []
  socket.on('data', (data) => received.push(data))
  for (const part of parts) socket.write(part)
  socket.on('error', () => {})
  await once(socket, 'close')
  return Buffer.concat(received).toString()
}

describe('bodies', () => {
  test.each(['text/plain', 'application/problem+json', '', 'multipart/form-data'])(
    'Y3: a content type of %j is a 415',
    async (type) => {
      const { post, model } = await start()
      for (const path of ['/api/chat/stream', '/api/chat']) {
        const answer = await post(path, runInput('Hi', { message: 'Hi' }), { headers: { 'content-type': type } })
        expect(answer.status).toBe(415)
        expect((await json(answer)).error.code).toBe('unsupported_media_type')
      }
      expect(model.requests).toHaveLength(0)
    },
  )

  test('Y3: no content type is a 415', async () => {
    const { url } = await start()
    const answer = await raw(
      url,
      'POST /api/chat/stream HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}',
    )
    expect(answer).toMatch(/^HTTP\/1.1 415 /)
  })

  test.each([
    [{ 'content-encoding': 'gzip' }, /not be compressed; got the content encoding gzip/],
    [{ 'content-type': 'application/json; charset=latin1' }, /must be UTF-8; got the charset latin1/],
  ])('%j is a 415 that names the accepted form', async (headers, message) => {
    const { post } = await start()
    const answer = await post('/api/chat', { message: 'Hi' }, { headers })
    expect(answer.status).toBe(415)
    expect((await json(answer)).error.message).toMatch(message)
  })

  test.each([
    ['of a declared length', 'content-length: 100', '{"message":'],
    ['in chunks', 'transfer-encoding: chunked', 'b\r\n{"message":\r\n'],
  ])('a client that disconnects during a body %s does not count as a service error', async (_, length, part) => {
    const { url, logged } = await start()
    for (const path of ['/api/chat', '/api/chat/stream']) {
      logged.length = 0
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n${length}\r\n\r\n${part}`,
      )
      // The service sends "100 Continue" once it has the headers.
      await once(socket, 'data')
      socket.resetAndDestroy()
      const line = await until(() => logged.find((it) => it.msg === 'request'))
      expect(line).toMatchObject({ level: 'info', status: 499, path })
      expect(logged.filter((it) => it.level === 'error' || it.level === 'warn')).toEqual([])
    }
  })

  test('a charset beside application/json is accepted', async () => {
    const { post } = await start({ replies: always })
    const answer = await post(
      '/api/chat',
      { message: 'Hi' },
      { headers: { 'content-type': 'Application/JSON; charset=utf-8' } },
    )
    expect(answer.status).toBe(200)
  })

  test('a body beyond the limit is a 413, with or without a declared length', async () => {
    const { post, url } = await start({ overrides: { 'server.limits.bodyBytes': 1_024 } })
    const answer = await post('/api/chat', { message: 'x'.repeat(1_024) })
    expect(answer.status).toBe(413)
    expect((await json(answer)).error.code).toBe('body_too_large')
    const chunk = `400\r\n${'x'.repeat(1_024)}\r\n`
    const head =
      'POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n'
    expect(await raw(url, head, chunk, chunk, '0\r\n\r\n')).toMatch(/^HTTP\/1.1 413 /)
  })

  test('a body in chunks is read', async () => {
    const { url } = await start({ replies: always })
    const body = '{"message":"Hi"}'
    const answer = await raw(
      url,
      'POST /api/chat HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 200 [\s\S]*Hello there/)
  })

  test('a head beyond the limit is a 431', async () => {
    const { url } = await start()
    expect(await raw(url, `GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: ${'x'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 431 /,
    )
  })

  test('a body that is nested 100,000 deep is a quick 400', async () => {
    const { post } = await start()
    const startedAt = performance.now()
    const answer = await post('/api/chat', `{"message":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
    expect(answer.status).toBe(400)
    expect((await json(answer)).error.code).toBe('json_too_deep')
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })

  test.each([
    ['{"message": }', `Unexpected token '}', "{"message": }"`],
    ['{"message":\n "a"', 'at position 16 (line 2 column 5)'],
    ['', 'Unexpected end of JSON input'],
    ['{"a":1} x', 'at position 8 (line 1 column 9)'],
    ['{"a":"\n"}', 'Bad control character in string literal in JSON at position 6'],
    [`${'"'.padEnd(100, 'x')}",`, 'at position 101'],
  ])('%j is a 400 that says what is wrong', async (body, what) => {
    const { post } = await start()
    const answer = await post('/api/chat', body)
    expect(answer.status).toBe(400)
    expect((await json(answer)).error).toMatchObject({ code: 'invalid_json', message: expect.stringContaining(what) })
  })

  test('invalid UTF-8 is a 400 that names the position', async () => {
    const { post } = await start()
    const body = Buffer.concat([Buffer.from('{"message":"ü'), Buffer.from([0xff]), Buffer.from('"}')])
    const answer = await post('/api/chat', {}, { body })
    expect(answer.status).toBe(400)
    expect((await json(answer)).error).toMatchObject({
      code: 'invalid_utf8',
      message: expect.stringContaining('byte 14'),
    })
  })

  test.each(['[]', '"text"', 'null', '5'])('the body %s is a 400', async (body) => {
    const { post } = await start()
    for (const path of ['/api/chat', '/api/chat/stream']) expect((await post(path, body)).status).toBe(400)
  })

  test.each([
    ['/api/chat', '{"message":"Hi","userId":2064875200729235458}', 'userId'],
    ['/tasks', '{"input":"Hi","attributes":{"order":{"id":2064875200729235458}}}', 'attributes.order.id'],
    ['/agent/task', '{"message":"Hi","attributes":{"ids":[1,2064875200729235458]}}', 'attributes.ids.1'],
    ['/api/chat/stream', '{"state":{"id":2064875200729235458}}', 'state.id'],
    ['/api/approvals/a', '{"verdict":"approved","arguments":{"id":2064875200729235458}}', 'arguments.id'],
    ['/mcp', '{"method":"tools/call","params":{"id":2064875200729235458}}', 'params.id'],
  ])('B12: a number in a body of %s that a double cannot hold is a 400 that names it', async (path, body, where) => {
    const { post, model } = await start({ replies: always })
    const answer = await post(path, body)
    expect([answer.status, (await json(answer)).error]).toEqual([
      400,
      {
        code: 'number_inexact',
        message: `The number 2064875200729235458 at "${where}" cannot be held exactly. Send it as a string.`,
      },
    ])
    expect(model.requests).toHaveLength(0)
  })

  test('a body that names __proto__ is a 400, and changes nothing', async () => {
    const { post } = await start()
    expect((await post('/api/chat', '{"message":"Hi","__proto__":{"userId":"mallory"}}')).status).toBe(400)
    expect(({} as { userId?: string }).userId).toBeUndefined()
  })
})

describe('unknown names', () => {
  test('in a query are a 400 on every route, and the error lists the allowed names', async () => {
    const { get, post, service } = await start()
    for (const { method, path, query } of service.routes) {
      const target = `${path.replace(/\{\w+\}/g, 'x')}?usr=ann`
      const answer = await (method === 'post' ? post(target, {}) : get(target, { method: method.toUpperCase() }))
      expect([path, answer.status]).toEqual([path, 400])
      const { message } = (await json(answer)).error
      expect(message).toContain('Unknown field "usr"')
      for (const known of Object.keys(query?.shape ?? {})) expect(message).toContain(known)
    }
    const { error } = await json(get('/admin/api/audit?usr=ann'))
    expect(error.message).toBe(
      'Unknown field "usr" (did you mean "user"?). Allowed: tenant, user, session, tool, status, from, to, after, limit, format.',
    )
  })

  test('in a body are a 400 on every route, except where the protocol allows extra fields', async () => {
    const { get } = await start()
    const { paths } = await json(get('/openapi.json'))
    const bodies = Object.entries<{ post?: { requestBody?: { content: object } } }>(paths).flatMap(
      ([path, { post }]) =>
        post?.requestBody === undefined ? [] : [[path, JSON.stringify(openObjects(post.requestBody.content))] as const],
    )
    expect(bodies.length).toBeGreaterThan(8)
    // AG-UI's RunAgentInput, and the Agent Protocol's submission, whose context is kept as it came.
    expect(bodies.filter(([, open]) => open !== '[]').map(([path]) => path)).toEqual(['/api/chat/stream', '/tasks'])
  })

  test.each([
    ['/api/approvals/x', { verdict: 'approved', argument: { days: 7 } }, 'did you mean "arguments"?'],
    [
      '/agent/task/x/resume',
      { decisions: [{ callId: 'c', approved: true, argument: {} }] },
      'did you mean "arguments"?',
    ],
    [
      '/tasks/x/resume',
      { decisions: [{ toolCallId: 'c', approved: true, arguments: {} }] },
      'Unknown field "arguments"',
    ],
    ['/agent/task', { message: 'Hi', max_steps: 3 }, 'did you mean "maxSteps"?'],
    ['/api/chat', { message: 'Hi', session: 's1' }, 'Unknown field "session"'],
  ])('%s rejects %j', async (path, body, message) => {
    const { post, model } = await start()
    const answer = await post(path, body)
    expect(answer.status).toBe(400)
    expect((await json(answer)).error.message).toContain(message)
    expect(model.requests).toEqual([])
  })

  test.each([
    ['/api/approvals?limit=x', 'limit must be a whole number from 1 to 200.'],
    ['/api/approvals?mine=perhaps', 'mine must be true or false.'],
    ['/api/sessions?before=x', 'before must be a whole number, 0 or more.'],
    ['/admin/api/audit?limit=x', 'limit must be a whole number from 1 to 1000.'],
    ['/admin/api/audit?after=-1', 'after must be a whole number, 0 or more.'],
    ['/tasks/x/wait?timeout_seconds=x', 'timeout_seconds must be a number of seconds, 0 or more.'],
  ])('%s is rejected with a clear message', async (path, message) => {
    const { get } = await start()
    expect((await json(get(path))).error.message).toBe(message)
  })
})

/** Objects with named fields that also accept unknown ones. */
function openObjects(schema: unknown): object[] {
  if (typeof schema !== 'object' || schema === null) return []
  const open = 'properties' in schema && (schema as { additionalProperties?: unknown }).additionalProperties !== false
  return [...(open ? [schema] : []), ...Object.values(schema).flatMap(openObjects)]
}

describe('routes', () => {
  test('an unknown one is a 404 in JSON', async () => {
    const { get } = await start()
    const answer = await get('/api/nothing')
    expect(answer.status).toBe(404)
    expect((await json(answer)).error.code).toBe('not_found')
  })

  test.each([
    ['/api/chat', 'GET', 'POST'],
    ['/api/chat/stream', 'DELETE', 'POST'],
    ['/api/sessions', 'POST', 'GET, HEAD'],
    ['/api/sessions/s/messages', 'PUT', 'GET, HEAD'],
    ['/api/sessions/s/interrupt', 'OPTIONS', 'POST'],
  ])('%s with %s is a 405 that lists the allowed methods', async (path, method, allow) => {
    const { get } = await start()
    const answer = await get(path, { method })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe(allow)
    expect((await json(answer)).error.code).toBe('method_not_allowed')
  })

  test.each(['GET http://[ HTTP/1.1\r\nhost: localhost', 'GET /a\\b HTTP/1.1\r\nhost: localhost', 'GET / HTTP/1.0'])(
    '%j is a 400 in JSON',
    async (head) => {
      const { url } = await start()
      expect(await raw(url, `${head}\r\nconnection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 [\s\S]*"invalid_request"/)
    },
  )

  test('answers cannot be framed, sniffed or read by another origin', async () => {
    const { get, post } = await start({ replies: always })
    for (const answer of [
      await get('/healthz'),
      await get('/nothing'),
      await post('/api/chat/stream', runInput('Hi')),
    ]) {
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
      expect(answer.headers.get('cache-control')).toMatch(/no-store|no-cache/)
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      expect(answer.headers.get('x-request-id')).toMatch(/.+/)
      await answer.text()
    }
  })

  test('a request keeps its own id, and is logged under it', async () => {
    const { get, logged } = await start()
    const answer = await get('/api/nothing', { headers: { 'x-request-id': 'my-id' } })
    expect(answer.headers.get('x-request-id')).toBe('my-id')
    expect(logged).toContainEqual(
      expect.objectContaining({ requestId: 'my-id', status: 404, path: '/api/nothing', method: 'GET' }),
    )
  })
})

describe('host names of this service', () => {
  test.each(['localhost', '127.0.0.1', '[::1]', 'LOCALHOST:99'])('%s is accepted', async (host) => {
    const { url } = await start()
    expect(await raw(url, `GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 200 /,
    )
  })

  test.each(['evil.example', '127.0.0.1.evil.example', 'localhost.evil.example:80', '0.0.0.0'])(
    '%s is rejected (DNS rebinding)',
    async (host) => {
      const { url } = await start()
      expect(await raw(url, `GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)).toMatch(
        /^HTTP\/1.1 403 /,
      )
    },
  )

  test.each([
    ['http://evil.example', 403],
    ['null', 403],
    ['http://localhost:3000', 403],
    ['http://127.0.0.1', 403],
  ])('a page of %s gets a %i for a POST without a body', async (origin, status) => {
    const { get } = await start()
    expect((await get('/api/sessions/s/interrupt', { method: 'POST', headers: { origin } })).status).toBe(status)
  })

  test.each(['0.0.0.0', '::', '192.168.1.10', 'example.com', '127.0.0.1.evil.example'])(
    'without identity the service does not listen on %s',
    async (host) => {
      await expect(start({ overrides: { 'server.host': host } })).rejects.toThrow(/identity/)
    },
  )

  test.each(['127.0.0.1', 'localhost', '127.8.8.8'])('the service listens on %s', async (host) => {
    const { url, service } = await start({ overrides: { 'server.host': host } })
    expect((await fetch(`${url}/healthz`, { headers: { host: 'localhost' } })).status).toBe(200)
    expect(service.routes.length).toBeGreaterThan(5)
  })

  test('a port in use is an error that suggests a fix', async () => {
    const { url } = await start()
    const { port } = new URL(url)
    await expect(start({ overrides: { 'server.port': Number(port) } })).rejects.toThrow(
      `Cannot listen on 127.0.0.1:${port}: the port is in use by another program. Stop that program, or choose another port`,
    )
    expect({ port: Number(port) } satisfies Partial<AddressInfo>).toBeDefined()
  })
})

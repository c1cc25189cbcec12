// What an answer, or its absence, means for a call: refused, retried, or unknown.
import { describe, expect, test } from 'vitest'
import { callOf, connected, type RawServer, rawServer, talking } from '../mcp.fixture.ts'

const PAGE = '<html><body>Bad gateway</body></html>'

/** Answers the first call with this status, and later requests as usual. */
async function answering(status: number, body = PAGE, headers: Record<string, string> = {}) {
  let runs = 0
  const server = await rawServer(({ method }, _request, response) => {
    if (method === 'ping') return {}
    if (++runs === 1) response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(body)
    else return { content: [{ type: 'text', text: 'ran again' }] }
    return undefined
  })
  return { server, runs: () => runs }
}

/** The outcome of one call of `change`, which writes. */
async function changeOn(server: RawServer, more: object = {}) {
  const it = await talking({ raw: { url: server.url, tools: ['*'], ...more } }, [callOf('change'), { text: 'Told.' }])
  await it.session.run('Go.')
  return { ...it, call: (await it.finished())[0]! }
}

const rpcError = (code: number, message: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } })

describe('Y12: a call that the server may have executed', () => {
  test.each([408, 409, 410, 418, 500, 501, 502, 503, 504, 524, 599, 204, 304])(
    'is unknown when an HTML page with status %i comes back, and is not sent again',
    async (status) => {
      const { server, runs } = await answering(status, status === 204 || status === 304 ? '' : PAGE)
      const { call } = await changeOn(server)
      expect(call).toMatchObject({ status: 'unknown', error: { code: 'outcome_unknown' } })
      expect(call.error!.message).not.toContain('<html>')
      expect(runs()).toBe(1)
    },
  )

  test.each([400, 405, 413, 415, 422, 429])('is refused with status %i', async (status) => {
    const { server, runs } = await answering(status, 'not like this')
    const { call } = await changeOn(server)
    expect(call).toMatchObject({ status: 'error', error: { code: 'mcp_refused' } })
    expect(call.error!.message).toContain(`HTTP ${status}: not like this`)
    expect(runs()).toBe(1)
  })

  test.each([401, 403])('is refused with status %i, which requires a sign-in', async (status) => {
    const { server } = await answering(status)
    const { call } = await changeOn(server)
    expect(call).toMatchObject({ status: 'error', error: { code: 'mcp_unauthorized' } })
  })

  test('is refused with a JSON-RPC error, whatever the status', async () => {
    const { server } = await answering(500, rpcError(-32_603, 'the ledger is closed'))
    const { call } = await changeOn(server)
    expect(call).toMatchObject({
      status: 'error',
      error: { code: 'mcp_refused', message: 'MCP server raw: change refused: HTTP 500: the ledger is closed' },
    })
  })

  test.each([
    ['is not JSON', 'application/json', '{"jsonrpc": "2.0", "id"', 'its answer is not JSON'],
    ['is not JSON-RPC', 'application/json', '{"ok": true}', 'its answer is not a JSON-RPC message'],
  ])('is unknown when the answer %s, and the reason is short', async (_, type, body, reason) => {
    const { server } = await answering(200, body, { 'content-type': type })
    const { call } = await changeOn(server)
    expect(call.error).toEqual({
      code: 'outcome_unknown',
      message: `MCP server raw: no usable answer to change: ${reason}. It may have taken effect. Check before repeating it.`,
    })
  })

  test.each(['application/json', 'text/event-stream'])(
    'is unknown at once when the answer is too long: %s',
    async (type) => {
      const body = `${JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'x'.repeat(300_000) }] } })}`
      const sent = type === 'application/json' ? body : `id: 1\ndata: ${body}\n\n`
      const { server } = await answering(200, sent, { 'content-type': type })
      const { call } = await changeOn(server, { maxMessageBytes: 100_000 })
      expect(call).toMatchObject({
        status: 'unknown',
        error: { message: expect.stringContaining('sent a message of more than 100000 bytes') },
      })
    },
  )

  test('shows in the status until the next usable answer', async () => {
    const { server } = await answering(503)
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [
      callOf('change'),
      { text: 'Told.' },
      callOf('look'),
      { text: 'Told.' },
    ])
    await it.session.run('Go.')
    expect(it.servers.status()[0]!.problem).toMatchObject({ code: 'outcome_unknown' })
    await it.session.run('Go on.')
    expect(it.servers.status()[0]!.problem).toBeUndefined()
  })
})

describe('Y12: a server that was restarted', () => {
  /** It answers 400, as real servers do, to each request of an unknown session. */
  function restarting(server: RawServer): void {
    server.intercept = (_message, request, response) => {
      const session = request.headers['mcp-session-id']
      if (session === undefined || session === server.session) return false
      response.writeHead(400).end(rpcError(-32_000, 'Bad Request: No valid session ID provided'))
      return true
    }
  }

  test('and answers 400 to the old session gets a new one, and the call once', async () => {
    const server = await rawServer()
    restarting(server)
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [callOf('change'), { text: 'Told.' }])
    server.session = 'second'
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({ status: 'success' })
    expect(server.received.filter((message) => message.method === 'tools/call')).toHaveLength(1)
    expect(it.servers.status()[0]).toMatchObject({ state: 'connected' })
  })

  test('a 400 in a live session is a refusal, and the session is kept', async () => {
    const { server } = await answering(400, rpcError(-32_602, 'no such order'))
    let greetings = 0
    server.intercept = ({ method }) => {
      if (method === 'initialize') greetings++
      return false
    }
    const { call } = await changeOn(server)
    expect(call).toMatchObject({ status: 'error', error: { code: 'mcp_refused' } })
    expect(greetings).toBe(1)
  })
})

describe('Y12: a server without the newest version', () => {
  test.each([
    ['500', 500, 'oops'],
    ['a 500 with JSON-RPC', 500, rpcError(-32_603, 'internal error')],
    ['202', 202, ''],
    ['an empty 200', 200, ''],
    ['an HTML page', 200, PAGE],
    ['503', 503, PAGE],
  ])('is called in the older one when it answers the first request with %s', async (_, status, body) => {
    const server = await rawServer()
    server.intercept = ({ method }, _request, response) => {
      if (method !== 'server/discover') return false
      response.writeHead(status, body === PAGE ? { 'content-type': 'text/html' } : {}).end(body)
      return true
    }
    const { servers } = await connected({ raw: { url: server.url } })
    expect(servers.status()[0]).toMatchObject({ state: 'connected', protocolVersion: '2025-11-25' })
  })

  test('is called in the older one when it is silent, within one time limit', async () => {
    const server = await rawServer()
    server.intercept = ({ method }) => method === 'server/discover'
    const { servers } = await connected({ raw: { url: server.url } }, { connectTimeoutMs: 1_000 })
    expect(servers.status()[0]).toMatchObject({ state: 'connected', protocolVersion: '2025-11-25' })
  })

  test('can be configured, and then only that version is used', async () => {
    const server = await rawServer()
    const asked: unknown[] = []
    server.intercept = ({ method, params }) => {
      if (method !== 'tools/list') asked.push([method, params?.protocolVersion])
      return false
    }
    await connected({ raw: { url: server.url, protocolVersion: '2025-11-25' } })
    expect(asked[0]).toEqual(['initialize', '2025-11-25'])
    await expect(connected({ raw: { url: server.url, protocolVersion: '2026-07-28' } })).rejects.toMatchObject({
      code: 'mcp_unreachable',
    })
    await expect(connected({ raw: { url: server.url, protocolVersion: '2020-01-01' as never } })).rejects.toMatchObject(
      { code: 'mcp_invalid', message: expect.stringContaining('2025-06-18') },
    )
  })
})

describe('Y12: a server that asks for a delay', () => {
  test.each([429, 503])('with %i and Retry-After is awaited while connecting', async (status) => {
    const server = await rawServer()
    let refused = 0
    server.intercept = ({ method }, _request, response) => {
      if (method !== 'tools/list' || refused > 0) return false
      refused++
      response.writeHead(status, { 'retry-after': '0' }).end('later')
      return true
    }
    const { servers } = await connected({ raw: { url: server.url } })
    expect(servers.status()[0]!.tools).toEqual(['look'])
    expect(refused).toBe(1)
  })

  test('with 429 and Retry-After receives the call again', async () => {
    const { server, runs } = await answering(429, 'later', { 'retry-after': '0' })
    expect((await changeOn(server)).call).toMatchObject({ status: 'success' })
    expect(runs()).toBe(2)
  })

  test('with 503 does not receive the call again: it may have been executed', async () => {
    const { server, runs } = await answering(503, 'later', { 'retry-after': '0' })
    expect((await changeOn(server)).call).toMatchObject({ status: 'unknown' })
    expect(runs()).toBe(1)
  })
})

test.each([301, 302, 307, 308])('Y12: a server that moved within its origin (%i) is followed', async (status) => {
  const server = await rawServer()
  server.intercept = (_message, request, response) => {
    if (request.url === '/mcp/') return false
    response.writeHead(status, { location: '/mcp/' }).end()
    return true
  }
  expect((await changeOn(server)).call).toMatchObject({ status: 'success' })
})

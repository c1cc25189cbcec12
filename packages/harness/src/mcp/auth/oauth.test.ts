// Sign-in by a person: authorization, storage and secrecy. The conformance suite covers the details of OAuth.
import { describe, expect, test } from 'vitest'
import type { McpAuth, McpTokenStore } from '../../index.ts'
import { callOf, connected, rawServer, talking } from '../mcp.fixture.ts'
import { guardedFetch, isPrivateAddress } from './oauth-fetch.ts'

const TOKEN = 'token-that-nobody-may-see'

/** An MCP server that is its own authorization server. */
async function guarded() {
  const server = await rawServer()
  const origin = new URL(server.url).origin
  const asked: string[] = []
  server.intercept = async (_message, request, response) => {
    const { pathname } = new URL(request.url!, origin)
    const answer = (body: object): true => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      return true
    }
    if (pathname === '/mcp') {
      if (request.headers.authorization === `Bearer ${TOKEN}`) return false
      response.writeHead(401, {
        'www-authenticate': `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
      })
      response.end()
      return true
    }
    asked.push(pathname)
    if (pathname.startsWith('/.well-known/oauth-protected-resource'))
      return answer({ resource: server.url, authorization_servers: [origin] })
    if (pathname.startsWith('/.well-known/oauth-authorization-server'))
      return answer({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
      })
    if (pathname === '/register') return answer({ client_id: 'registered', redirect_uris: ['http://localhost/back'] })
    if (pathname === '/token') return answer({ access_token: TOKEN, token_type: 'Bearer', expires_in: 3_600 })
    return answer({})
  }
  return { server, asked }
}

const person = (more: Partial<Extract<McpAuth, { type: 'authorization-code' }>> = {}): McpAuth => ({
  type: 'authorization-code',
  redirectUrl: 'http://localhost/back',
  authorize: async (url) => new URLSearchParams({ code: 'c', state: url.searchParams.get('state')!, iss: url.origin }),
  ...more,
})

function memoryStore() {
  const values = new Map<string, string>()
  const store: McpTokenStore = { get: (key) => values.get(key), set: (key, value) => void values.set(key, value) }
  return { store, values }
}

/** A separate authorization server, and MCP servers that name it. */
async function apart() {
  const authorization = await rawServer()
  const origin = new URL(authorization.url).origin
  const told: string[] = []
  authorization.intercept = (_message, request, response) => {
    const { pathname } = new URL(request.url!, origin)
    if (request.headers['x-api-key'] !== undefined) told.push('the key of the server')
    const answer = (body: object): true => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      return true
    }
    if (pathname !== '/token')
      return answer({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        grant_types_supported: ['client_credentials'],
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
      })
    told.push(atob((request.headers.authorization ?? '').split(' ')[1] ?? ''))
    return answer({ access_token: TOKEN, token_type: 'Bearer', expires_in: 3_600 })
  }
  return { origin, told }
}

/** @param metadata the URL that the server gives for its metadata */
async function naming(authorization: string, metadata = '') {
  const server = await rawServer()
  const { origin } = new URL(server.url)
  const tokens: string[] = []
  server.intercept = (_message, request, response) => {
    const { pathname } = new URL(request.url!, origin)
    if (pathname.startsWith('/.well-known/oauth-protected-resource'))
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ resource: server.url, authorization_servers: [authorization] }))
    else if (pathname !== '/mcp') response.writeHead(404).end()
    else if (request.headers.authorization === undefined)
      response
        .writeHead(401, {
          'www-authenticate': `Bearer resource_metadata="${metadata || `${origin}/.well-known/oauth-protected-resource/mcp`}"`,
        })
        .end()
    else {
      tokens.push(request.headers.authorization)
      return false
    }
    return true
  }
  return { url: server.url, tokens, headers: server.headers }
}

const service = (issuer: string): McpAuth => ({
  type: 'client-credentials',
  clientId: 'svc',
  clientSecret: 'S3CRET',
  issuer,
})

describe('Y12: a service signs in to a server', () => {
  test('with its secret at the authorization server that it is for', async () => {
    const { origin, told } = await apart()
    const server = await naming(origin)
    const headers = { 'x-api-key': 'key' }
    const { servers } = await connected({ raw: { url: server.url, headers, auth: service(origin) } })
    expect(servers.status()[0]!.state).toBe('connected')
    expect(told).toEqual(['svc:S3CRET'])
    expect(server.headers[0]!['x-api-key']).toBe('key')
  })

  test('and the server cannot redirect the secret to another one', async () => {
    const { origin, told } = await apart()
    const server = await naming(origin)
    const starting = connected({ raw: { url: server.url, auth: service('https://login.internal') } })
    await expect(starting).rejects.toThrow(/login\.internal/)
    expect(told).toEqual([])
  })

  test.each([
    ['client-credentials', { type: 'client-credentials', clientId: 'a', clientSecret: 'b' }],
    ['private-key-jwt', { type: 'private-key-jwt', clientId: 'a', privateKey: 'b', algorithm: 'ES256' }],
    ['authorization-code', { ...person(), clientId: 'a', clientSecret: 'b' }],
  ])('not without the secret’s audience: %s', async (_, auth) => {
    const starting = connected({ raw: { url: 'http://127.0.0.1:1/mcp', auth: auth as unknown as McpAuth } })
    await expect(starting).rejects.toMatchObject({
      code: 'mcp_invalid',
      message: expect.stringContaining('auth.issuer'),
    })
  })

  test('and one server’s tokens are not sent to another with the same settings', async () => {
    const [known, other] = [await apart(), await apart()]
    const [good, evil] = [await naming(known.origin), await naming(other.origin)]
    const auth = service(known.origin)
    await connected({ good: { url: good.url, auth } })
    await expect(connected({ evil: { url: evil.url, auth } })).rejects.toThrow(known.origin)
    expect(good.tokens[0]).toBe(`Bearer ${TOKEN}`)
    expect(evil.tokens).toEqual([])
  })
})

describe('Y12: a server that redirects the sign-in', () => {
  test('cannot choose the URL of its metadata: its own origin is used', async () => {
    const { origin } = await apart()
    const inner = await rawServer()
    const asked: (string | undefined)[] = []
    inner.intercept = (_message, request) => {
      asked.push(request.url)
      return false
    }
    const server = await naming(origin, `${new URL(inner.url).origin}/latest/meta-data`)
    const { servers } = await connected({ raw: { url: server.url, auth: service(origin) } })
    expect(servers.status()[0]!.state).toBe('connected')
    expect(asked).toEqual([])
  })

  test('cannot reach the internal network, unless it is there itself or the operator allows it', async () => {
    const { origin } = await apart()
    const ask = (url: string, issuer?: string) =>
      guardedFetch({ url, auth: person(issuer === undefined ? {} : { issuer }) })(
        `${origin}/.well-known/openid-configuration`,
      )
    await expect(ask('https://203.0.113.7/mcp')).rejects.toMatchObject({ code: 'mcp_forbidden_address' })
    await expect(ask('https://203.0.113.7/mcp', origin)).resolves.toMatchObject({ status: 200 })
    await expect(ask('http://10.0.0.1/mcp')).resolves.toMatchObject({ status: 200 })
  })

  test.each([
    '127.0.0.1',
    '10.1.2.3',
    '169.254.169.254',
    '192.168.0.1',
    '::1',
    'fd00::1',
    '::ffff:127.0.0.1',
    '0.0.0.0',
  ])('where %s is a private address', (address) => expect(isPrivateAddress(address)).toBe(true))
})

describe('Y12: a person signs in to a server', () => {
  test('with PKCE and dynamic client registration, and then its tools run', async () => {
    const { server, asked } = await guarded()
    let challenge = ''
    const auth = person({
      authorize: async (url) => {
        challenge = `${url.searchParams.get('code_challenge_method')} ${url.searchParams.get('resource')}`
        return new URLSearchParams({ code: 'c', state: url.searchParams.get('state')! })
      },
    })
    const it = await talking({ raw: { url: server.url, auth } }, [callOf('look'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]!.status).toBe('success')
    expect(challenge).toBe(`S256 ${server.url}`)
    expect(asked.filter((path) => path === '/register' || path === '/token')).toEqual(['/register', '/token'])
    expect(JSON.stringify([await it.events(), it.servers.status(), it.notices])).not.toContain(TOKEN)
  })

  test('once: the next start finds the tokens in the store', async () => {
    const { server, asked } = await guarded()
    const { store, values } = memoryStore()
    await connected({ raw: { url: server.url, auth: person({ store }) } })
    expect([...values.keys()]).toEqual([`mcp:${server.url}`])
    asked.length = 0
    const authorize = () => Promise.reject(new Error('nobody is there'))
    const { servers } = await connected({ raw: { url: server.url, auth: person({ store, authorize }) } })
    expect(servers.status()[0]!.state).toBe('connected')
    expect(asked).toEqual([])
  })

  test('and a browser that returns with the state of another sign-in is refused', async () => {
    const { server, asked } = await guarded()
    const authorize = async () => new URLSearchParams({ code: 'c', state: 'of somebody else' })
    const starting = connected({ raw: { url: server.url, auth: person({ authorize }) } })
    await expect(starting).rejects.toThrow('state of another sign-in')
    expect(asked).not.toContain('/token')
  })
})

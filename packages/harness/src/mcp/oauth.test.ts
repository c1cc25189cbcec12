// A person signs in: who may, what is kept, and that it is not shown. The details of OAuth are the conformance suite's.
import { describe, expect, test } from 'vitest'
import type { McpAuth, McpTokenStore } from '../index.ts'
import { callOf, connected, rawServer, talking } from './mcp.fixture.ts'

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

describe('Y12: a person signs in to a server', () => {
  test('with PKCE and a client that registers itself, and then its tools run', async () => {
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

  test('and a browser that comes back with the state of another sign-in is refused', async () => {
    const { server, asked } = await guarded()
    const authorize = async () => new URLSearchParams({ code: 'c', state: 'of somebody else' })
    const starting = connected({ raw: { url: server.url, auth: person({ authorize }) } })
    await expect(starting).rejects.toThrow('state of another sign-in')
    expect(asked).not.toContain('/token')
  })
})

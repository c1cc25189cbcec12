// Where a server may send us while we sign in. It names the authorization server, and with it addresses that we ask
// from where we stand: those of our own network are none of its business, unless it is there itself.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP, isIPv6 } from 'node:net'
import { OxbowError } from '@oxbow/core'
import type { McpHttpServer } from '../options.ts'

const PRIVATE = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  PRIVATE.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 127],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  PRIVATE.addSubnet(network, bits, 'ipv6')

/** Of the machine, of its network, or of no single host. */
export const isPrivateAddress = (address: string): boolean => PRIVATE.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

async function isPrivate({ hostname }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return isPrivateAddress(host)
  const found = await lookup(host, { all: true }).catch(() => [])
  return found.some(({ address }) => isPrivateAddress(address))
}

/**
 * `fetch` that asks addresses of other origins than the server's only where they are public, or the server's is
 * private, too; and that does not follow them elsewhere. `headers` go to the server's origin only. `issuer`: what the
 * operator has named.
 *
 * The name is resolved before the request: a change of its address in between is not detected.
 *
 * @throws OxbowError (by the function) `mcp_forbidden_address`
 */
export function guardedFetch({
  url: address,
  headers: own = {},
  auth,
}: Pick<McpHttpServer, 'url' | 'headers' | 'auth'>): typeof fetch {
  const server = new URL(address)
  const named = auth?.issuer === undefined ? undefined : new URL(auth.issuer).origin
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    if (url.origin === server.origin) {
      const headers = new Headers(init?.headers)
      for (const [name, value] of Object.entries(own)) if (!headers.has(name)) headers.set(name, value)
      return withoutForeignMetadata(server, await fetch(input, { ...init, headers }))
    }
    if (url.origin !== named && (await isPrivate(url)) && !(await isPrivate(server)))
      throw new OxbowError(
        'mcp_forbidden_address',
        `The server names ${url.origin}, which is not a public address, for signing in. Is it meant to, then set auth.issuer to its authorization server.`,
      )
    return fetch(input, { redirect: 'error', ...init })
  }
}

/**
 * Where the description of a server is to be found: it is its own affair, so on its own origin. Else the usual place is
 * asked.
 */
function withoutForeignMetadata(server: URL, response: Response): Response {
  const challenge = response.headers.get('www-authenticate')
  const [, quoted, plain] = /resource_metadata=(?:"([^"]+)"|([^\s,]+))/.exec(challenge ?? '') ?? []
  const named = quoted ?? plain
  if (challenge === null || named === undefined) return response
  if (URL.canParse(named) && new URL(named).origin === server.origin) return response
  const headers = new Headers(response.headers)
  headers.set('www-authenticate', challenge.replaceAll('resource_metadata', 'ignored'))
  const { status, statusText, body, url } = response
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: url })
}

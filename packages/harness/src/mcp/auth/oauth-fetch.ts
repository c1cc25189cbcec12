// Where a server may redirect this client for signing in. It names the authorization server, and with it URLs that are
// requested from this machine: those of the internal network are off limits, unless the server is there itself.
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

/** Addresses of the machine, of its network, or of more than one host. */
export const isPrivateAddress = (address: string): boolean => PRIVATE.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

async function isPrivate({ hostname }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return isPrivateAddress(host)
  const found = await lookup(host, { all: true }).catch(() => [])
  return found.some(({ address }) => isPrivateAddress(address))
}

/**
 * A `fetch` that requests other origins than the server's only where they are public or the server's is private too,
 * and that does not follow their redirects. `headers` are sent to the server's origin only. `issuer`: the authorization
 * server that the operator configured.
 *
 * The name is resolved before the request: a later change of its address is not detected.
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
        `The server names ${url.origin}for sign-in, which is not a public address. If that is intended, set auth.issuer to its authorization server.`,
      )
    return fetch(input, { redirect: 'error', ...init })
  }
}

/**
 * The URL of a server's metadata, accepted on its own origin only. Otherwise the well-known URL is used.
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

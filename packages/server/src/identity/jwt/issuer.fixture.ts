// A token issuer: real keys, published over real HTTP.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'

export interface Issuer {
  readonly url: string
  readonly jwksUrl: string
  /** How often the keys were fetched. */
  readonly fetched: number
  /** Signs with the newest key. */
  sign(claims: JWTPayload, header?: { kid?: string; alg?: string }): Promise<string>
  /** Publishes a new key instead of the old one. */
  rotate(): Promise<void>
  /** Replaces the answer from now on. Undefined: the keys. */
  answer(other: { status: number; body: string } | undefined): void
  publicJwk(): JWK
  close(): Promise<void>
}

export const AUDIENCE = 'oxbow'
export const seconds = (fromNow: number): number => Math.floor(Date.now() / 1_000) + fromNow

export async function issuer(alg = 'ES256'): Promise<Issuer> {
  let n = 0
  let fetched = 0
  let other: { status: number; body: string } | undefined
  const make = async () => {
    n += 1
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
    return { kid: `key-${n}`, privateKey, jwk: { ...(await exportJWK(publicKey)), kid: `key-${n}`, alg, use: 'sig' } }
  }
  let key = await make()
  const server = createServer((_request, response) => {
    fetched += 1
    response.writeHead(other?.status ?? 200, { 'content-type': 'application/json' })
    response.end(other?.body ?? JSON.stringify({ keys: [key.jwk] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    jwksUrl: `${url}/jwks.json`,
    get fetched() {
      return fetched
    },
    sign: (claims, { kid = key.kid } = {}) =>
      new SignJWT({ iss: url, aud: AUDIENCE, exp: seconds(300), ...claims })
        .setProtectedHeader({ alg, kid })
        .sign(key.privateKey),
    async rotate() {
      key = await make()
    },
    answer: (given) => {
      other = given
    },
    publicJwk: () => key.jwk,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

// The key that verifies tokens: a configured one, or the issuer's published keys.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { OxbowError } from '@oxbow/core'
import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from 'jose'
import type { JwtConfig } from '../../config/identity-config.ts'
import { HostUnavailable, host } from '../host.ts'

const TIMEOUT_MS = 5_000

/** @throws OxbowError `config_invalid` */
export async function verificationKey(key: JwtConfig['key']): Promise<KeyObject | Uint8Array | JWTVerifyGetKey> {
  switch (key.type) {
    case 'secret':
      return new TextEncoder().encode(key.secret)
    case 'public':
      return publicKey(key.pem)
    case 'jwks':
      return publishedKeys(key)
  }
}

async function publicKey(given: string): Promise<KeyObject> {
  const invalid = (why: string) => new OxbowError('config_invalid', `identity.jwt.publicKey: ${why}`)
  let pem = given
  if (!given.includes('-----BEGIN'))
    pem = await readFile(given, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw invalid(`${JSON.stringify(given)} is neither a PEM string nor a readable file (${error.code})`)
    })
  if (pem.includes('PRIVATE KEY'))
    throw invalid('must be a public key; got a private key, which should be kept elsewhere')
  try {
    return createPublicKey(pem)
  } catch {
    throw invalid('must be a public key or certificate in PEM')
  }
}

/** An unknown key id triggers a fetch, at most once per cool-down. Fetched keys are used while the issuer is down. */
function publishedKeys({ url, maxAgeMs, cooldownMs }: JwtConfig['key'] & { type: 'jwks' }): JWTVerifyGetKey {
  const issuer = host(TIMEOUT_MS)
  const keys = createRemoteJWKSet(new URL(url), {
    cacheMaxAge: maxAgeMs,
    cooldownDuration: cooldownMs,
    timeoutDuration: TIMEOUT_MS,
    async [customFetch](address, { headers }) {
      const { status, text } = await issuer.ask(address, { method: 'GET', headers: Object.fromEntries(headers) })
      return new Response(text, { status: status < 200 || status > 599 ? 502 : status })
    },
  })
  return async (header, token) => {
    try {
      return await keys(header, token)
    } catch (error) {
      const ofTheToken =
        error instanceof errors.JWKSNoMatchingKey ||
        error instanceof errors.JWKSMultipleMatchingKeys ||
        error instanceof errors.JOSENotSupported
      if (ofTheToken || error instanceof HostUnavailable) throw error
      throw new HostUnavailable(`the issuer published no usable keys: ${(error as Error).message}`, 1_000, {
        cause: error,
      })
    }
  }
}

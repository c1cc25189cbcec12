// Signed tokens of an issuer (JWT).
import { defined } from '@oxbow/core/internal'
import type { JWTPayload } from 'jose'
import { errors, jwtVerify } from 'jose'
import type { JwtConfig } from '../../config/identity-config.ts'
import {
  type Authentication,
  type Identity,
  type KnownPrincipal,
  type OnProblem,
  refused,
  unavailable,
} from '../contract.ts'
import { invalid, tokenOf } from '../credentials.ts'
import { holds, principalIn } from '../fields.ts'
import { HostUnavailable } from '../host.ts'
import { boundedMap } from '../limits/bounded-map.ts'
import { narrowed } from '../narrowing.ts'
import { nameOfPerson, refreshEndpoint } from '../refresh.ts'
import { verificationKey } from './jwt-keys.ts'

const MAX_KNOWN = 10_000

/** @throws OxbowError `config_invalid` */
export async function jwtIdentity(config: JwtConfig, onProblem: OnProblem): Promise<Identity> {
  const key = await verificationKey(config.key)
  const clockTolerance = config.clockSkewMs / 1_000
  const rules = {
    algorithms: [...config.algorithms],
    clockTolerance,
    // A token without expiry could never be revoked.
    requiredClaims: ['exp'],
    ...defined({ issuer: config.issuer, audience: config.audience }),
  }
  const known = boundedMap<{ principal: KnownPrincipal; until: number }>(MAX_KNOWN)
  const endpoint = refreshEndpoint(
    config.refresh,
    { success: undefined, refused: [], fields: config.claims, everything: undefined, scopeOfRole: undefined },
    onProblem,
  )

  async function claimsOf(token: string): Promise<JWTPayload> {
    const verified = typeof key === 'function' ? await jwtVerify(token, key, rules) : await jwtVerify(token, key, rules)
    return verified.payload
  }

  return {
    mode: 'jwt',
    ambient: false,
    schemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    async authenticate(credentials): Promise<Authentication> {
      const token = tokenOf(credentials)
      if (typeof token !== 'string') return token
      let claims: JWTPayload
      try {
        claims = await claimsOf(token)
      } catch (error) {
        if (error instanceof HostUnavailable) {
          onProblem({ message: `identity.jwt.jwksUrl: ${error.message}`, cause: error })
          return unavailable(error.retryAfterMs)
        }
        if (error instanceof errors.JWTExpired)
          return refused('credentials_expired', 'The token has expired. Get a new one.')
        // Naming the failed check would only help attackers.
        return invalid()
      }
      if (!config.requiredClaims.every((it) => holds(claims, it))) return invalid()
      const principal = principalIn(claims, { fields: config.claims })
      if (principal === undefined) return invalid()
      known.set(nameOfPerson(principal), { principal, until: claims.exp! * 1_000 + config.clockSkewMs })
      return { accepted: true, principal }
    },
    async refresh(principal) {
      if (endpoint !== undefined) return endpoint(principal)
      const last = known.get(nameOfPerson(principal))
      return last !== undefined && last.until > Date.now() ? narrowed(principal, last.principal) : undefined
    },
  }
}

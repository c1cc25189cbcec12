// One interface over the ways to authenticate a caller. Everything else in the service sees only the principal.
import type { Principal } from '@oxbow/core'
import type { IdentityConfig } from '../config/identity-config.ts'

/** As in Node: name, value, name, value; nothing is joined or dropped. */
export interface Credentials {
  readonly rawHeaders: readonly string[]
}

export interface Accepted {
  readonly accepted: true
  readonly principal: KnownPrincipal
  /** The public part of an API key, for logs. */
  readonly keyId?: string
}

/** `message` is for the caller, and repeats nothing of the request. */
export interface Refusal {
  readonly accepted: false
  readonly status: 401 | 503
  readonly code:
    | 'credentials_missing'
    | 'credentials_invalid'
    | 'credentials_expired'
    | 'credentials_ambiguous'
    | 'identity_unavailable'
  readonly message: string
  /** With a 503: when to try again. */
  readonly retryAfterMs?: number
}

export type Authentication = Accepted | Refusal
export type KnownPrincipal = Principal & { readonly tenant: string }

/** Reports a problem of this service that the caller must not see. */
export type OnProblem = (problem: { readonly message: string; readonly cause?: unknown }) => void

export interface Identity {
  readonly mode: IdentityConfig['mode']
  /**
   * Never throws because of the credentials. `throttled`: the address has sent many invalid credentials. Requests to
   * other systems are then throttled, and refused when too many wait; credentials known to be valid are not delayed.
   */
  authenticate(credentials: Credentials, options?: { readonly throttled?: boolean }): Promise<Authentication>
  /**
   * The principal with the rights that remain, never with more than before. Undefined: the principal may no longer act.
   * This is the engine's `currentPrincipal`. `reading`: the check is for an open stream, which lasts no longer than the
   * session or the key that opened it.
   *
   * @throws OxbowError `identity_unavailable` when the rights cannot be checked: neither granted nor denied
   */
  refresh(principal: Principal, options?: { readonly reading?: boolean }): Promise<Principal | undefined>
  /** The browser sends the credentials automatically, so pages of other origins must be kept out. */
  readonly ambient: boolean
  /** How to send credentials: OpenAPI's security schemes. */
  readonly schemes: Readonly<Record<string, object>>
}

export const refused = (code: Exclude<Refusal['code'], 'identity_unavailable'>, message: string): Refusal => ({
  accepted: false,
  status: 401,
  code,
  message,
})

export const unavailable = (retryAfterMs = 1_000): Refusal => ({
  accepted: false,
  status: 503,
  code: 'identity_unavailable',
  message: 'Your identity cannot be checked right now. Try again in a moment.',
  retryAfterMs,
})

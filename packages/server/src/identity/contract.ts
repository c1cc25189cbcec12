// Who asks: one interface over the ways to prove it. Everything else in the service sees only the principal.
import type { Principal } from '@oxbow/core'
import type { IdentityConfig } from '../config/identity-config.ts'

/** As Node has them: name, value, name, value; nothing joined, nothing dropped. */
export interface Credentials {
  readonly rawHeaders: readonly string[]
}

export interface Accepted {
  readonly accepted: true
  readonly principal: KnownPrincipal
  /** The public part of an API key, for logs. */
  readonly keyId?: string
}

/** `message` is for the caller; nothing in it comes from what they sent. */
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
  /** With a 503: when to come back. */
  readonly retryAfterMs?: number
}

export type Authentication = Accepted | Refusal
export type KnownPrincipal = Principal & { readonly tenant: string }

/** Something on the side of this service, which the caller is not told. */
export type OnProblem = (problem: { readonly message: string; readonly cause?: unknown }) => void

export interface Identity {
  readonly mode: IdentityConfig['mode']
  /**
   * Never throws for anything that the caller sent. `sparing`: many wrong ones have come from there. What costs others
   * something is done for a few at a time, and refused where too many wait; what has been right before is not held up.
   */
  authenticate(credentials: Credentials, options?: { readonly sparing?: boolean }): Promise<Authentication>
  /**
   * With what of their rights the principal may still act; never with more than they had. Undefined: not at all any more. The
   * engine's `currentPrincipal`. `reading`: asked for an open stream, which lasts no longer than
   * the session or the key that it was opened with.
   *
   * @throws OxbowError `identity_unavailable` when nobody can tell: the answer is not "no", and never "yes"
   */
  refresh(principal: Principal, options?: { readonly reading?: boolean }): Promise<Principal | undefined>
  /** The browser sends the credentials by itself, so that pages of others must be kept out. */
  readonly ambient: boolean
  /** How to bring credentials: OpenAPI's security schemes. */
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

// The one place where a request becomes somebody: whose sessions it is about, and who acts.
import type { Principal } from '@oxbow/core'
import { DEFAULT_TENANT, mayActFor, mayActIn } from '@oxbow/core/internal'
import { HttpError } from './http/errors.ts'
import type { AppContext } from './http/route.ts'
import { given } from './http/schemas.ts'

export const DEFAULT_USER = 'default'

export interface Caller {
  /** Whose sessions the request is about: the first two parts of their keys. */
  readonly owner: { readonly tenant: string; readonly user: string }
  /** Who acts; with identity on nothing but the proven principal. */
  readonly principal: Principal
}

/** Whom a request names, in its body or query. */
export interface Named {
  readonly userId?: string | null | undefined
  readonly tenant?: string | null | undefined
}

/**
 * Without identity who asks is whoever the request names. With identity it is the principal, and naming somebody else is
 * refused, not ignored: it tells a mistake in the client.
 *
 * @throws HttpError 403 `user_mismatch`, `tenant_mismatch`
 */
export function callerOf(c: AppContext, named: Named = {}): Caller {
  const user = given(named.userId)
  const tenant = given(named.tenant)
  const caller = c.get('caller')
  if (caller === undefined) throw new Error('a route asked who is calling, and nothing had checked')
  if (caller === 'anybody') {
    const owner = { tenant: tenant ?? DEFAULT_TENANT, user: user ?? DEFAULT_USER }
    return { owner, principal: owner }
  }
  const owner = { tenant: tenant ?? caller.tenant, user: user ?? caller.user }
  if (!mayActIn(caller, owner.tenant))
    throw new HttpError(
      403,
      'tenant_mismatch',
      'tenant does not match your credentials. Leave it out: your credentials determine it.',
    )
  if (!mayActFor(caller, owner))
    throw new HttpError(
      403,
      'user_mismatch',
      'userId does not match your credentials. Leave it out: your credentials determine it.',
    )
  return { owner, principal: caller }
}

/** Somebody whom nothing is known of, on a route that is open. */
export const isStranger = (c: AppContext): boolean => c.get('caller') === undefined

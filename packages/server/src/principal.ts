// The only place that derives from a request whose sessions it concerns, and who acts.
import type { Principal } from '@oxbow/core'
import { DEFAULT_TENANT, mayActFor, mayActIn } from '@oxbow/core/internal'
import { HttpError } from './http/errors.ts'
import type { AppContext } from './http/route.ts'
import { given } from './http/schemas.ts'

export const DEFAULT_USER = 'default'

export interface Caller {
  /** The owner of the sessions: the first two parts of their keys. */
  readonly owner: { readonly tenant: string; readonly user: string }
  /** The acting principal; with identity enabled always the authenticated one. */
  readonly principal: Principal
}

/** The user and tenant that a body or query names. */
export interface Named {
  readonly userId?: string | null | undefined
  readonly tenant?: string | null | undefined
}

/**
 * Without identity the caller is the user that the request names. With identity it is the authenticated principal;
 * naming another user is rejected rather than ignored, because it is a mistake of the client.
 *
 * @throws HttpError 403 `user_mismatch`, `tenant_mismatch`
 */
export function callerOf(c: AppContext, named: Named = {}): Caller {
  const user = given(named.userId)
  const tenant = given(named.tenant)
  const caller = c.get('caller')
  if (caller === undefined) throw new Error('callerOf() was called on a route without a guard')
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

/** An anonymous caller on an open route. */
export const isStranger = (c: AppContext): boolean => c.get('caller') === undefined

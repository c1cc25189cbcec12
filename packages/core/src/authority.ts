// Authority: who may act for whom, and which permissions that requires.

import type { Event, Principal } from './events/types.ts'

/** The permission of an administrator: sees and acts in sessions of other users of the same tenant. */
export const ADMIN = 'oxbow:admin'
/** Together with `ADMIN`: the same in other tenants. */
export const ADMIN_OF_TENANTS = 'oxbow:admin:tenants'
/** The tenant of a principal that names none. */
export const DEFAULT_TENANT = 'default'

/** One user of one tenant. */
export type Person = Pick<Principal, 'tenant' | 'user'>

const tenantOf = ({ tenant = DEFAULT_TENANT }: Person): string => tenant

/**
 * Whether one of the granted permission ids covers the needed one. `*` matches one segment, at the end all that follow:
 * `*:*:*`, `biz:*`, `biz:order:*`. Segments are compared whole, so `biz:order` never covers `biz:orders`.
 */
export function grants(granted: readonly string[], needed: string): boolean {
  const segments = needed.split(':')
  return granted.some((it) => covers(it.split(':'), segments))
}

function covers(granted: readonly string[], needed: readonly string[]): boolean {
  const last = granted.length - 1
  if (granted.length > needed.length) return false
  if (granted.length < needed.length && granted[last] !== '*') return false
  return granted.every((it, index) => it === '*' || it === needed[index])
}

/** Whether two principals are the same user of the same tenant. */
export const isSamePerson = (one: Person, other: Person): boolean =>
  one.user === other.user && tenantOf(one) === tenantOf(other)

/** Whether the principal may act in this tenant: it is their own, or they administer other tenants. */
export const mayActIn = (principal: Principal, tenant: string): boolean =>
  tenantOf(principal) === tenant || grants(principal.permissions ?? [], ADMIN_OF_TENANTS)

/**
 * Whether the principal may see and do what belongs to `owner`: it is theirs, or they administer the owner's tenant.
 */
export const mayActFor = (principal: Principal, owner: Person): boolean =>
  isSamePerson(principal, owner) || (mayActIn(principal, tenantOf(owner)) && grants(principal.permissions ?? [], ADMIN))

/**
 * Whether the principal may decide on an approval. The user for whom the turn runs decides, regardless of the session
 * owner: the call runs with that user's rights. If the tool names a permission that its approver needs, holders of it
 * decide.
 *
 * @param approval the event `approval.requested`
 * @param owner the principal of the turn
 * @example const mine = openApprovals(turn).filter((it) => mayDecide(it, principal, turn.principal))
 */
export function mayDecide(
  { approver }: Pick<Event<'approval.requested'>, 'approver'>,
  principal: Principal,
  owner: Person,
): boolean {
  if (approver === undefined) return isSamePerson(principal, owner)
  return tenantOf(principal) === tenantOf(owner) && grants(principal.permissions ?? [], approver)
}

/**
 * Whether the principal may set rules for the whole tenant. A principal without `permissions` comes from a program that
 * has none: there, the program decides who may.
 */
export const mayShareRules = ({ permissions }: Principal): boolean =>
  permissions === undefined || grants(permissions, ADMIN)

// Who may decide on an approval, and act in the turn of somebody.

import { grants } from './checks/permission-ids.ts'
import type { Event, Principal } from './events/types.ts'

/** The permission of whoever looks after the service. */
export const ADMIN = 'oxbow:admin'

/** Whose turn it is: with their rights it runs, in whoever's session. */
export type Asker = Pick<Principal, 'tenant' | 'user'>

const tenantOf = ({ tenant = 'default' }: Asker): string => tenant

export const isSamePerson = (one: Asker, other: Asker): boolean =>
  one.user === other.user && tenantOf(one) === tenantOf(other)

/** Whether somebody may bring a turn what it waits for: whose it is, and whoever looks after the service. */
export const mayActFor = (principal: Principal, asker: Asker): boolean =>
  tenantOf(principal) === tenantOf(asker) &&
  (principal.user === asker.user || grants(principal.permissions ?? [], ADMIN))

/**
 * Who asked decides, and not whose session it is: the call runs with the rights of who asked. If the tool names a permission
 * that its approver needs, whoever holds that decides.
 */
export function mayDecide(
  { approver }: Pick<Event<'approval.requested'>, 'approver'>,
  principal: Principal,
  asker: Asker,
): boolean {
  if (approver === undefined) return isSamePerson(principal, asker)
  return tenantOf(principal) === tenantOf(asker) && grants(principal.permissions ?? [], approver)
}

/**
 * What everybody of the tenant is allowed from now on is not for one user to say. Somebody whose permissions are not known
 * comes from a program that has none: there the program decides who may.
 */
export const mayShareRules = ({ permissions }: Principal): boolean =>
  permissions === undefined || grants(permissions, ADMIN)

// Who may decide on an approval.
import type { Event, Principal } from '../events/types.ts'
import type { SessionKey } from '../ports.ts'
import { grants } from './permission-ids.ts'

/** The user decides on what they asked for themselves, unless the tool names a permission that its approver needs. */
export function mayDecide(
  { approver }: Pick<Event<'approval.requested'>, 'approver'>,
  principal: Principal,
  key: SessionKey,
): boolean {
  if ((principal.tenant ?? 'default') !== key.tenant) return false
  return approver === undefined ? principal.user === key.user : grants(principal.permissions ?? [], approver)
}

/** The permission of whoever looks after the service. */
export const ADMIN = 'oxbow:admin'

/**
 * What everybody of the tenant is allowed from now on is not for one user to say. Somebody whose permissions are not known
 * comes from a program that has none: there the program decides who may.
 */
export const mayShareRules = ({ permissions }: Principal): boolean =>
  permissions === undefined || grants(permissions, ADMIN)

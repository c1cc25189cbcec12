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

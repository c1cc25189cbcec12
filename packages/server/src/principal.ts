// The one place where a request becomes somebody. There is no identity yet: who asks is whoever the request names.
import type { Principal } from '@oxbow/core'

export const DEFAULT_TENANT = 'default'
export const DEFAULT_USER = 'default'

/** A blank user id counts as not given. */
export function principalOf(userId: string | undefined): Principal & { tenant: string } {
  return { tenant: DEFAULT_TENANT, user: userId === undefined || userId.trim() === '' ? DEFAULT_USER : userId }
}

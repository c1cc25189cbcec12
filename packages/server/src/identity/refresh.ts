// The current rights of a user, from an endpoint that this service calls with its own credentials.

import { OxbowError, type Principal } from '@oxbow/core'
import { DEFAULT_TENANT, defined, isSamePerson } from '@oxbow/core/internal'
import type { RefreshConfig } from '../config/identity-config.ts'
import type { OnProblem } from './contract.ts'
import { HostUnavailable, host } from './host.ts'
import { principalOfAnswer, type VerdictRules } from './introspection/verdict.ts'
import { narrowed } from './narrowing.ts'

export type Refresh = (principal: Principal) => Promise<Principal | undefined>

/** Undefined when no endpoint is configured. */
export function refreshEndpoint(config: RefreshConfig, rules: VerdictRules, onProblem: OnProblem): Refresh | undefined {
  const { url, authorization, timeoutMs } = config
  if (url === undefined) return undefined
  const asked = host(timeoutMs)
  const headers = { accept: 'application/json', ...defined({ authorization }) }
  return (principal) =>
    orUnavailable('identity.refresh.url', onProblem, async () => {
      const { user, tenant = DEFAULT_TENANT } = principal
      const address = url
        .replaceAll('{user}', encodeURIComponent(user))
        .replaceAll('{tenant}', encodeURIComponent(tenant))
      const now = principalOfAnswer(await asked.ask(address, { method: 'GET', headers }), rules)
      return now !== undefined && isSamePerson(now, principal) ? narrowed(principal, now) : undefined
    })
}

export const nameOfPerson = ({ user, tenant = DEFAULT_TENANT }: Principal): string => JSON.stringify([tenant, user])

/** @throws OxbowError `identity_unavailable` */
export async function orUnavailable<T>(what: string, onProblem: OnProblem, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (!(cause instanceof HostUnavailable)) throw cause
    onProblem({ message: `${what}: ${cause.message}`, cause })
    throw new OxbowError('identity_unavailable', 'Permissions cannot be checked right now. Try again in a moment.', {
      retryable: true,
      cause,
    })
  }
}

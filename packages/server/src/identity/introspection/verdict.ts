// Interprets the host's answer about a caller: authenticated, not signed in, or unknown.
import type { FieldPaths, ScopeOfRole } from '../../config/introspection-presets.ts'
import type { KnownPrincipal } from '../contract.ts'
import { holds, principalIn } from '../fields.ts'
import { type HostAnswer, HostUnavailable, jsonOf } from '../host.ts'

export interface VerdictRules {
  readonly success: string | undefined
  readonly refused: readonly string[]
  readonly fields: FieldPaths
  readonly everything: string | undefined
  readonly scopeOfRole: ScopeOfRole | undefined
}

/**
 * Undefined: not signed in. An answer that the rules do not cover is a failure of the host, and never authenticates.
 *
 * @throws HostUnavailable
 */
export function principalOfAnswer(answer: HostAnswer, rules: VerdictRules): KnownPrincipal | undefined {
  const { status } = answer
  // Hosts with a web UI redirect anonymous callers to their sign-in page.
  if ([301, 302, 303, 307, 308, 401, 403, 404, 410].includes(status)) return undefined
  if (status < 200 || status > 299) throw new HostUnavailable(`it answered with status ${status}`)
  const document = jsonOf(answer)
  if (rules.refused.some((it) => holds(document, it))) return undefined
  if (rules.success !== undefined && !holds(document, rules.success)) {
    if (rules.refused.length === 0) return undefined
    throw new HostUnavailable('its answer says neither that the caller is signed in nor that they are not')
  }
  const principal = principalIn(document, rules)
  if (principal === undefined)
    throw new HostUnavailable(`its answer has no user at ${rules.fields.user}, or no tenant where one is configured`)
  return principal
}

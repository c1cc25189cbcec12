// The rows that a principal may see, parsed from a token, a host system or a record of an API key.
import type { DataScope } from '@oxbow/core'
import { dataScope as schema } from '@oxbow/core/schema'
import { z } from 'zod'
import type { ScopeOfRole } from '../config/introspection-presets.ts'

const NAMES = ['all', 'own', 'department', 'department_and_below'] as const

/** A bare name, or a scope with its details. */
const named = z.union([z.enum(NAMES).transform((type): DataScope => ({ type })), schema])

/** For records that people write: mistakes are reported. */
export const dataScopes = z.array(named)

/**
 * Undefined when no scope is given; own rows then apply. An unreadable scope gives no rows, and the other scopes of the
 * same principal still apply.
 *
 * @param ofRole reads the roles of a host system, where the value is a list of roles
 */
export function dataScopeIn(value: unknown, ofRole?: ScopeOfRole): DataScope[] | undefined {
  if (value === undefined || value === null) return undefined
  if (ofRole !== undefined) return Array.isArray(value) ? value.flatMap(ofRole) : undefined
  const list: unknown[] = typeof value === 'string' ? value.split(/[\s,]+/) : Array.isArray(value) ? value : [value]
  return list.flatMap((it) => {
    const parsed = named.safeParse(it)
    return parsed.success ? [parsed.data] : []
  })
}

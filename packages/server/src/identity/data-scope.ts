// Which rows somebody may see, read out of what an issuer, a host system or a record of a key says.
import type { DataScope } from '@oxbow/core'
import { dataScope as schema } from '@oxbow/core/schema'
import { z } from 'zod'
import type { ScopeOfRole } from '../config/introspection-presets.ts'

const NAMES = ['all', 'own', 'department', 'department_and_below'] as const

/** A name alone, or a scope with its details. */
const named = z.union([z.enum(NAMES).transform((type): DataScope => ({ type })), schema])

/** Of a record that people write: what is wrong is told. */
export const dataScopes = z.array(named)

/**
 * Undefined where nothing is said; then it is own rows. What cannot be read gives no rows: of a person with several
 * scopes the others still hold.
 *
 * @param ofRole reads the roles of a host system, where the value is a list of them
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

// Rights of a moment that is long ago, and rights of now: what is in both.
import type { DataScope, Principal } from '@oxbow/core'
import { grants } from '@oxbow/core/internal'

const OWN: readonly DataScope[] = [{ type: 'own' }]

/**
 * Who began something, with what of it they may still do: never more than they began with, however much they, or another
 * credential of theirs, may do by now. What cannot be compared is left out.
 *
 * @example narrowed({ user: 'ann', permissions: ['a:*'] }, { user: 'ann', permissions: ['a:read', 'b:read'] }).permissions // ['a:read']
 */
export function narrowed(began: Principal, now: Principal): Principal {
  const { department, roles = [], permissions = [], dataScope = OWN, ...who } = began
  return {
    ...who,
    ...(department !== undefined && department === now.department && { department }),
    roles: roles.filter((it) => now.roles?.includes(it)),
    permissions: inBoth(permissions, now.permissions ?? []),
    dataScope: distinct(dataScope.flatMap((it) => (now.dataScope ?? OWN).flatMap((other) => scopeInBoth(it, other)))),
  }
}

/** Ids that are granted by either list. */
const inBoth = (some: readonly string[], others: readonly string[]): string[] =>
  distinct([...some.filter((it) => grants(others, it)), ...others.filter((it) => grants(some, it))])

/** Rows, for those tools, that both scopes give; none when neither holds the other. */
function scopeInBoth(one: DataScope, other: DataScope): DataScope[] {
  const narrow = coversRows(one, other) ? other : coversRows(other, one) ? one : undefined
  if (narrow === undefined) return []
  const { permissions: _, ...rows } = narrow
  if (one.permissions === undefined && other.permissions === undefined) return [rows]
  const permissions = inBoth(one.permissions ?? other.permissions!, other.permissions ?? one.permissions!)
  return permissions.length === 0 ? [] : [{ ...rows, permissions }]
}

function coversRows(wide: DataScope, narrow: DataScope): boolean {
  if (wide.type === 'all' || rowsOf(wide) === rowsOf(narrow)) return true
  if (wide.type === 'department_and_below' && narrow.type === 'department') return true
  const departments = departmentsOf(wide)
  const fewer = departmentsOf(narrow)
  return (
    wide.type === narrow.type && departments !== undefined && (fewer?.every((it) => departments.includes(it)) ?? false)
  )
}

/** Undefined: only the tool knows them. */
const departmentsOf = (scope: DataScope): readonly string[] | undefined =>
  'departments' in scope ? scope.departments : undefined

const rowsOf = ({ permissions: _, ...rows }: DataScope): string =>
  JSON.stringify(Object.entries(rows).sort(([a], [b]) => (a < b ? -1 : 1)))

const distinct = <T>(list: readonly T[]): T[] => [...new Map(list.map((it) => [JSON.stringify(it), it])).values()]

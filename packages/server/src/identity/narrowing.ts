// The intersection of the rights that a principal had earlier and has now.
import type { DataScope, Principal } from '@oxbow/core'
import { grants } from '@oxbow/core/internal'

const OWN: readonly DataScope[] = [{ type: 'own' }]

/**
 * The principal that started something, with the rights that remain. The result never exceeds the rights at the start,
 * even if the user, or another credential of the same user, has more now. Rights that cannot be compared are dropped.
 *
 * @example narrowed({ user: 'ann', permissions: ['a:*'] }, { user: 'ann', permissions: ['a:read', 'b:read']
 * }).permissions // ['a:read']
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

/** The ids that both lists grant. */
const inBoth = (some: readonly string[], others: readonly string[]): string[] =>
  distinct([...some.filter((it) => grants(others, it)), ...others.filter((it) => grants(some, it))])

/** The rows, for the tools of both scopes, that both scopes give; none when neither contains the other. */
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

/** Undefined: only the tool knows the departments. */
const departmentsOf = (scope: DataScope): readonly string[] | undefined =>
  'departments' in scope ? scope.departments : undefined

const rowsOf = ({ permissions: _, ...rows }: DataScope): string =>
  JSON.stringify(Object.entries(rows).sort(([a], [b]) => (a < b ? -1 : 1)))

const distinct = <T>(list: readonly T[]): T[] => [...new Map(list.map((it) => [JSON.stringify(it), it])).values()]

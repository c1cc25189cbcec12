// Reads a principal from a JSON document of another system.

import { userId } from '@oxbow/core'
import { DEFAULT_TENANT, defined } from '@oxbow/core/internal'
import type { FieldPaths, ScopeOfRole } from '../config/introspection-presets.ts'
import type { KnownPrincipal } from './contract.ts'
import { dataScopeIn } from './data-scope.ts'

/** Reads own properties only. A name that itself contains dots, as in `https://example.com/roles`, wins over a path. */
export function lookup(document: unknown, path: string): unknown {
  if (typeof document !== 'object' || document === null) return undefined
  if (Object.hasOwn(document, path)) return (document as Record<string, unknown>)[path]
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot)
    if (!Object.hasOwn(document, head)) continue
    const found = lookup((document as Record<string, unknown>)[head], path.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

/** `path=value` compares the value; `path` alone only requires one. */
export function holds(document: unknown, condition: string): boolean {
  const at = condition.indexOf('=')
  const found = lookup(document, at === -1 ? condition : condition.slice(0, at))
  if (at === -1) return found !== undefined && found !== null
  if (Array.isArray(found)) return found.some((it) => textOf(it) === condition.slice(at + 1))
  return textOf(found) === condition.slice(at + 1)
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isSafeInteger(value))) return String(value)
  return undefined
}

const listOf = (value: unknown): string[] =>
  typeof value === 'string'
    ? value.split(/[\s,]+/).filter((it) => it !== '')
    : Array.isArray(value)
      ? value.map(textOf).filter((it) => it !== undefined)
      : []

/** Undefined when the document has no user, or no tenant although one is configured. */
export function principalIn(
  document: unknown,
  {
    fields: paths,
    everything,
    scopeOfRole,
  }: { fields: FieldPaths; everything?: string | undefined; scopeOfRole?: ScopeOfRole | undefined },
): KnownPrincipal | undefined {
  const part = (path: string | undefined): string | undefined => {
    const text = path === undefined ? undefined : textOf(lookup(document, path))
    return text === undefined || text.trim() === '' ? undefined : text
  }
  const user = part(paths.user)
  const tenant = part(paths.tenant)
  if (user === undefined || (paths.tenant !== undefined && tenant === undefined)) return undefined
  const department = part(paths.department)
  const permissions = paths.permissions === undefined ? [] : listOf(lookup(document, paths.permissions))
  if (everything !== undefined && permissions.includes(everything)) permissions.push('*')
  const dataScope =
    paths.dataScope === undefined ? undefined : dataScopeIn(lookup(document, paths.dataScope), scopeOfRole)
  return {
    tenant: tenant === undefined ? DEFAULT_TENANT : userId(tenant),
    user: userId(user),
    ...defined({ department }),
    roles: paths.roles === undefined ? [] : listOf(lookup(document, paths.roles)),
    permissions,
    ...defined({ dataScope }),
  }
}

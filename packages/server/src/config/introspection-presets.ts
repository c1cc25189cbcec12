// Presets for the introspection of well-known host systems.
import type { DataScope } from '@oxbow/core'

/** Dotted paths to the parts of a principal. */
export interface FieldPaths {
  readonly user: string
  readonly tenant?: string | undefined
  readonly department?: string | undefined
  readonly roles?: string | undefined
  readonly permissions?: string | undefined
  readonly dataScope?: string | undefined
}

/** The data scopes that one entry of a host's list of roles grants. */
export type ScopeOfRole = (role: unknown) => DataScope[]

export interface IntrospectionPreset {
  readonly headers: readonly string[]
  readonly success: string
  readonly refused: readonly string[]
  readonly fields: FieldPaths
  readonly everything: string
  readonly scopeOfRole: ScopeOfRole
}

/** The departments of a custom scope ("2") are only in the host's own tables: tools look them up by the role. */
const RUOYI_SCOPES: Readonly<Record<string, readonly DataScope['type'][]>> = {
  1: ['all'],
  2: ['custom'],
  3: ['department'],
  4: ['department_and_below'],
  5: ['own'],
  6: ['department_and_below', 'own'],
}

/**
 * {"roleId": 2, "dataScope": "4", "status": "0", "permissions": […] or null}. The scope of a role applies to what the
 * role permits.
 */
function ruoyiScope(role: unknown): DataScope[] {
  if (typeof role !== 'object' || role === null) return []
  const { roleId, dataScope, status, permissions } = role as Record<string, unknown>
  const types = RUOYI_SCOPES[String(dataScope)]
  // A disabled role grants nothing.
  if (types === undefined || String(status ?? '0') !== '0') return []
  const only = Array.isArray(permissions) ? { permissions: permissions.map(String) } : {}
  return types.map(
    (type) => (type === 'custom' ? { type, role: String(roleId), ...only } : { type, ...only }) as DataScope,
  )
}

/**
 * `GET /getInfo`: {"code": 200, "user": {"userName", "deptId", …}, "roles": […], "permissions": […]}. The status is
 * always 200.
 */
const ruoyi: IntrospectionPreset = {
  headers: ['authorization'],
  success: 'code=200',
  refused: ['code=401', 'code=403'],
  fields: {
    user: 'user.userName',
    department: 'user.deptId',
    roles: 'roles',
    permissions: 'permissions',
    dataScope: 'user.roles',
  },
  everything: '*:*:*',
  scopeOfRole: ruoyiScope,
}

/**
 * `GET /system/user/getInfo`: the same fields below `data`, plus a tenant. The host also checks the header `clientid`.
 */
const ruoyiVuePlus: IntrospectionPreset = {
  ...ruoyi,
  headers: ['authorization', 'clientid'],
  fields: {
    user: 'data.user.userName',
    tenant: 'data.user.tenantId',
    department: 'data.user.deptId',
    roles: 'data.roles',
    permissions: 'data.permissions',
    dataScope: 'data.user.roles',
  },
}

export const presets = { ruoyi, 'ruoyi-vue-plus': ruoyiVuePlus }

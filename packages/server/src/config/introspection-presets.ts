// What the introspection of well-known host systems looks like.

/** Dotted paths to the parts of a principal. */
export interface FieldPaths {
  readonly user: string
  readonly tenant?: string | undefined
  readonly department?: string | undefined
  readonly roles?: string | undefined
  readonly permissions?: string | undefined
}

export interface IntrospectionPreset {
  readonly headers: readonly string[]
  readonly success: string
  readonly refused: readonly string[]
  readonly fields: FieldPaths
  readonly everything: string
}

/** `GET /getInfo`: {"code": 200, "user": {"userName", "deptId", …}, "roles": […], "permissions": […]}, always status 200. */
const ruoyi: IntrospectionPreset = {
  headers: ['authorization'],
  success: 'code=200',
  refused: ['code=401', 'code=403'],
  fields: {
    user: 'user.userName',
    department: 'user.deptId',
    roles: 'roles',
    permissions: 'permissions',
  },
  everything: '*:*:*',
}

/** `GET /system/user/getInfo`: the same below `data`, with tenants; the host also checks the header `clientid`. */
const ruoyiVuePlus: IntrospectionPreset = {
  ...ruoyi,
  headers: ['authorization', 'clientid'],
  fields: {
    user: 'data.user.userName',
    tenant: 'data.user.tenantId',
    department: 'data.user.deptId',
    roles: 'data.roles',
    permissions: 'data.permissions',
  },
}

export const presets = { ruoyi, 'ruoyi-vue-plus': ruoyiVuePlus }

import { createApiKey } from '@oxbow/server'

export interface KeyCommand {
  readonly user: string
  readonly tenant?: string
  readonly department?: string
  readonly role: string[]
  readonly permission: string[]
  readonly expires?: string
}

/** Prints a new key, once, and the lines for the configuration that hold only its digest. */
export function create({ user, tenant, department, role, permission, expires }: KeyCommand): void {
  const { key, toml } = createApiKey(
    {
      user,
      roles: role,
      permissions: permission,
      ...(tenant !== undefined && { tenant }),
      ...(department !== undefined && { department }),
      ...(expires !== undefined && { expires }),
    },
    'keys',
  )
  console.error('The key, shown this once. Give it to its user, who sends it as "Authorization: Bearer KEY":\n')
  console.log(key)
  console.error('\nAdd to the file that identity.keysFile names:\n')
  console.error(toml)
}

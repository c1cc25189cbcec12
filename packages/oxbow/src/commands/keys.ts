import { type DataScope, OxbowError } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { createApiKey } from '@oxbow/server'

export interface KeyCommand {
  readonly user: string
  readonly tenant?: string
  readonly department?: string
  readonly role: string[]
  readonly permission: string[]
  readonly dataScope: string[]
  readonly expires?: string
}

/**
 * The key goes to standard output. Its record, which holds only a digest, goes to standard error as an entry of the key
 * file, with notes as comments: `oxbow keys create --user ann 2>> keys.toml`.
 */
export function create({ user, tenant, department, role, permission, dataScope, expires }: KeyCommand): void {
  const { key, toml } = createApiKey(
    {
      user,
      roles: role,
      permissions: permission,
      ...defined({ tenant, department }),
      ...(dataScope.length > 0 && { dataScope: dataScope.map(dataScopeOf) }),
      ...defined({ expires }),
    },
    'keys',
  )
  console.log(key)
  console.error(
    '# The key is printed above and will not be shown again. Send it as "Authorization: Bearer KEY".\n' +
      `# This is its record, for the file named by identity.keysFile.\n${toml}`,
  )
}

const NAMES = ['all', 'own', 'department', 'department_and_below'] as const

function dataScopeOf(text: string): DataScope {
  const departments = /^custom:(.+)$/
    .exec(text)?.[1]
    ?.split(',')
    .map((it) => it.trim())
  if (departments !== undefined) return { type: 'custom', departments }
  const type = NAMES.find((it) => it === text)
  if (type !== undefined) return { type }
  throw new OxbowError(
    'invalid_data_scope',
    `Invalid --data-scope ${JSON.stringify(text)}. Use ${NAMES.join(', ')}, or departments as custom:103,104.`,
  )
}

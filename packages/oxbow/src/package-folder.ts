// Not imported by name: an older Node has no findPackageJSON, and the check of its version comes first.
import nodeModule from 'node:module'
import { dirname, join } from 'node:path'

/** A folder of this package, located through package.json, because the build moves code to other folders. */
export const packageFolder = (name: string): string => join(dirname(nodeModule.findPackageJSON(import.meta.url)!), name)

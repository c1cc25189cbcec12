import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'

/** A folder of this package, located through package.json, because the build moves code to other folders. */
export const packageFolder = (name: string): string => join(dirname(findPackageJSON(import.meta.url)!), name)

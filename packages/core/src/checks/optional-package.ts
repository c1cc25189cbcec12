// Packages that only some programs need are optional peers: they are imported on first use, and the error names what to
// install.
import { OxbowError } from '../errors.ts'

/**
 * Runs `load`, which imports an optional package.
 *
 * @param purpose what needs the package, as the subject of the error: `rowFilter()`
 * @param install what to pass to `npm install`: `@casl/ability@7`
 * @throws OxbowError `package_missing` when the package is not installed; errors inside the package are passed on
 * @example
 * const casl = await optionalPackage(() => import('@casl/ability'), 'rowFilter()', '@casl/ability@7')
 */
export async function optionalPackage<Module>(
  load: () => Promise<Module>,
  purpose: string,
  install: string,
): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new OxbowError('package_missing', `${purpose} needs an optional package. Run: npm install ${install}`, {
      cause,
    })
  }
}

// Models that a definition names, as `openai:gpt-5`. Core knows no provider: the package that does installs how to open
// one.
import { OxbowError } from '../errors.ts'
import type { Model } from '../model.ts'

export type OpenModel = (name: string) => Model

let open: OpenModel | undefined

/**
 * Installs what opens a model by its name. The package `oxbow` calls it when it is imported; a program on `@oxbow/core`
 * alone may call it with its own catalogue.
 *
 * @example openModelsWith((name) => openModel(name, { environment: process.env }))
 */
export function openModelsWith(opener: OpenModel): void {
  open = opener
}

/**
 * The model itself, or the one of this name.
 *
 * @throws OxbowError `model_config` if it is neither, or if nothing that opens models by name is installed
 */
export function modelOf(given: unknown, where: string): Model {
  if (typeof (given as Model | undefined)?.generate === 'function') return given as Model
  if (typeof given !== 'string')
    throw new OxbowError('model_config', `${where} must be a Model or "provider:model": got ${JSON.stringify(given)}.`)
  if (open === undefined)
    throw new OxbowError(
      'model_config',
      `${where}: nothing here opens models by name: got "${given}". Import agent from "oxbow", or pass a Model.`,
    )
  return open(given)
}

// Files as input: bytes and a media type in a block.

import { readFile, stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defined } from '../checks/defined.ts'
import { text } from '../checks/fields.ts'
import { OxbowError } from '../errors.ts'
import type { InputBlock } from '../events/types.ts'
import { checkOption } from './option-fields.ts'

/** Media types that models read, by the ending of the name. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.htm': 'text/html',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.mp3': 'audio/mpeg',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.txt': 'text/plain',
  '.wav': 'audio/wav',
  '.webp': 'image/webp',
}

/** Larger ones are refused: every request to the model sends the file again. In bytes. */
const MAX_FILE_BYTES = 20 * 1024 * 1024

/**
 * A file, from disk or from memory, as part of an input.
 *
 * @param file the path, or the bytes
 * @param options `mediaType` is needed for bytes and for names whose ending is not known. `name` is shown to people and
 *   to the model; default: the name of the file.
 * @throws OxbowError `invalid_option` if the file cannot be read, is larger than 20 MB, or its media type is not known
 * @example await session.run([{ type: 'text', text: 'What is in this picture?' }, await fileBlock('photo.png')])
 */
export async function fileBlock(
  file: string | URL | Uint8Array,
  options: { readonly mediaType?: string; readonly name?: string } = {},
): Promise<InputBlock> {
  checkOption('fileBlock()', options, { mediaType: text, name: text })
  if (!(file instanceof Uint8Array || typeof file === 'string' || (file instanceof URL && file.protocol === 'file:')))
    throw new OxbowError(
      'invalid_option',
      `fileBlock: needs a path, a file: URL or bytes; got ${file instanceof URL ? file.protocol : typeof file}. ` +
        "For an address pass a block: { type: 'data', mediaType, url }.",
    )
  const path = file instanceof Uint8Array ? undefined : file instanceof URL ? fileURLToPath(file) : file
  const name = options.name ?? (path === undefined ? undefined : basename(path))
  const mediaType = options.mediaType ?? MEDIA_TYPES[extname(name ?? '').toLowerCase()]
  const called = name ?? 'the bytes'
  if (mediaType === undefined)
    throw new OxbowError('invalid_option', `fileBlock: the media type of ${called} is not known. Pass mediaType.`)
  const size = file instanceof Uint8Array ? file.byteLength : (await readable(file, () => stat(file))).size
  if (size > MAX_FILE_BYTES)
    throw new OxbowError(
      'invalid_option',
      `fileBlock: ${called} has ${size} bytes; at most ${MAX_FILE_BYTES} are accepted. Pass it to a tool instead.`,
    )
  const bytes = file instanceof Uint8Array ? file : await readable(file, () => readFile(file))
  return {
    type: 'data',
    mediaType,
    data: Buffer.from(bytes).toString('base64'),
    ...defined({ name }),
  }
}

async function readable<T>(file: string | URL, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    throw new OxbowError('invalid_option', `fileBlock: ${String(file)} cannot be read: ${(cause as Error).message}`, {
      cause,
    })
  }
}

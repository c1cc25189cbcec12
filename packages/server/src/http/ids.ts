// Converts arbitrary strings to ids of sessions, turns and users.
import { hash } from 'node:crypto'
import { isId } from '@oxbow/core/internal'

const HASHED = /^id-[0-9a-f]{40}$/

/**
 * Returns the string itself if it is a valid id, otherwise `id-` and a hash. A string that looks like such a hash is
 * hashed too, so that nobody can choose the id of another string.
 */
export const idOf = (text: string): string => (isId(text) && !HASHED.test(text) ? text : `id-${digest(text)}`)

// JSON keeps the code of a lone surrogate; in UTF-8 all lone surrogates become the same character.
const digest = (text: string): string => hash('sha256', text.isWellFormed() ? text : JSON.stringify(text)).slice(0, 40)

/** Like `idOf`, for a string that may be missing or blank. */
export const toId = (text: string | undefined): string | undefined =>
  text === undefined || text.trim() === '' ? undefined : idOf(text)

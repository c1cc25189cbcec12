// Texts from outside as ids of sessions, turns and users.
import { hash } from 'node:crypto'
import { isId } from '@oxbow/core/internal'

const HASHED = /^id-[0-9a-f]{40}$/

/**
 * Any text as an id: itself where it is one, else `id-` and a hash. A text that looks like such a hash is hashed too, so that
 * no name can be chosen that belongs to another text.
 */
export const idOf = (text: string): string => (isId(text) && !HASHED.test(text) ? text : `id-${digest(text)}`)

// As JSON, half a pair of surrogates keeps its number; as UTF-8, all of them are the same character.
const digest = (text: string): string => hash('sha256', text.isWellFormed() ? text : JSON.stringify(text)).slice(0, 40)

/** The same for a text that may be missing or blank. */
export const toId = (text: string | undefined): string | undefined =>
  text === undefined || text.trim() === '' ? undefined : idOf(text)

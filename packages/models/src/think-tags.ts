// Reasoning that a model writes into its answer between <think> and </think>.
import type { Quirks } from './quirks.ts'

export interface ThinkTagFilter {
  push(text: string): void
  /** Gives out what was held back because it could have been the beginning of a tag. */
  end(): void
  /** What the text so far turned out to be, when it was given out as the other: see `thinkTagFilter`. */
  readonly turnedOut: 'thinking' | 'text' | undefined
}

const opening = '<think>'
const closing = '</think>'

/**
 * Sorts the fragments of an answer into text and thinking. Live fragments cannot be taken back, so two late findings are
 * told by `turnedOut`: a closing tag without an opening one (the text before it was thinking), and, in `implied` mode,
 * an answer that never closed (it was text).
 */
export function thinkTagFilter(
  mode: NonNullable<Quirks['thinkTags']>,
  emit: (type: 'text' | 'thinking', text: string) => void,
): ThinkTagFilter {
  let state: 'start' | 'thinking' | 'after' | 'text' = 'start'
  let explicit = false
  let closed = false
  let turnedOut: 'thinking' | 'text' | undefined
  let held = ''

  const step = (final: boolean): boolean => {
    if (state === 'start') {
      const text = held.trimStart()
      if (text.startsWith(opening)) {
        held = text.slice(opening.length).trimStart()
        explicit = true
        state = 'thinking'
      } else if (!final && opening.startsWith(text)) return false
      else state = mode === 'implied' ? 'thinking' : 'text'
      return true
    }
    if (state === 'after') {
      held = held.trimStart()
      if (held !== '') state = 'text'
      return held !== ''
    }
    if (state === 'text' && (explicit || closed)) {
      if (held !== '') emit('text', held)
      held = ''
      return false
    }
    const type = state
    const at = held.indexOf(closing)
    const keep = at === -1 ? held.length - (final ? 0 : overlap(held)) : at
    if (keep > 0) emit(type, held.slice(0, keep))
    held = held.slice(keep)
    if (at === -1) return false
    held = held.slice(closing.length)
    if (type === 'text') turnedOut = 'thinking'
    closed = true
    state = 'after'
    return true
  }

  return {
    push(text) {
      held += text
      while (step(false)) {}
    },
    end() {
      while (step(true)) {}
      if (mode === 'implied' && !explicit && !closed) turnedOut = 'text'
    },
    get turnedOut() {
      return turnedOut
    },
  }
}

/** How many characters at the end could be the beginning of the closing tag. */
function overlap(text: string): number {
  for (let size = Math.min(text.length, closing.length - 1); size > 0; size--) {
    if (closing.startsWith(text.slice(-size))) return size
  }
  return 0
}

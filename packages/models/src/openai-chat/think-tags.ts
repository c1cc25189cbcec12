// Reasoning that a model writes into its answer between <think> and </think>.
import type { Quirks } from './quirks.ts'

export interface ThinkTagFilter {
  push(text: string): void
  /**
   * Emits text that was held back because it could have been the beginning of a tag. `whole`: the answer was not cut.
   */
  end(whole: boolean): void
}

const opening = '<think>'
const closing = '</think>'

/**
 * Sorts the fragments of an answer into text and thinking. Emitted fragments cannot be taken back, so `turnedOut` holds
 * what they really were: a closing tag without an opening one means that the text before it was thinking, and in
 * `implied` mode a whole answer without any tag was text.
 */
export function thinkTagFilter(
  mode: NonNullable<Quirks['thinkTags']>,
  emit: (type: 'text' | 'thinking', text: string) => void,
  turnedOut: (type: 'text' | 'thinking') => void,
): ThinkTagFilter {
  /** `answer` is text after the reasoning has closed: tags in it have no meaning. */
  let state: 'start' | 'thinking' | 'text' | 'answer' = 'start'
  let opened = false
  /** White space around the tags belongs to them. */
  let skipSpace = false
  let held = ''

  /** Advances one step; false when more text is needed. */
  const step = (final: boolean): boolean => {
    if (skipSpace) {
      held = held.trimStart()
      if (held === '') return false
      skipSpace = false
    }
    if (state === 'start') {
      const text = held.trimStart()
      if (!text.startsWith(opening) && !final && opening.startsWith(text)) return false
      opened = text.startsWith(opening)
      if (opened) {
        held = text.slice(opening.length)
        skipSpace = true
      }
      state = opened || mode === 'implied' ? 'thinking' : 'text'
      return true
    }
    const at = state === 'answer' ? -1 : held.indexOf(closing)
    const kept = at !== -1 ? at : held.length - (final || state === 'answer' ? 0 : overlap(held))
    if (kept > 0) emit(state === 'thinking' ? 'thinking' : 'text', held.slice(0, kept))
    held = held.slice(kept)
    if (at === -1) return false
    if (state === 'text') turnedOut('thinking')
    held = held.slice(closing.length)
    skipSpace = true
    state = 'answer'
    return true
  }

  return {
    push(text) {
      held += text
      while (step(false)) {}
    },
    end(whole) {
      while (step(true)) {}
      if (whole && mode === 'implied' && !opened && state === 'thinking') turnedOut('text')
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

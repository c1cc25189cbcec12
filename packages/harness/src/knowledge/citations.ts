// Checks that an answer cites only retrieved passages.
import type { Reviewer, Slots } from '@oxbow/core'
import { checkCitations } from '@oxbow/knowledge'

/** `retrieved` returns the ids that the searches of one session found. */
export const citationsReviewer =
  (retrieved: (slots: Slots) => readonly string[]): Reviewer =>
  ({ text, slots, below }) => {
    // Passages named by other agents do not count, only those that they retrieved.
    const known = [slots, ...below].flatMap(retrieved)
    const items = [...new Set(checkCitations(text, known).flatMap((it) => (it.known ? [] : [it.id])))]
    if (items.length === 0) return undefined
    const list = items.map((it) => `[${it}]`).join(', ')
    return {
      code: 'citation_unknown',
      message: `The answer cites passages that were not retrieved in this conversation: ${list}.`,
      items,
      correction:
        `Your answer cites ${list}, which was not retrieved in this conversation. Retrieve it, cite what was retrieved, or ` +
        'leave out what you cannot support. Give the whole answer again.',
    }
  }

// Whether an answer cites only what was retrieved.
import type { Message, Reviewer, Slots } from '@oxbow/core'
import { checkCitations } from '@oxbow/knowledge'

/** Results of other agents; what they cite they have retrieved, or it would have been refused. */
const HANDED_OVER = new Set(['agent_spawn', 'agent_send', 'task_output'])

/** `retrieved` tells the ids of the session's own searches. */
export const citationsReviewer =
  (retrieved: (slots: Slots) => readonly string[]): Reviewer =>
  ({ text, slots, messages }) => {
    const unknown = unknownIn(text, retrieved(slots))
    if (unknown.length === 0) return undefined
    const items = unknownIn(text, [...retrieved(slots), ...messages.flatMap(handedOver)])
    if (items.length === 0) return undefined
    const list = items.map((it) => `[${it}]`).join(', ')
    return {
      code: 'citation_unknown',
      message: `The answer cites what was not retrieved in this conversation: ${list}.`,
      items,
      correction:
        `Your answer cites ${list}, which was not retrieved in this conversation. Retrieve it, cite what was retrieved, or ` +
        'leave out what you cannot support. Give the whole answer again.',
    }
  }

const unknownIn = (text: string, known: readonly string[]): string[] => [
  ...new Set(checkCitations(text, known).flatMap((it) => (it.known ? [] : [it.id]))),
]

/** What other agents have cited in their results, which come with a call or, from the background, as messages. */
function handedOver({ id, role, blocks }: Message): string[] {
  const texts = blocks.flatMap((block) => {
    if (block.type === 'result' && HANDED_OVER.has(block.tool)) return block.content
    return block.type === 'text' && role === 'user' && id.endsWith('.result') ? [block] : []
  })
  return texts.flatMap((it) => (it.type === 'text' ? checkCitations(it.text, []).map((found) => found.id) : []))
}

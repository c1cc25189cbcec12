// The text of a turn as it streams, from its fragments and events.
import { textOf } from '../events/blocks.ts'
import type { SessionItem } from '../events/types.ts'

/**
 * Yields the text of every answer of the turn, each part once: a fragment that is streamed again after a restart of its
 * step is passed over, and what a slow reader has missed follows when the answer is stored.
 */
export async function* textStream(items: AsyncIterable<SessionItem>): AsyncGenerator<string, void> {
  let step = 0
  /** The text of this step that was yielded so far, by block. */
  let blocks = new Map<number, string>()
  for await (const item of items) {
    if (item.type !== 'text.delta' && item.type !== 'model.finished') continue
    if (item.step !== step) {
      step = item.step
      blocks = new Map()
    }
    const shown = [...blocks].toSorted(([one], [other]) => one - other).map(([, text]) => text)
    if (item.type === 'model.finished') {
      const whole = textOf(item.message.blocks)
      if (whole.startsWith(shown.join('')) && whole.length > shown.join('').length)
        yield whole.slice(shown.join('').length)
      continue
    }
    const known = blocks.get(item.block) ?? ''
    const fresh = item.offset > known.length ? '' : item.text.slice(known.length - item.offset)
    if (fresh === '') continue
    blocks.set(item.block, known + fresh)
    yield fresh
  }
}

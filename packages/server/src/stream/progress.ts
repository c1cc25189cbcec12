// How much of the answer that is being written a reader has received, block by block.
import { isEvent, type SessionItem } from '@oxbow/core'

export interface BlockProgress {
  readonly kind: 'text' | 'thinking' | 'call'
  /** Empty unless `kind` is `call`. */
  readonly callId: string
  readonly tool: string
  /** UTF-16 units of its text, or of the arguments of a call. */
  readonly length: number
}

/** By number of the block, in the order in which the blocks began. */
export type Progress = ReadonlyMap<number, BlockProgress>

export const noProgress: Progress = new Map()

/** A new answer begins, or the current one is complete: what had been received of it no longer matters. */
export const endsAnswer = (item: SessionItem): boolean =>
  item.type === 'step.started' || item.type === 'turn.claimed' || item.type === 'model.finished'

/** `progress` after these items of one turn. */
export function progressAfter(progress: Progress, items: readonly SessionItem[]): Progress {
  const blocks = new Map(progress)
  for (const item of items) {
    if (endsAnswer(item)) blocks.clear()
    if (isEvent(item) || item.type === 'progress.delta' || item.type === 'child.delta') continue
    if (item.type === 'call.delta') {
      if (!blocks.has(item.block))
        blocks.set(item.block, { kind: 'call', callId: item.callId, tool: item.tool, length: 0 })
      continue
    }
    const kind = item.type === 'text.delta' ? 'text' : item.type === 'thinking.delta' ? 'thinking' : 'call'
    const known = blocks.get(item.block) ?? { kind, callId: '', tool: '', length: 0 }
    const end = item.offset + item.text.length
    if (item.offset <= known.length && end > known.length) blocks.set(item.block, { ...known, length: end })
  }
  return blocks
}

// How much of the current answer a reader has received, block by block.
import { type Block, type Event, isEvent, type SessionItem } from '@oxbow/core'

export interface BlockProgress {
  readonly kind: 'text' | 'thinking' | 'call'
  /** Empty unless `kind` is `call`. */
  readonly callId: string
  readonly tool: string
  /** UTF-16 units of the text, or of a call's arguments. */
  readonly length: number
}

/** By block number, in the order in which the blocks began. */
export type Progress = ReadonlyMap<number, BlockProgress>

export const noProgress: Progress = new Map()

/** A new answer begins, or the current one is complete: its progress no longer matters. */
export const endsAnswer = (item: SessionItem): boolean =>
  item.type === 'step.started' || item.type === 'turn.claimed' || item.type === 'model.finished'

/** `progress` after these items of one turn. */
export function progressAfter(progress: Progress, items: readonly SessionItem[]): Progress {
  const blocks = new Map(progress)
  for (const item of items) note(blocks, item)
  return blocks
}

function note(blocks: Map<number, BlockProgress>, item: SessionItem): void {
  if (endsAnswer(item)) blocks.clear()
  if (isEvent(item) || item.type === 'progress.delta' || item.type === 'child.delta') return
  if (item.type === 'call.delta') {
    if (!blocks.has(item.block))
      blocks.set(item.block, { kind: 'call', callId: item.callId, tool: item.tool, length: 0 })
    return
  }
  const kind = item.type === 'text.delta' ? 'text' : item.type === 'thinking.delta' ? 'thinking' : 'call'
  const known = blocks.get(item.block) ?? { kind, callId: '', tool: '', length: 0 }
  const end = item.offset + item.text.length
  if (item.offset <= known.length && end > known.length) blocks.set(item.block, { ...known, length: end })
}

/** The maximum size of a text in one frame, in UTF-16 units. */
const PART = 65_536

/**
 * Splits long texts so that a slow reader gets one part at a time: a long fragment becomes several, and a complete
 * answer is preceded by fragments. Expects all items of one turn in order.
 *
 * @param progress what the reader already has of the current answer
 */
export function parts(progress: Progress = noProgress): (item: SessionItem) => Iterable<SessionItem> {
  const blocks = new Map(progress)
  return (item) => {
    const divided =
      item.type === 'model.finished' ? partsOfAnswer(item, blocks) : 'offset' in item ? partsOfFragment(item) : [item]
    note(blocks, item)
    return divided
  }
}

type Fragment = Extract<SessionItem, { offset: number }>

function* cut(text: string): Generator<{ readonly offset: number; readonly text: string }, void> {
  for (let at = 0; at < text.length; ) {
    const end = at + PART
    // Keeps surrogate pairs together.
    const isPair = /[\uD800-\uDBFF]/.test(text.charAt(end - 1))
    const part = text.slice(at, isPair ? end - 1 : end)
    yield { offset: at, text: part }
    at += part.length
  }
}

function* partsOfFragment(item: Fragment): Generator<SessionItem, void> {
  if (item.text.length <= PART) yield item
  else for (const part of cut(item.text)) yield { ...item, offset: item.offset + part.offset, text: part.text }
}

function partsOfAnswer(event: Event<'model.finished'>, had: Progress): Iterable<SessionItem> {
  const isLong = event.message.blocks.some((it) => 'text' in it && it.text !== undefined && it.text.length > PART)
  return isLong ? answerInParts(event, new Map(had)) : [event]
}

function* answerInParts(event: Event<'model.finished'>, had: Progress): Generator<SessionItem, void> {
  const { turnId, step, message } = event
  for (const [block, { type, ...rest }] of message.blocks.entries()) {
    if (type !== 'text' && type !== 'thinking') continue
    // In an incomplete answer the block numbers have moved, so the event alone carries the text.
    if (had.size > 0 && had.get(block)?.kind !== type) continue
    const { text } = rest as Extract<Block, { type: 'text' }>
    for (const part of cut(text)) yield { type: `${type}.delta`, turnId, step, block, ...part }
  }
  yield event
}

// The answer that is being streamed: turns a model's fragments into deltas, and keeps them for who joins late.
import type { Block, Delta, SessionItem } from '../events/types.ts'
import type { ModelDelta } from '../model.ts'
import type { SessionKey } from '../ports.ts'
import { callIds } from './ids.ts'

interface LiveBlock {
  readonly type: 'text' | 'thinking' | 'call'
  readonly callId: string
  readonly tool: string
  readonly parts: string[]
  length: number
}

export interface LiveStep {
  readonly turnId: string
  readonly step: number
  push(delta: ModelDelta): Delta
  /**
   * Adds a delta of this step that another process has made, and returns what is new of it, if anything is. `gap`: what
   * comes before it is missing, and it was not added.
   */
  merge(delta: BlockDelta): BlockDelta | 'gap' | undefined
  /** The step so far, each block in one fragment, without `held`: fragments that readers will get later. */
  soFar(held?: readonly SessionItem[]): Delta[]
  /** The text and the thinking so far: what people have seen of an answer that does not come to its end. */
  blocks(): Block[]
}

export function liveStep(key: SessionKey, turnId: string, step: number): LiveStep {
  const blocks: LiveBlock[] = []
  let calls = 0

  const nextCallId = (): string => callIds(key, turnId, step, calls++).callId
  const open = (index: number, type: LiveBlock['type'], callId = '', tool = ''): LiveBlock => {
    const block: LiveBlock = { type, callId, tool, parts: [], length: 0 }
    blocks[index] = block
    return block
  }

  return {
    turnId,
    step,
    push(delta) {
      if (delta.type === 'call') {
        const callId = nextCallId()
        open(delta.block, 'call', callId, delta.tool)
        return { type: 'call.delta', turnId, step, block: delta.block, callId, tool: delta.tool }
      }
      const type = delta.type === 'arguments' ? 'call' : delta.type
      const block = blocks[delta.block] ?? open(delta.block, type, type === 'call' ? nextCallId() : '')
      const fragment = fragmentOf(block, turnId, step, delta.block, block.length, delta.text)
      block.parts.push(delta.text)
      block.length += delta.text.length
      return fragment
    },
    merge(delta) {
      const known = blocks[delta.block]
      if (delta.type === 'call.delta') {
        if (known === undefined) open(delta.block, 'call', delta.callId, delta.tool)
        return known === undefined ? delta : undefined
      }
      const length = known?.length ?? 0
      if (delta.offset > length || (delta.type === 'arguments.delta' && known === undefined)) return 'gap'
      const text = delta.text.slice(length - delta.offset)
      if (text === '') return undefined
      const block = known ?? open(delta.block, delta.type === 'text.delta' ? 'text' : 'thinking')
      block.parts.push(text)
      block.length += text.length
      return { ...delta, offset: length, text }
    },
    soFar(held = []) {
      return blocks.flatMap((block, index): Delta[] => {
        // `blocks` may have holes: a driver opens blocks in any order.
        if (block === undefined) return []
        const first = held.find((it) => isDeltaOf(it, turnId, step, index))
        if (first?.type === 'call.delta') return []
        const text = block.parts.join('').slice(0, first?.offset)
        const fragment = fragmentOf(block, turnId, step, index, 0, text)
        if (block.type !== 'call') return text === '' ? [] : [fragment]
        const { callId, tool } = block
        const opened: Delta = { type: 'call.delta', turnId, step, block: index, callId, tool }
        return text === '' ? [opened] : [opened, fragment]
      })
    },
    blocks: () =>
      blocks.flatMap((block): Block[] =>
        block === undefined || block.type === 'call' ? [] : [{ type: block.type, text: block.parts.join('') }],
      ),
  }
}

/** A fragment of the model's answer. */
export type BlockDelta = Extract<Delta, { block: number }>

const isDeltaOf = (item: SessionItem, turnId: string, step: number, block: number): item is BlockDelta =>
  'block' in item && item.turnId === turnId && item.step === step && item.block === block

function fragmentOf(
  block: LiveBlock,
  turnId: string,
  step: number,
  index: number,
  offset: number,
  text: string,
): Delta {
  if (block.type === 'text') return { type: 'text.delta', turnId, step, block: index, offset, text }
  if (block.type === 'thinking') return { type: 'thinking.delta', turnId, step, block: index, offset, text }
  return { type: 'arguments.delta', turnId, step, block: index, callId: block.callId, offset, text }
}

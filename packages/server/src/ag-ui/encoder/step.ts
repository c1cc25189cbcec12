// Encodes the answer of one step: which messages, reasoning blocks and calls are open, and how much of each was sent.
import type { Block, Delta } from '@oxbow/core'
import type { Progress } from '../../stream/progress.ts'
import type { FrameWriter } from './frames.ts'

type Kind = 'text' | 'thinking' | 'call'

interface Streamed {
  readonly kind: Kind
  readonly callId: string
  /** UTF-16 units of the block that have been sent. */
  sent: number
  /** The open message or call on the wire. */
  open: { readonly id: string; readonly prefix: string } | undefined
}

export interface StepEncoder {
  readonly step: number
  /** The wire id of a call. */
  wireId(callId: string): string
  delta(delta: Exclude<Delta, { type: 'progress.delta' | 'child.delta' }>): void
  /** Records what a reader has of this step; encoding continues from there. */
  had(progress: Progress): void
  /** Sends the rest of each block and closes everything. */
  finish(blocks: readonly Block[]): void
  /** Closes the open blocks without completing them. */
  abandon(): void
}

/**
 * @param suffix distinguishes the ids of a repeated step from those of the first attempt; otherwise empty
 * @param onRepair called when the reader missed fragments that are sent now
 */
export function stepEncoder(
  out: FrameWriter,
  turnId: string,
  step: number,
  suffix: string,
  onRepair: () => void,
): StepEncoder {
  const base = `${turnId}:${step}${suffix}`
  // May have holes: drivers open blocks in any order.
  const streamed: (Streamed | undefined)[] = []
  const counts = { text: 0, thinking: 0 }
  /** The open text or reasoning block: at most one, so that a reader gets them one after the other. */
  let writing: Streamed | undefined

  const wireId = (callId: string): string => `${callId}${suffix}`

  function close(block: Streamed): void {
    if (block.open === undefined) return
    const { id } = block.open
    block.open = undefined
    if (writing === block) writing = undefined
    if (block.kind === 'call') out.frame({ type: 'TOOL_CALL_END', toolCallId: id })
    else if (block.kind === 'text') out.frame({ type: 'TEXT_MESSAGE_END', messageId: id })
    else {
      out.frame({ type: 'REASONING_MESSAGE_END', messageId: id })
      out.frame({ type: 'REASONING_END', messageId: id })
    }
  }

  function open(block: Streamed, tool = ''): NonNullable<Streamed['open']> {
    if (writing !== undefined) close(writing)
    const opened = begin(block, tool)
    block.open = opened
    if (block.kind !== 'call') writing = block
    return opened
  }

  function begin({ kind, callId }: Streamed, tool: string): NonNullable<Streamed['open']> {
    if (kind === 'call') {
      const id = wireId(callId)
      out.frame({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: tool, parentMessageId: base })
      return { id, prefix: `{"type":"TOOL_CALL_ARGS","toolCallId":${JSON.stringify(id)},"delta":` }
    }
    const number = ++counts[kind]
    // The first text block has the id of the stored message.
    const id = `${base}${kind === 'thinking' ? '.thinking' : ''}${number === 1 ? '' : `.${number}`}`
    const quoted = JSON.stringify(id)
    if (kind === 'text') {
      out.frame({ type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' })
      return { id, prefix: `{"type":"TEXT_MESSAGE_CONTENT","messageId":${quoted},"delta":` }
    }
    out.frame({ type: 'REASONING_START', messageId: id })
    out.frame({ type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning' })
    return { id, prefix: `{"type":"REASONING_MESSAGE_CONTENT","messageId":${quoted},"delta":` }
  }

  function send(block: Streamed, text: string): void {
    if (text === '') return
    const { prefix } = block.open ?? open(block)
    out.fragment(prefix, text)
    block.sent += text.length
  }

  /** The new part of a fragment; undefined when something before it is missing. */
  function fresh(block: Streamed, offset: number, text: string): string | undefined {
    if (offset > block.sent) return undefined
    if (offset === block.sent) return text
    // A reader that fell behind got the earlier part of the step in one piece.
    if (block.sent > 0 && offset + text.length > block.sent) onRepair()
    return text.slice(block.sent - offset)
  }

  return {
    step,
    wireId,
    delta(delta) {
      const known = streamed[delta.block]
      if (delta.type === 'call.delta') {
        if (streamed.some((it) => it !== undefined && (it === known || it.callId === delta.callId))) return
        const block: Streamed = { kind: 'call', callId: delta.callId, sent: 0, open: undefined }
        streamed[delta.block] = block
        open(block, delta.tool)
        return
      }
      const kind = delta.type === 'text.delta' ? 'text' : delta.type === 'thinking.delta' ? 'thinking' : 'call'
      if (known === undefined && kind === 'call') return
      const block = known ?? { kind, callId: '', sent: 0, open: undefined }
      if (block.kind !== kind) return
      const text = fresh(block, delta.offset, delta.text)
      if (text === undefined) return
      streamed[delta.block] = block
      send(block, text)
    },
    had(progress) {
      for (const [number, { kind, callId, tool, length }] of progress) {
        const block: Streamed = { kind, callId, sent: 0, open: undefined }
        streamed[number] = block
        open(block, tool)
        block.sent = length
      }
    },
    finish(blocks) {
      // Match blocks by kind and order: an incomplete answer has lost its calls, so the block numbers have moved.
      const left = streamed.filter((it) => it !== undefined)
      for (const block of blocks) {
        if (block.type !== 'text' && block.type !== 'thinking' && block.type !== 'call') continue
        const at = left.findIndex(
          (it) => it.kind === block.type && (block.type !== 'call' || it.callId === block.callId),
        )
        const [found] = at === -1 ? [] : left.splice(at, 1)
        const text = block.type === 'call' ? block.arguments : block.text
        const shown = found ?? {
          kind: block.type,
          callId: block.type === 'call' ? block.callId : '',
          sent: 0,
          open: undefined,
        }
        if (block.type === 'call' && found === undefined) open(shown, block.tool)
        if (shown.sent > 0 && shown.sent < text.length) onRepair()
        send(shown, text.slice(shown.sent))
        close(shown)
      }
      for (const it of left) close(it)
    },
    abandon() {
      for (const it of streamed) if (it !== undefined) close(it)
    },
  }
}

// The UI message stream of the AI SDK, translated from AG-UI frames one by one, so the order of chunks is valid too.
import type { AgUiFrame as Frame } from '../ag-ui/encoder/frames.ts'

/** A chunk that `useChat` of the AI SDK reads. */
export type UiChunk = { readonly type: string } & Readonly<Record<string, unknown>>

/** Translates the frames of one run, in order. */
export function uiMessages(messageId: string): (frame: Frame) => UiChunk[] {
  const calls = new Map<string, { tool: string; args: string }>()
  let inStep = false

  const ended = (last: UiChunk): UiChunk[] => [...(inStep ? [{ type: 'finish-step' }] : []), last]

  return (frame) => {
    switch (frame.type) {
      case 'RUN_STARTED':
        inStep = true
        return [{ type: 'start', messageId }, { type: 'start-step' }]
      case 'TEXT_MESSAGE_START':
        return [{ type: 'text-start', id: frame.messageId }]
      case 'TEXT_MESSAGE_CONTENT':
        return [{ type: 'text-delta', id: frame.messageId, delta: frame.delta }]
      case 'TEXT_MESSAGE_END':
        return [{ type: 'text-end', id: frame.messageId }]
      case 'REASONING_MESSAGE_START':
        return [{ type: 'reasoning-start', id: frame.messageId }]
      case 'REASONING_MESSAGE_CONTENT':
        return [{ type: 'reasoning-delta', id: frame.messageId, delta: frame.delta }]
      case 'REASONING_MESSAGE_END':
        return [{ type: 'reasoning-end', id: frame.messageId }]
      case 'TOOL_CALL_START': {
        const { toolCallId, toolCallName: toolName } = frame
        calls.set(toolCallId, { tool: toolName, args: '' })
        return [{ type: 'tool-input-start', toolCallId, toolName, dynamic: true }]
      }
      case 'TOOL_CALL_ARGS': {
        const call = calls.get(frame.toolCallId)
        if (call !== undefined) call.args += frame.delta
        return [{ type: 'tool-input-delta', toolCallId: frame.toolCallId, inputTextDelta: frame.delta }]
      }
      case 'TOOL_CALL_END': {
        const { toolCallId } = frame
        const { tool: toolName = '', args = '' } = calls.get(toolCallId) ?? {}
        const facts = { toolCallId, toolName, dynamic: true }
        try {
          return [{ type: 'tool-input-available', ...facts, input: args.trim() === '' ? {} : JSON.parse(args) }]
        } catch {
          const errorText = 'The arguments are not valid JSON.'
          return [{ type: 'tool-input-error', ...facts, input: args, errorText }]
        }
      }
      case 'TOOL_CALL_RESULT': {
        const { toolCallId, content } = frame
        const { status } = (frame as { metadata?: { status?: string } }).metadata ?? {}
        if (status === 'success') return [{ type: 'tool-output-available', toolCallId, output: content, dynamic: true }]
        if (status === 'denied') return [{ type: 'tool-output-denied', toolCallId }]
        return [{ type: 'tool-output-error', toolCallId, errorText: String(content), dynamic: true }]
      }
      case 'RUN_FINISHED': {
        const { outcome } = frame
        const asks =
          outcome?.type === 'interrupt'
            ? outcome.interrupts.map(({ id, toolCallId }) => ({
                type: 'tool-approval-request',
                approvalId: id,
                toolCallId,
              }))
            : []
        return [...asks, ...ended({ type: 'finish' })]
      }
      case 'RUN_ERROR':
        return ended({ type: 'error', errorText: frame.message })
      default:
        return []
    }
  }
}

/** The input in the body of a `useChat` request. */
export interface UiInput {
  /**
   * The text of the last user message. Everything else in the body is untrusted: the session stores the conversation.
   */
  readonly text: string | undefined
  /** Decisions on approvals, from the last assistant message. */
  readonly decisions: readonly { readonly approvalId: string; readonly approved: boolean }[]
}

/**
 * Reads the body of a `useChat` request.
 *
 * @example
 * const { text, decisions } = uiInput(await request.json())
 */
export function uiInput(body: unknown): UiInput {
  const messages = listIn(body, 'messages')
  const last = messages.at(-1)
  const parts = listIn(last, 'parts').filter((it) => typeof it === 'object' && it !== null) as Record<string, unknown>[]
  const role = (last as { role?: unknown } | undefined)?.role
  if (role === 'user') {
    const text = parts
      .flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
      .join('\n')
    return { text, decisions: [] }
  }
  const decisions = parts.flatMap(({ state, approval }) => {
    const { id, approved } = (approval ?? {}) as { id?: unknown; approved?: unknown }
    return state === 'approval-responded' && typeof id === 'string' && typeof approved === 'boolean'
      ? [{ approvalId: id, approved }]
      : []
  })
  return { text: undefined, decisions }
}

function listIn(value: unknown, name: string): unknown[] {
  const found = (value as Record<string, unknown> | null | undefined)?.[name]
  return Array.isArray(found) ? found : []
}

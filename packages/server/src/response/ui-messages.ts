// The UI message stream of the AI SDK, translated from AG-UI frames one by one, so the order of chunks is valid too.
import { type InputBlock, OxbowError } from '@oxbow/core'
import { defined, isObject } from '@oxbow/core/internal'
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

/** What is new in the body of a `useChat` request. Everything else in it is untrusted: the session keeps the rest. */
export interface UiInput {
  /** The text and the files of the last message, if a user wrote it; empty otherwise. */
  readonly input: readonly InputBlock[]
  /** Decisions on approvals, from the last message, if it is an assistant's. */
  readonly decisions: readonly { readonly approvalId: string; readonly approved: boolean }[]
}

/**
 * Reads the body of a `useChat` request.
 *
 * @throws OxbowError `invalid_option` for a file that is not in the body: links are not followed
 * @example
 * const { input, decisions } = uiInput(await request.json())
 */
export function uiInput(body: unknown): UiInput {
  const last = listIn(body, 'messages').at(-1)
  const parts = listIn(last, 'parts').filter(isObject)
  if (isObject(last) && last.role === 'user') return { input: parts.flatMap(blocksOf), decisions: [] }
  const decisions = parts.flatMap(({ state, approval }) => {
    const { id, approved } = isObject(approval) ? approval : {}
    return state === 'approval-responded' && typeof id === 'string' && typeof approved === 'boolean'
      ? [{ approvalId: id, approved }]
      : []
  })
  return { input: [], decisions }
}

const DATA_URL = /^data:([^;,]+)(?:;[^;,]+)*;base64,([A-Za-z0-9+/=_-]*)$/

function blocksOf({ type, text, url, mediaType, filename }: Record<string, unknown>): InputBlock[] {
  if (type === 'text' && typeof text === 'string') return text.trim() === '' ? [] : [{ type: 'text', text }]
  if (type !== 'file') return []
  const [, declared, data] = DATA_URL.exec(typeof url === 'string' ? url : '') ?? []
  const name = typeof filename === 'string' ? filename : undefined
  if (declared === undefined || data === undefined)
    throw new OxbowError(
      'invalid_option',
      `uiInput(): the file ${JSON.stringify(name ?? '').slice(0, 100)} must be a data URL in Base64. Links are not followed.`,
    )
  return [{ type: 'data', mediaType: typeof mediaType === 'string' ? mediaType : declared, data, ...defined({ name }) }]
}

const listIn = (value: unknown, name: string): unknown[] => {
  const found = isObject(value) ? value[name] : undefined
  return Array.isArray(found) ? found : []
}

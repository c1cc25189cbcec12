// A transport that repairs answers on their way to the library.
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type RequestId,
  type Transport,
} from '@modelcontextprotocol/client'
import { repaired, type Unusable } from './repair.ts'

interface Sent {
  readonly method: string
  /** False for further pages of a list. */
  readonly isFirst: boolean
}

/**
 * Repairs the server's answers in place.
 *
 * @param onUnusable receives the skipped entries, once for each page of a list
 * @example repairing(httpTransport(server), ({ method }, unusable) => console.log(method, unusable))
 */
export function repairing<T extends Transport>(
  transport: T,
  onUnusable: (sent: Sent, unusable: readonly Unusable[]) => void,
): T {
  const waiting = new Map<RequestId, Sent>()
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    if (!Array.isArray(message) && isJSONRPCRequest(message))
      waiting.set(message.id, { method: message.method, isFirst: message.params?.cursor === undefined })
    // Nobody waits for what was cancelled.
    else if (!Array.isArray(message) && isJSONRPCNotification(message) && message.method === 'notifications/cancelled')
      waiting.delete(message.params?.requestId as RequestId)
    return send(message, options)
  }
  const mended = (message: JSONRPCMessage): JSONRPCMessage => {
    if (!('id' in message) || message.id === undefined || 'method' in message) return message
    const sent = waiting.get(message.id)
    waiting.delete(message.id)
    if (sent === undefined || !isJSONRPCResultResponse(message)) return message
    const { result, unusable } = repaired(sent.method, message.result)
    onUnusable(sent, unusable)
    return { ...message, result } as JSONRPCMessage
  }
  let handler: Transport['onmessage']
  // The library sets and reads the handler: the handler it sets receives the repaired message.
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => handler,
    set: (next: Transport['onmessage']) => {
      handler = next && ((message, extra) => next(mended(message), extra))
    },
  })
  return transport
}

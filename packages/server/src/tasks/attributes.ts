// Attributes that come from outside: tools and middleware trust some names, so no caller may write those.

const RESERVED = new Set(['agentId', 'outboundAddress', 'principal', 'sessionId', 'taskId', 'tenant', 'userId'])
const RESERVED_PREFIXES = ['agentprotocol.', 'agentscope.', 'io.agentscope.', 'agui.', 'oxbow.']

/** Whether a caller may not set an attribute of this name. */
export const isReserved = (name: string): boolean =>
  name.trim() === '' || RESERVED.has(name) || RESERVED_PREFIXES.some((it) => name.startsWith(it))

// Attributes that come from outside: tools and middleware trust some names, so no caller may write those.

const RESERVED = new Set(['agentId', 'outboundAddress', 'sessionId', 'taskId', 'userId'])
/** Names that only the configuration may let through (`agentProtocol.promote`). */
const TRUSTED = new Set(['principal', 'tenant', 'user'])
const RESERVED_PREFIXES = ['agentprotocol.', 'agentscope.', 'io.agentscope.', 'agui.', 'oxbow.']

/** Whether an attribute of this name never comes from a caller. */
export const isReserved = (name: string): boolean =>
  name.trim() === '' || RESERVED.has(name) || RESERVED_PREFIXES.some((it) => name.startsWith(it))

/** Whether a caller may set an attribute of this name directly. */
export const mayBeSet = (name: string): boolean => !isReserved(name) && !TRUSTED.has(name)

// Attributes from callers. Tools and middleware trust some names, which callers must not set.

const RESERVED = new Set(['agentId', 'outboundAddress', 'sessionId', 'taskId', 'userId'])
/** Names that only the configuration may admit (`agentProtocol.promote`). */
const TRUSTED = new Set(['principal', 'tenant', 'user'])
const RESERVED_PREFIXES = ['agentprotocol.', 'agentscope.', 'io.agentscope.', 'agui.', 'oxbow.']

/** Whether callers may never set an attribute of this name. */
export const isReserved = (name: string): boolean =>
  name.trim() === '' || RESERVED.has(name) || RESERVED_PREFIXES.some((it) => name.startsWith(it))

/** Whether a caller may set an attribute of this name directly. */
export const mayBeSet = (name: string): boolean => !isReserved(name) && !TRUSTED.has(name)

/**
 * What a call can do to the world. `read` only looks (at own data or a fixed service); `write` changes data; `exec` runs
 * programs; `net` reaches addresses that the arguments choose; `ask` needs a person; `delegate` starts another agent.
 */
export const EFFECTS = ['read', 'write', 'exec', 'net', 'ask', 'delegate'] as const
export type Effect = (typeof EFFECTS)[number]

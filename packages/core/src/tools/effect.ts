// The effects that a tool can have.

/**
 * `reachesWorld`: what it does is seen outside the harness, so that an agent cannot hand it to agents below unless it
 * has it.
 */
export const EFFECTS = {
  read: { reachesWorld: false, says: 'looks at own data or a fixed service, and changes nothing' },
  write: { reachesWorld: true, says: 'changes data' },
  exec: { reachesWorld: true, says: 'runs programs' },
  net: { reachesWorld: true, says: 'reaches addresses that the arguments choose' },
  ask: { reachesWorld: false, says: 'needs a person' },
  delegate: { reachesWorld: false, says: 'starts another agent' },
} as const satisfies Readonly<Record<string, { readonly reachesWorld: boolean; readonly says: string }>>

export type Effect = keyof typeof EFFECTS

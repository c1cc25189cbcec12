import { emptyState, type SessionState } from '../state/state.ts'

/** The state of a snapshot, if it has the form of one: a cache may be damaged, and must not damage anything else. */
export function parseSnapshot(data: string): SessionState | undefined {
  try {
    const state = JSON.parse(data) as SessionState
    const whole = Object.entries(emptyState).every(([name, empty]) => {
      const value = state[name as keyof SessionState]
      return typeof value === typeof empty && Array.isArray(value) === Array.isArray(empty)
    })
    return whole ? state : undefined
  } catch {
    return undefined
  }
}

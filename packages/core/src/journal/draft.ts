// What is about to be appended to a session: events, the audit records of these, and the state as it will be.
import { defined } from '../checks/defined.ts'
import type { Event, EventBody } from '../events/types.ts'
import type { AppendNotes, AuditRecord, SessionKey } from '../ports.ts'
import { auditOf, type SecretsOf } from '../state/audit.ts'
import { nextDeadline, type StateLimits } from '../state/deadlines.ts'
import { evolve } from '../state/evolve.ts'
import { type SessionState, statusOf } from '../state/state.ts'

/** Events that are about to be stored, and the state as it will be. */
export class Draft {
  readonly events: Event[] = []
  readonly audit: AuditRecord[] = []
  state: SessionState
  readonly #key: SessionKey
  readonly #now: () => number
  readonly #secrets: SecretsOf

  constructor(state: SessionState, key: SessionKey, now: () => number, secrets: SecretsOf) {
    this.state = state
    this.#key = key
    this.#now = now
    this.#secrets = secrets
  }

  add(...bodies: readonly EventBody[]): void {
    const at = this.#now()
    for (const body of bodies) {
      const event: Event = { ...body, seq: this.state.seq + 1, at }
      this.events.push(event)
      this.state = evolve(this.state, event)
      const record = auditOf(this.#key, this.state, event, this.#secrets)
      if (record !== undefined) this.audit.push(record)
    }
  }

  /** Runs `build`. If it throws, nothing that it added remains. */
  apply<T>(build: Build<T>): T {
    const { state } = this
    const [events, audit] = [this.events.length, this.audit.length]
    try {
      return build(this)
    } catch (error) {
      this.state = state
      this.events.length = events
      this.audit.length = audit
      throw error
    }
  }
}

/**
 * Adds to the draft what follows from its state. Runs again on a newer state when another writer was first, so it must
 * be a function of the draft. It may add nothing. Throwing refuses this one write.
 */
export type Build<T> = (draft: Draft) => T

/** What is stored with the events of a draft. */
export function appendNotes(
  { state, audit }: Draft,
  limitsOf: (agent: string) => StateLimits | undefined,
): AppendNotes {
  const wakeAt = nextDeadline(state, limitsOf(state.agent))
  return {
    status: statusOf(state),
    agent: state.agent,
    title: state.title,
    audit,
    ...defined({ wakeAt }),
  }
}

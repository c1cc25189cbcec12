// What the parts of an engine need of it.
import type { Agent } from './agents/agent-type.ts'
import type { JsonSchema } from './checks/json-schema.ts'
import type { Delegation, Principal } from './events/types.ts'
import type { FaultPoint, SessionLog } from './journal/session-log.ts'
import type { Files, Journal, SessionKey } from './ports.ts'

export interface GivenTask {
  readonly key: SessionKey
  readonly agent: string
  readonly turnId: string
  readonly task: string
  readonly output: JsonSchema
  readonly principal: Principal
  readonly attributes: Readonly<Record<string, unknown>>
  readonly delegation: Delegation
}

export interface EngineInternals {
  agent(name: string): Agent
  /** Passes the loaded session log to `work`, and keeps it in memory for that long. */
  using<T>(key: SessionKey, work: (log: SessionLog) => T | Promise<T>): Promise<T>
  /** The same, with what other processes have appended. */
  withCurrentLog<T>(key: SessionKey, work: (log: SessionLog) => T | Promise<T>): Promise<T>
  /**
   * Starts the session's turn if it is unclaimed, or leaves it to the queue when it cannot begin here. `place`: the
   * caller keeps a place for it, and may have stored the claim with the input.
   */
  ensureWorker(log: SessionLog, place?: { epoch?: number }): void
  /** Takes a place for a turn that is about to begin here; undefined when it has to begin elsewhere or later. */
  enter(delegated: boolean): (() => void) | undefined
  /** Gives a child its task; idempotent. Resolves with the task's start in its journal. */
  give(task: GivenTask): Promise<{ readonly after: number }>
  readonly worker: string
  /** Makes this worker known as alive, once; before its first claim is stored. */
  announce(): Promise<unknown>
  readonly files: Files
  readonly journal: Journal
  readonly faultPoint: FaultPoint | undefined
  readonly stopping: boolean
  /** Inputs that are being accepted now, by the name of their session: an interrupt that comes behind one means it. */
  readonly arriving: Map<string, Set<Promise<unknown>>>
  /** Tasks of children that are shown to those who follow their parents. */
  readonly shown: Set<string>
}

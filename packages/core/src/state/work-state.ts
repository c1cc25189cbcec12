// The durable work of a call, as the fold keeps it.
import type { Failure } from '../events/types.ts'

/** A step, a sleep, or the wait for a signal. */
export interface WorkState {
  readonly name: string
  readonly kind: 'step' | 'sleep' | 'signal'
  /** The last attempt of a step that was started. */
  readonly attempt: number
  /** When a sleep ends, or the wait for a signal is given up. Milliseconds since 1970. */
  readonly wakeAt?: number
  readonly ended?: WorkEnd
}

export type WorkEnd =
  /** `value` is absent for `undefined`. */
  | { readonly status: 'success'; readonly value?: unknown }
  | { readonly status: 'error'; readonly error: Failure }
  /** No signal came in time. */
  | { readonly status: 'timed_out' }

/** A signal that no call has received yet. */
export interface WaitingSignal {
  readonly signalId: string
  readonly name: string
  readonly value: unknown
}

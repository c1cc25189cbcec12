// The port for reviewers: they check the last answer of a turn before the turn ends with it. `knowledge()` of
// @oxbow/harness is one.
import type { Message } from '../events/types.ts'
import type { Slots } from '../state/slots.ts'
import type { SessionState } from '../state/state.ts'

export interface Reviewed {
  /** The answer; of a structured one its JSON. */
  readonly text: string
  /** The session's slots: see `slotValue`. */
  readonly slots: Slots
  /** Slot values that finished sub-agents have passed to this session: see `handsUp` of `slot`. */
  readonly below: readonly Slots[]
  /** The conversation, with the answer. */
  readonly messages: readonly Message[]
}

/** What is wrong with an answer. */
export interface Finding {
  /** Such as `citation_unknown`. */
  readonly code: string
  /** For people; safe to show. */
  readonly message: string
  /** The faulty places, as written in the answer. */
  readonly items: readonly string[]
  /** For the model, which may answer once more: the fault and how to correct it. */
  readonly correction: string
}

/** Undefined when there is no fault. Pure, and called once for each answer. */
export type Reviewer = (answer: Reviewed) => Finding | undefined

export const reviewInput = (text: string, { slots, below, messages }: SessionState): Reviewed => ({
  text,
  slots,
  below: Object.values(below).flat(),
  messages,
})

// Types only: importing this file loads nothing.
import type { z } from 'zod'
import type * as schema from './schema.ts'

export type Block = z.infer<typeof schema.block>
export type TextBlock = Extract<Block, { type: 'text' }>
export type ThinkingBlock = Extract<Block, { type: 'thinking' }>
export type DataBlock = Extract<Block, { type: 'data' }>
export type CallBlock = Extract<Block, { type: 'call' }>
export type ResultBlock = Extract<Block, { type: 'result' }>
export type InputBlock = TextBlock | DataBlock
export type Message = z.infer<typeof schema.message>
export type Principal = z.infer<typeof schema.principal>
export type DataScope = z.infer<typeof schema.dataScope>
export type Usage = z.infer<typeof schema.usage>
export type CallStatus = ResultBlock['status']

/** An event before it has a position in a journal. */
export type EventBody = z.infer<typeof schema.eventBody>
export type EventType = EventBody['type']
/** An event with its position and time. */
export type Event<T extends EventType = EventType> = Extract<EventBody, { type: T }> & { seq: number; at: number }

export type Failure = Extract<EventBody, { type: 'turn.failed' }>['error']
export type FinishReason = Extract<EventBody, { type: 'model.finished' }>['finishReason']
export type Delegation = NonNullable<Extract<EventBody, { type: 'turn.started' }>['delegation']>
export type Spent = Extract<EventBody, { type: 'child.closed' }>['spent']
export type TurnOptions = Extract<EventBody, { type: 'turn.started' }>['options']

/**
 * Fragments that are streamed and never stored; the stored `model.finished` or `call.finished` holds the whole.
 * `offset` counts the UTF-16 units of the block before this fragment, so that a reader who joins late or fell behind,
 * and is given the step so far as one fragment, knows what it has already.
 */
export type Delta =
  | { type: 'text.delta'; turnId: string; step: number; block: number; offset: number; text: string }
  | { type: 'thinking.delta'; turnId: string; step: number; block: number; offset: number; text: string }
  | { type: 'call.delta'; turnId: string; step: number; block: number; callId: string; tool: string }
  | {
      type: 'arguments.delta'
      turnId: string
      step: number
      block: number
      callId: string
      offset: number
      text: string
    }
  | { type: 'progress.delta'; turnId: string; step: number; callId: string; text: string }
  | { type: 'child.delta'; turnId: string; step: number; callId: string; source: ChildSource; item: ChildItem }

/** Where something comes from: agents and their sessions, the root first. */
export interface ChildSource {
  readonly agents: readonly string[]
  readonly sessions: readonly string[]
}
export type ChildItem = Event | Exclude<Delta, { type: 'child.delta' }>

/** One thing that a follower of a session sees: stored events in order, with deltas between them. */
export type SessionItem = Event | Delta
/**
 * Whether an item is a stored event, and not a fragment that is only streamed.
 *
 * @example for await (const item of session.stream('Hello')) if (isEvent(item)) print(item.type)
 */
export const isEvent = (item: SessionItem): item is Event => 'seq' in item

// The moments of a task in order, for any protocol: a fold of the turn's events and fragments. Read again from the
// journal, it gives the same moments with the same numbers.
import {
  type CallStatus,
  type Delta,
  type Event,
  isEnd,
  isEvent,
  type SessionItem,
  type Task,
  type TurnResult,
} from '@oxbow/core'
import { newResult, newTask, resultAfter, taskAfter } from '@oxbow/core/internal'
import { afterBlocks, atEvent, inBlock, MAX_BLOCKS, positionOf } from './positions.ts'

export type Moment = {
  /** Increases along the stream. A fragment that cannot be repeated has the number of the moment before it. */
  readonly at: number
  /** Milliseconds since 1970; fragments have the time of the event before them. */
  readonly time: number
  /** The item that the moment was made from. */
  readonly source: SessionItem
} & Reported

export type Reported =
  | { readonly type: 'started' }
  | { readonly type: 'text' | 'thinking'; readonly step: number; readonly text: string }
  | { readonly type: 'call'; readonly callId: string; readonly tool: string; readonly arguments: string }
  | {
      readonly type: 'result'
      readonly callId: string
      readonly tool: string
      readonly status: CallStatus
      readonly text: string
    }
  /** The state has changed, an approval was decided, or another worker has claimed the task. */
  | { readonly type: 'state' }
  | { readonly type: 'ended' }
  /** For readers of full detail. */
  | { readonly type: 'other' }

export interface Moments {
  /** The moments of an item. Items of other turns have none. */
  take(item: SessionItem): Moment[]
  readonly task: Task | undefined
  readonly result: TurnResult
  readonly ended: boolean
  /** Whether no part of an unstored answer has been reported. */
  readonly isBetweenAnswers: boolean
}

/** `after` is the number of the reader's last moment; 0 for none. */
export function moments(turnId: string, after: number): Moments {
  const had = positionOf(after)
  let task: Task | undefined
  let result = newResult(turnId)
  let ended = false
  /** The last event, which fragments belong to. */
  let seq = 0
  let time = 0
  let at = 0
  const tools = new Map<string, string>()
  /** How much of each block of the current answer has been reported. */
  let reported: number[] = []

  const moment = (number: number, source: SessionItem, what: Reported): Moment => {
    at = Math.max(at, number)
    return { at: number, time, source, ...what }
  }

  /** The rest of a block's text, up to the end of `text`. */
  function rest(type: 'text' | 'thinking', step: number, block: number, offset: number, text: string): Moment[] {
    const begin = reported[block] ?? 0
    const end = offset + text.length
    if (end <= begin || begin < offset) return []
    reported[block] = end
    const fragment = text.slice(begin - offset)
    const source: Delta = { type: `${type}.delta`, turnId, step, block, offset: begin, text: fragment }
    return [moment(inBlock(seq, block, end), source, { type, step, text: fragment })]
  }

  function ofDelta(delta: Delta): Moment[] {
    if (delta.type !== 'text.delta' && delta.type !== 'thinking.delta') return [moment(at, delta, { type: 'other' })]
    if (delta.block >= MAX_BLOCKS) return []
    return rest(delta.type === 'text.delta' ? 'text' : 'thinking', delta.step, delta.block, delta.offset, delta.text)
  }

  function ofAnswer(event: Event<'model.finished'>): Moment[] {
    const parts = event.message.blocks.flatMap((it, block): Moment[] => {
      if (it.type === 'text' || it.type === 'thinking') return rest(it.type, event.step, block, 0, it.text)
      if (it.type !== 'call') return []
      tools.set(it.callId, it.tool)
      const { callId, tool } = it
      return [moment(inBlock(seq, block, 0), event, { type: 'call', callId, tool, arguments: it.arguments })]
    })
    reported = []
    return [...parts, moment(afterBlocks(seq), event, { type: 'other' })]
  }

  function whatOf(event: Event, before: Task | undefined): Reported {
    if (isEnd(event)) return { type: 'ended' }
    if (event.type === 'turn.started') return { type: 'started' }
    if (event.type === 'call.finished') {
      const { callId, status } = event
      const text = event.content.map((it) => (it.type === 'text' ? it.text : `[${it.mediaType}]`)).join('\n')
      return { type: 'result', callId, tool: tools.get(callId) ?? '', status, text }
    }
    const decided = event.type === 'approval.resolved' || event.type === 'turn.claimed'
    return { type: decided || before?.state !== task?.state || event.type === 'turn.paused' ? 'state' : 'other' }
  }

  function ofEvent(event: Event): Moment[] {
    const before = task
    seq = event.seq
    time = event.at
    task = event.type === 'turn.started' ? newTask(event) : task && taskAfter(task, event)
    result = resultAfter(result, event)
    ended = isEnd(event)
    // A worker that resumes the turn calls the model again: what was reported of the interrupted answer is void.
    if (event.type === 'step.started' || event.type === 'turn.claimed') reported = []
    if (event.type === 'model.finished') return ofAnswer(event)
    // Within an answer, the number of an event must include how much of the answer came before it.
    const number = reported.length === 0 ? atEvent(seq) : inBlock(seq, reported.length - 1, reported.at(-1)!)
    const made = [moment(number, event, whatOf(event, before))]
    if (seq === had.seq && had.block >= 0 && had.block < MAX_BLOCKS)
      reported = [...Array<number>(had.block).fill(Number.POSITIVE_INFINITY), had.length]
    return made
  }

  return {
    take(item) {
      if (!('turnId' in item) || item.turnId !== turnId) return []
      return isEvent(item) ? ofEvent(item) : ofDelta(item)
    },
    get task() {
      return task
    },
    get result() {
      return result
    },
    get ended() {
      return ended
    },
    get isBetweenAnswers() {
      return reported.length === 0
    },
  }
}

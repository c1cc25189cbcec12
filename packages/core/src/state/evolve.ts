// The fold. `evolve` is the only place where the state of a session changes; it is pure and total over stored events.

import { OxbowError } from '../errors.ts'
import { textOf } from '../events/blocks.ts'
import type { Event, InputBlock, Message, ResultBlock } from '../events/types.ts'
import { noUsage } from '../model.ts'
import { approvedWith } from './approval-note.ts'
import { type FamilyEvent, familyAfter, withFamily } from './evolve-children.ts'
import { afterCall, afterStep, callDigest, noRepeats } from './repeats.ts'
import {
  type ApprovalState,
  addUsage,
  type CallState,
  countOf,
  failuresOf,
  nothingSpent,
  type QueuedTurn,
  SCHEMA_VERSION,
  type SessionRule,
  type SessionState,
  type StepReply,
  type TurnState,
  tokensOf,
} from './state.ts'
import { newTask, taskAfter } from './task.ts'
import { signalReceived, workFinished, workStarted } from './work.ts'

export function evolve(state: SessionState, event: Event): SessionState {
  const next = apply(state, event)
  const { turn } = next
  if (turn === undefined || event.type === 'session.opened' || event.turnId !== turn.turnId)
    return { ...next, seq: event.seq }
  return { ...next, turn: { ...turn, task: taskAfter(turn.task, event) }, seq: event.seq }
}

/** Folds events one by one into lists of its own, so that reading a long session is linear. */
export interface Fold {
  readonly seq: number
  add(events: readonly Event[]): void
  /** The last call: the lists belong to the state now. */
  end(): SessionState
}

export function foldFrom(state: SessionState): Fold {
  const messages = [...state.messages]
  const finished = [...state.finished]
  let result = state
  return {
    get seq() {
      return result.seq
    },
    add(events) {
      for (const event of events) {
        const next = evolve({ ...result, messages: [], finished: [] }, event)
        if (event.type === 'context.compacted' && event.messages !== undefined) messages.length = 0
        messages.push(...next.messages)
        finished.push(...next.finished)
        result = next
      }
    },
    end: () => ({ ...result, messages, finished }),
  }
}

export function evolveAll(state: SessionState, events: readonly Event[]): SessionState {
  if (events.length < 50) return events.reduce(evolve, state)
  const fold = foldFrom(state)
  fold.add(events)
  return fold.end()
}

function apply(state: SessionState, event: Event): SessionState {
  switch (event.type) {
    case 'session.opened':
      if (event.schemaVersion > SCHEMA_VERSION) throw newer(`its schema is ${event.schemaVersion}`)
      return { ...state, agent: event.agent.name, ...(event.parent && { parent: event.parent }) }
    case 'turn.started': {
      const titled = state.title === '' ? { ...state, title: titleOf(event.input) } : state
      if (state.turn !== undefined) return { ...titled, queue: [...state.queue, { started: event }] }
      return activate(titled, { started: event })
    }
    case 'interrupt.requested': {
      const interrupt = { reason: event.reason ?? 'interrupted' }
      if (state.turn?.turnId === event.turnId) {
        const { paused: _, ...turn } = state.turn
        return { ...state, turn: { ...turn, interrupt } }
      }
      const queue = state.queue.map((it) => (it.started.turnId === event.turnId ? { ...it, interrupt } : it))
      return { ...state, queue }
    }
    case 'child.opened':
    case 'child.detached':
    case 'child.closed':
    case 'result.delivered':
      return withFamily(state, event)
    case 'turn.finished':
    case 'turn.failed':
    case 'turn.cancelled':
      return endTurn(state, event)
    case 'context.compacted':
      return compacted(state, event)
    default: {
      if (!TURN_EVENTS.has(event.type)) throw newer(`it holds an event "${(event as Event).type}"`)
      if (state.turn?.turnId !== event.turnId) return state
      return applyToTurn(state, state.turn, event)
    }
  }
}

type TurnEvent = Exclude<
  Event,
  {
    type:
      | 'session.opened'
      | 'turn.started'
      | 'interrupt.requested'
      | 'context.compacted'
      | FamilyEvent['type']
      | 'turn.finished'
      | 'turn.failed'
      | 'turn.cancelled'
  }
>

/** The compiler sees to it that none is missing. */
const TURN_EVENTS: ReadonlySet<string> = new Set(
  Object.keys({
    'turn.claimed': 0,
    'turn.steered': 0,
    'step.started': 0,
    'model.finished': 0,
    'call.decided': 0,
    'call.started': 0,
    'call.finished': 0,
    'external.requested': 0,
    'external.resolved': 0,
    'approval.requested': 0,
    'approval.resolved': 0,
    'pause.requested': 0,
    'state.changed': 0,
    'output.rejected': 0,
    'reply.reviewed': 0,
    'turn.paused': 0,
    'turn.released': 0,
    'turn.yielded': 0,
    'work.started': 0,
    'work.finished': 0,
    'signal.received': 0,
  } satisfies Record<TurnEvent['type'], 0>),
)

const newer = (what: string): OxbowError =>
  new OxbowError(
    'journal_newer',
    `This session was written by a newer Oxbow: ${what}. Use that version, or a newer one.`,
  )

function applyToTurn(state: SessionState, turn: TurnState, event: TurnEvent): SessionState {
  const withTurn = (change: Partial<TurnState>): SessionState => ({ ...state, turn: { ...turn, ...change } })
  const withCall = (callId: string, change: Partial<CallState>, more: Partial<TurnState> = {}): SessionState =>
    withTurn({ ...more, calls: turn.calls.map((call) => (call.callId === callId ? { ...call, ...change } : call)) })

  switch (event.type) {
    case 'turn.claimed':
      return withTurn({ claim: { worker: event.worker, epoch: event.epoch }, recoveries: turn.recoveries + 1 })
    case 'turn.steered': {
      const steer: Message = { id: event.inputId, role: 'user', blocks: event.input }
      const { inputId, turnId } = event
      return { ...withTurn({ steers: [...turn.steers, steer] }), steered: [...state.steered, { inputId, turnId }] }
    }
    case 'step.started': {
      const { reply: _, ...rest } = turn
      const joining = turn.steers.slice(0, event.joined)
      const messages = joining.length === 0 ? state.messages : [...state.messages, ...joining]
      return {
        ...state,
        messages,
        turn: {
          ...rest,
          step: event.step,
          toolsOffered: event.toolsOffered,
          calls: [],
          steers: turn.steers.slice(joining.length),
          repeats: afterStep(turn.repeats, turn.calls.length),
        },
      }
    }
    case 'model.finished':
      return modelFinished(state, turn, event)
    case 'call.decided':
      return withCall(event.callId, { decided: event })
    case 'call.started':
      return withCall(
        event.callId,
        { started: { operationId: event.operationId, attempt: event.attempt } },
        event.attempt === 1 ? { begun: oneMore(turn, event.callId) } : {},
      )
    case 'external.requested':
      return withCall(event.callId, { external: true }, { begun: oneMore(turn, event.callId) })
    case 'external.resolved': {
      const { paused: _, ...rest } = turn
      const calls = turn.calls.map((call) =>
        call.callId === event.callId && call.resolved === undefined
          ? { ...call, resolved: { status: event.status, content: event.content } }
          : call,
      )
      return { ...state, turn: { ...rest, calls } }
    }
    case 'work.started':
      return { ...state, turn: workStarted(turn, event) }
    case 'work.finished':
      return { ...state, turn: workFinished(turn, event) }
    case 'signal.received':
      return { ...state, turn: signalReceived(turn, event) }
    case 'call.finished':
      return callFinished(state, turn, event)
    case 'output.rejected':
      return {
        ...state,
        messages: [...state.messages, correctionOf(turn, `${event.step}.rejected`, event.message)],
        turn: {
          ...turn,
          rejections: turn.rejections + 1,
          ...(turn.reply && { reply: { ...turn.reply, rejected: event.message } }),
        },
      }
    case 'reply.reviewed': {
      const { step, correction } = event
      const reviewed = correction === undefined ? 'kept' : 'again'
      const now: TurnState = { ...turn, ...(turn.reply && { reply: { ...turn.reply, reviewed } }) }
      if (correction === undefined) return { ...state, turn: now }
      const messages = [...state.messages, correctionOf(turn, `${step}.reviewed`, correction)]
      return { ...state, messages, turn: { ...now, corrected: true } }
    }
    case 'turn.paused':
      return withTurn({
        paused: { reason: event.reason, seq: event.seq, at: event.at },
        waited: true,
        ...(turn.claim && { claim: { epoch: turn.claim.epoch } }),
      })
    case 'pause.requested':
      return withTurn({ pauseRequested: true })
    case 'state.changed':
      return {
        ...state,
        slots: { ...state.slots, [event.slot]: event.value },
        ...(event.handsUp && { handsUp: [...new Set([...state.handsUp, event.slot])] }),
      }
    case 'approval.requested':
      return withCall(event.callId, { approval: asked(turn, event) })
    case 'approval.resolved': {
      const { paused: _, ...rest } = turn
      const calls = turn.calls.map((call) =>
        call.approval?.requested.approvalId === event.approvalId && call.approval.resolved === undefined
          ? { ...call, approval: { ...call.approval, resolved: event } }
          : call,
      )
      return { ...state, turn: { ...rest, calls }, rules: withRule(state.rules, turn, event) }
    }
    case 'turn.yielded':
      // An orderly stop is not a failed attempt.
      return withTurn({ claim: { epoch: event.epoch }, recoveries: Math.max(0, turn.recoveries - 1) })
    case 'turn.released': {
      const { paused: _, pauseRequested: __, ...rest } = turn
      return { ...state, turn: { ...rest, recoveries: 0 } }
    }
  }
}

/** The correction of the model's answer. */
const correctionOf = ({ turnId }: TurnState, id: string, text: string): Message => ({
  id: `${turnId}:${id}`,
  role: 'user',
  origin: 'engine',
  blocks: [{ type: 'text', text }],
})

function oneMore({ begun, calls }: TurnState, callId: string): TurnState['begun'] {
  const tool = calls.find((it) => it.callId === callId)?.tool
  return tool === undefined ? begun : { ...begun, [tool]: countOf(begun, tool) + 1 }
}

function asked({ calls }: TurnState, requested: Event<'approval.requested'>): ApprovalState {
  const started = calls.find((it) => it.callId === requested.callId)?.started
  return { requested, ...(started && { attempt: started.attempt }) }
}

function withRule(
  rules: readonly SessionRule[],
  { principal: { tenant, user } }: TurnState,
  { remember, principal, verdict }: Event<'approval.resolved'>,
): readonly SessionRule[] {
  if (remember?.scope !== 'session' || verdict !== 'approved') return rules
  const { rule, expiresAt, origin } = remember
  const asker = { user, ...(tenant !== undefined && { tenant }) }
  const more = { ...(origin !== undefined && { origin }), ...(expiresAt !== undefined && { expiresAt }) }
  return [...rules, { rule, author: principal?.user ?? '', asker, ...more }]
}

function modelFinished(state: SessionState, turn: TurnState, event: Event<'model.finished'>): SessionState {
  const { blocks } = event.message
  const calls: CallState[] = blocks
    .filter((it) => it.type === 'call')
    .map((it, position) => ({ callId: it.callId, position, tool: it.tool, arguments: it.arguments }))
  const empty = !blocks.some((it) => it.type === 'call' || (it.type === 'text' && it.text.trim() !== ''))
  const reply: StepReply = {
    finishReason: event.finishReason,
    text: textOf(blocks),
    empty,
    ...(event.error && { error: event.error }),
  }
  return {
    ...state,
    // An answer without content would make every later request invalid.
    messages: empty ? state.messages : [...state.messages, event.message],
    turn: {
      ...turn,
      reply,
      calls,
      recoveries: 0,
      callCount: turn.callCount + calls.length,
      emptyReplies: !empty ? 0 : turn.emptyReplies + (event.error === undefined ? 1 : 0),
      usage: addUsage(turn.usage, event.usage),
    },
    usage: addUsage(state.usage, event.usage),
    // A failed call says nothing about the length.
    ...(tokensOf(event.usage) > 0 && {
      contextTokens: tokensOf(event.usage),
      ...(!empty && { countedTo: event.message.id }),
    }),
  }
}

function compacted(state: SessionState, event: Event<'context.compacted'>): SessionState {
  const { turnId, step, reason, parts, messages, usage = noUsage } = event
  const { turn } = state
  const memory = event.memory ?? state.compaction?.memory
  return {
    ...state,
    ...(messages !== undefined && {
      messages,
      contextTokens: event.tokensAfter,
      ...(messages.length > 0 && { countedTo: messages.at(-1)!.id }),
    }),
    compaction: {
      tokens: event.tokensAfter,
      messages: event.messagesAfter,
      ...(memory !== undefined && { memory }),
    },
    usage: addUsage(state.usage, usage),
    ...(turn?.turnId === turnId && {
      turn: {
        ...turn,
        recoveries: 0,
        usage: addUsage(turn.usage, usage),
        ...(reason === 'overflow' ? { overflow: { step, parts } } : { compactedStep: step }),
      },
    }),
  }
}

function callFinished(state: SessionState, turn: TurnState, event: Event<'call.finished'>): SessionState {
  const finishing = turn.calls.find((call) => call.callId === event.callId)
  if (finishing === undefined || finishing.finished !== undefined) return state
  const { tool } = finishing
  const approval = event.status === 'denied' ? undefined : approvedWith(finishing)
  const result: ResultBlock = {
    type: 'result',
    callId: event.callId,
    tool,
    status: event.status,
    content: event.content,
    ...(approval && { approval }),
  }
  const calls = turn.calls.map((call) => (call === finishing ? { ...call, finished: event.status, result } : call))
  const failed = event.status !== 'success' && event.status !== 'cancelled'
  const failures = { ...turn.failures, [tool]: failed ? failuresOf(turn, tool) + 1 : 0 }
  const results = calls.map((call) => call.result)
  const messages = results.every((it) => it !== undefined)
    ? [...state.messages, { id: `${turn.turnId}:${turn.step}.results`, role: 'tool' as const, blocks: results }]
    : state.messages
  const repeats = afterCall(turn.repeats, callDigest(tool, finishing.arguments, event.content))
  return { ...state, messages, turn: { ...turn, calls, failures, repeats, recoveries: 0 } }
}

function endTurn(state: SessionState, event: Event<'turn.finished' | 'turn.failed' | 'turn.cancelled'>): SessionState {
  const { turn, ...rest } = state
  if (turn?.turnId !== event.turnId) return state
  const finished = [...state.finished, { turnId: turn.turnId, startedSeq: turn.startedSeq, endedSeq: event.seq }]
  // A steering input that came too late is kept: the next turn's model sees it.
  const messages = turn.steers.length === 0 ? state.messages : [...state.messages, ...turn.steers]
  const [next, ...queue] = state.queue
  const ended = { ...rest, ...familyAfter(state, turn, event), finished, messages, queue }
  if (next === undefined) return ended
  const active = activate(ended, next)
  return { ...active, turn: { ...active.turn!, waited: true } }
}

function activate(state: SessionState, { started, interrupt }: QueuedTurn): SessionState {
  const input: Message = { id: started.turnId, role: 'user', blocks: started.input }
  return {
    ...state,
    messages: [...state.messages, input],
    turn: {
      turnId: started.turnId,
      startedSeq: started.seq,
      surface: started.surface,
      principal: started.principal,
      options: started.options,
      ...(started.delegation && { delegation: started.delegation }),
      recoveries: 0,
      begun: {},
      callCount: 0,
      step: 0,
      toolsOffered: true,
      calls: [],
      failures: {},
      repeats: noRepeats,
      steers: [],
      childCount: 0,
      below: nothingSpent,
      emptyReplies: 0,
      rejections: 0,
      usage: noUsage,
      task: newTask(started),
      ...(interrupt && { interrupt }),
    },
  }
}

const titleOf = (input: readonly InputBlock[]): string =>
  input
    .map((it) => (it.type === 'text' ? it.text : (it.name ?? it.mediaType)))
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 80)

// Encodes the items of one turn as AG-UI frames. For any items the output is a legal sequence: RUN_STARTED first and
// once, every start closed, no result before its call, and one terminal frame with nothing after it.
import {
  addUsage,
  type Event,
  isEvent,
  OxbowError,
  type SessionItem,
  type SessionKey,
  textOf,
  tokensOf,
  type Usage,
} from '@oxbow/core'
import { defined, errorFrom } from '@oxbow/core/internal'
import {
  failureOf,
  failureOfResult,
  failureOfStop,
  type ShownFailure,
  sentence,
  type UnknownCall,
} from '../../failures.ts'
import type { Progress } from '../../stream/progress.ts'
import { interruptOf } from '../interrupts.ts'
import { type AgUiFrame, frameWriter, PROTOCOL_VERSION, type Strict } from './frames.ts'
import { hintsOf } from './hints.ts'
import { type StepEncoder, stepEncoder } from './step.ts'

export interface RunEncoder {
  /** RUN_STARTED. */
  start(): string
  /** For a reader that reconnects. `repeats`: the reader gets text again that it may have seen. */
  resumed(from: { readonly after: number; readonly repeats: boolean }): string
  /** Sets the turn to encode. Items are ignored before this call. */
  follows(turnId: string): void
  /** Records an event that the reader has already seen. */
  seen(event: Event): void
  /** Records the part of the current answer that the reader has, after the events that it has seen. */
  had(progress: Progress): void
  encode(item: SessionItem): string
  /**
   * Ends the run because the turn waits for approvals, external results or its release. `schemaOf` returns the schema
   * of a tool's arguments.
   */
  pause(key: SessionKey, schemaOf?: SchemaOf): string
  /** Ends the run because this server cannot continue it. */
  fail(failure: ShownFailure): string
  hint(source: string, text: string): string
  /** Whether a step is open: fragments of it may already have been seen. */
  readonly inStep: boolean
  /** The number of the last event that was encoded. */
  readonly reached: number
  readonly ended: boolean
}

export type SchemaOf = (tool: string) => object | undefined

export function runEncoder(run: {
  readonly threadId: string
  readonly runId: string
  /** Calls, by their wire ids, whose results the reader has from an earlier run. */
  readonly known?: ReadonlySet<string> | undefined
  /** For clients that need the exact form of an older service. */
  readonly strict?: Strict | undefined
  /** Called when a reader missed fragments and got them in one piece. */
  readonly onRepair: () => void
  /** Logs a failure that has no reference yet, and returns one. */
  readonly report: (error: OxbowError) => string
}): RunEncoder {
  const { threadId, runId, known, onRepair, report } = run
  let turnId = ''
  const out = frameWriter(run.strict)
  const hints = hintsOf()
  /** The wire ids of this turn's calls. */
  const wireIds = new Map<string, string>()
  /** Open external calls and approvals, by call id. */
  const externals = new Set<string>()
  const approvals = new Map<string, Event<'approval.requested'>>()
  const answered = new Set<string>()
  const tools = new Map<string, string>()
  const unknown: UnknownCall[] = []
  let lastText = ''
  let step: StepEncoder | undefined
  let paused: Event<'turn.paused'>['reason'] | undefined
  let total: Usage | undefined
  let reached = 0
  let ended = false

  const custom = (name: string, value: unknown): void => out.frame({ type: 'CUSTOM', name, value })
  const hint = (source: string, text: string, toolCallId?: string): void =>
    custom('hint', { source, text, ...defined({ toolCallId }) })

  function end(write: () => void): void {
    step?.abandon()
    step = undefined
    write()
    ended = true
  }

  const error = (failure: ShownFailure): void =>
    end(() => out.frame({ type: 'RUN_ERROR', code: failure.runError, message: sentence(failure) }))

  function event(event: Exclude<Event, { type: 'session.opened' }>): void {
    switch (event.type) {
      case 'turn.claimed':
        paused = undefined
        if (step !== undefined) restartStep(step, event.epoch)
        break
      case 'turn.released':
        paused = undefined
        break
      case 'external.resolved':
        paused = undefined
        externals.delete(event.callId)
        break
      case 'approval.requested':
        approvals.set(event.callId, event)
        break
      case 'approval.resolved':
        paused = undefined
        for (const [callId, { approvalId }] of approvals) if (approvalId === event.approvalId) decided(callId, event)
        break
      case 'step.started':
        step?.abandon()
        step = stepEncoder(out, turnId, event.step, '', onRepair)
        break
      case 'model.finished':
        modelFinished(event)
        break
      case 'context.compacted':
        if (event.usage !== undefined) total = total === undefined ? event.usage : addUsage(total, event.usage)
        break
      case 'external.requested':
        externals.add(event.callId)
        break
      case 'call.finished':
        callFinished(event)
        break
      case 'turn.paused':
        paused = event.reason
        break
      case 'turn.finished':
        turnFinished(event)
        break
      case 'turn.failed':
        error(failureOf(event.error.code, event.error.reference ?? report(errorFrom(event.error))))
        break
      case 'turn.cancelled':
        error(failureOfStop(event.reason))
        break
    }
    for (const { source, text, callId } of hints.of(event))
      hint(source, text, callId === undefined ? undefined : (wireIds.get(callId) ?? callId))
  }

  function turnFinished({ reason, output }: Event<'turn.finished'>): void {
    const empty = failureOfResult({ status: 'finished', reason, text: lastText, output })
    if (empty !== undefined) {
      error(empty)
      return
    }
    const result = {
      reason,
      ...defined({ output }),
      ...(unknown.length > 0 && { unknownOutcomes: unknown }),
    }
    end(() => out.frame({ type: 'RUN_FINISHED', threadId, runId, result, outcome: { type: 'success' } }))
  }

  /** Reports a decision. Edited arguments differ from the ones that were streamed. */
  function decided(callId: string, { approvalId, verdict, principal, reason, arguments: given }: Resolved): void {
    approvals.delete(callId)
    custom('approval_decided', {
      toolCallId: wireIds.get(callId) ?? callId,
      approvalId,
      verdict,
      ...(principal !== undefined && { by: principal.user }),
      ...defined({ reason, arguments: given }),
    })
  }

  function restartStep(broken: StepEncoder, epoch: number): void {
    broken.abandon()
    // New ids, so that a reader does not append the new answer to the interrupted one.
    step = stepEncoder(out, turnId, broken.step, `.e${epoch}`, onRepair)
    hint('step_restarted', 'This step was interrupted and is repeated. Discard its earlier output.')
  }

  function modelFinished({ message, usage, model, finishReason, timing, step: number }: Event<'model.finished'>): void {
    const answer = step ?? stepEncoder(out, turnId, number, '', onRepair)
    step = undefined
    lastText = textOf(message.blocks)
    answer.finish(message.blocks)
    for (const block of message.blocks)
      if (block.type === 'call') {
        wireIds.set(block.callId, answer.wireId(block.callId))
        tools.set(block.callId, block.tool)
      }
    total = total === undefined ? usage : addUsage(total, usage)
    const modelCall = { step: number, model, finishReason, ...timing }
    custom('token_usage', { delta: withTotal(usage), cumulative: withTotal(total), modelCall })
  }

  function callFinished({ callId, content, status, durationMs, error }: Event<'call.finished'>): void {
    externals.delete(callId)
    approvals.delete(callId)
    if (status === 'unknown') unknown.push({ callId: wireIds.get(callId) ?? callId, tool: tools.get(callId) ?? '' })
    const toolCallId = wireIds.get(callId)
    if (toolCallId === undefined || answered.has(callId) || known?.has(toolCallId)) return
    answered.add(callId)
    const text = content.map((it) => (it.type === 'text' ? it.text : `[${it.name ?? it.mediaType}]`)).join('\n')
    const metadata = { status, durationMs, ...(error !== undefined && { error: error.code }) }
    out.frame({
      type: 'TOOL_CALL_RESULT',
      messageId: `${toolCallId}.result`,
      toolCallId,
      role: 'tool',
      content: text,
      metadata,
    })
  }

  function encode(item: SessionItem): void {
    if (ended) return
    if (isEvent(item)) {
      if (item.type !== 'session.opened' && item.turnId === turnId) event(item)
      reached = item.seq
      out.reached(reached)
    } else if (item.turnId === turnId) {
      if (item.type === 'progress.delta') {
        const toolCallId = wireIds.get(item.callId)
        if (toolCallId !== undefined) hint('progress', item.text, toolCallId)
      } else if (item.type === 'child.delta') {
        custom('sub_agent', {
          source: item.source,
          toolCallId: wireIds.get(item.callId) ?? item.callId,
          event: item.item,
        })
      } else if (step?.step === item.step) step.delta(item)
    }
  }

  return {
    start() {
      out.frame({ type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION })
      return out.take()
    },
    follows(id) {
      turnId = id
    },
    resumed({ after, repeats }) {
      custom('stream_resumed', { after, repeats })
      return out.take()
    },
    seen(item) {
      encode(item)
      out.take()
    },
    had(progress) {
      step?.had(progress)
      out.take()
    },
    encode(item) {
      encode(item)
      return out.take()
    },
    pause(key, schemaOf) {
      if (ended) return ''
      const wire = (callId: string): string => wireIds.get(callId) ?? callId
      const finish = (outcome: Outcome): void =>
        end(() => out.frame({ type: 'RUN_FINISHED', threadId, runId, outcome }))
      if (paused === 'manual') error(failureOf('paused'))
      // Nothing that this client could do: the turn continues by itself, or with a signal.
      else if (paused === 'sleep' || paused === 'signal') {
        custom('waiting', { reason: paused })
        finish({ type: 'success', pendingToolCallIds: [] })
      } else if (paused === 'recovery_limit' || approvals.size + externals.size === 0)
        error(failureOf('recovery_limit', report(new OxbowError('recovery_limit', `turn ${turnId} is parked`))))
      else if (approvals.size > 0)
        finish({
          type: 'interrupt',
          interrupts: [...approvals.values()].map((it) =>
            interruptOf(key, it, wire(it.callId), it.origin === undefined ? schemaOf?.(it.tool) : undefined),
          ),
        })
      // The client has everything it needs to run the calls: the run is complete, and their results begin another run.
      else finish({ type: 'success', pendingToolCallIds: [...externals].map(wire) })
      return out.take()
    },
    fail(failure) {
      if (!ended) error(failure)
      return out.take()
    },
    hint(source, text) {
      if (!ended) hint(source, text)
      return out.take()
    },
    get inStep() {
      return step !== undefined
    },
    get reached() {
      return reached
    },
    get ended() {
      return ended
    },
  }
}

type Resolved = Event<'approval.resolved'>

type Outcome = NonNullable<Extract<AgUiFrame, { type: 'RUN_FINISHED' }>['outcome']>

const withTotal = (usage: Usage): Usage & { totalTokens: number } => ({
  ...usage,
  totalTokens: tokensOf(usage),
})

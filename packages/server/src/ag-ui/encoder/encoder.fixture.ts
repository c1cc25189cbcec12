// Items of one turn, and the frames that the encoder writes for them.
import type { Event, EventBody, SessionItem } from '@oxbow/core'
import { type Frame, framesOf } from '../../test.fixture.ts'
import { type RunEncoder, runEncoder } from './encoder.ts'

export const turnId = 't'
export const key = { tenant: 'default', user: 'ann', session: 'thread' }
export function encoder(onRepair = () => {}): RunEncoder {
  const it = runEncoder({ threadId: 'thread', runId: 'run', onRepair, report: () => 'ref-new' })
  it.follows(turnId)
  return it
}

const noTokens = {
  inputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 1,
  reasoningTokens: 0,
  estimated: false,
}
let seq = 0
export const stored = (body: EventBody): Event => ({ ...body, seq: ++seq, at: 0 }) as Event
export const stepStarted = (step = 1): Event => stored({ type: 'step.started', turnId, step, toolsOffered: true })
export const claimed = (epoch: number): Event => stored({ type: 'turn.claimed', turnId, worker: 'w', epoch })
export type Blocks = Extract<EventBody, { type: 'model.finished' }>['message']['blocks']
export const answered = (blocks: Blocks, step = 1): Event =>
  stored({
    type: 'model.finished',
    turnId,
    step,
    message: { id: `${turnId}:${step}`, role: 'assistant', blocks },
    finishReason: 'stop',
    usage: noTokens,
    model: 'm',
    timing: { totalMs: 1 },
  })
export const callDone = (callId: string, more: Partial<Extract<EventBody, { type: 'call.finished' }>> = {}): Event =>
  stored({
    type: 'call.finished',
    turnId,
    callId,
    status: 'success',
    content: [{ type: 'text', text: 'ok' }],
    durationMs: 1,
    ...more,
  })
export const finished = (): Event => stored({ type: 'turn.finished', turnId, reason: 'completed' })
export const text = (block: number, offset: number, fragment: string, step = 1): SessionItem => ({
  type: 'text.delta',
  turnId,
  step,
  block,
  offset,
  text: fragment,
})
export const thinking = (block: number, offset: number, fragment: string): SessionItem => ({
  type: 'thinking.delta',
  turnId,
  step: 1,
  block,
  offset,
  text: fragment,
})
export const call = (block: number, callId: string, tool = 'look'): SessionItem => ({
  type: 'call.delta',
  turnId,
  step: 1,
  block,
  callId,
  tool,
})
export const args = (block: number, callId: string, offset: number, fragment: string): SessionItem => ({
  type: 'arguments.delta',
  turnId,
  step: 1,
  block,
  callId,
  offset,
  text: fragment,
})

export const run = (items: readonly SessionItem[], it = encoder()): Frame[] =>
  framesOf(it.start() + items.map((item) => it.encode(item)).join(''))
export const types = (frames: readonly Frame[]): string[] => frames.map((it) => it.type)
export const deltas = (frames: readonly Frame[], type: string): string =>
  frames
    .filter((it) => it.type === type)
    .map((it) => it.delta)
    .join('')
export const hints = (frames: readonly Frame[]) =>
  frames.filter((it) => it.name === 'hint').map((it) => it.value as { source: string; text: string })

/** A call that waits for an approval. */
export const asked = (callId: string): Event =>
  stored({
    type: 'approval.requested',
    turnId,
    approvalId: `for ${callId}`,
    callId,
    tool: 'look',
    arguments: {},
    digest: 'd',
    rule: 'default:ask',
    reason: 'It writes.',
    suggestions: ['look'],
    expiresAt: 1_000,
  })

import type { SessionItem } from '@oxbow/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { framesOf } from '../../test.fixture.ts'
import { accepted } from '../client.fixture.ts'
import {
  answered,
  asked,
  type Blocks,
  callDone,
  claimed,
  encoder,
  finished,
  key,
  stepStarted,
  stored,
  turnId,
  types,
} from './encoder.fixture.ts'

describe('for any items', () => {
  const id = fc.constantFrom('a', 'b', 'c')
  const block = fc.nat(3)
  const step = fc.integer({ min: 1, max: 2 })
  const words = fc.string({ maxLength: 6 })
  const blocks: fc.Arbitrary<Blocks> = fc.array(
    fc.oneof(
      fc.record({ type: fc.constant('text' as const), text: words }),
      fc.record({ type: fc.constant('thinking' as const), text: words }),
      fc.record({ type: fc.constant('call' as const), callId: id, tool: fc.constant('look'), arguments: words }),
    ),
    { maxLength: 4 },
  )
  const item: fc.Arbitrary<SessionItem> = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constantFrom('text.delta' as const, 'thinking.delta' as const),
        turnId: fc.constant(turnId),
        step,
        block,
        offset: fc.nat(8),
        text: words,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('call.delta' as const),
        turnId: fc.constant(turnId),
        step,
        block,
        callId: id,
        tool: fc.constant('look'),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('arguments.delta' as const),
        turnId: fc.constant(turnId),
        step,
        block,
        callId: id,
        offset: fc.nat(8),
        text: words,
      }),
    },
    fc.record({
      type: fc.constant('progress.delta' as const),
      turnId: fc.constant(turnId),
      step,
      callId: id,
      text: words,
    }),
    step.map(stepStarted),
    fc.integer({ min: 1, max: 3 }).map(claimed),
    fc.tuple(blocks, step).map(([it, at]) => answered(it, at)),
    id.map((it) => callDone(it)),
    id.map((callId) => stored({ type: 'external.requested', turnId, callId, tool: 'ask', arguments: {} })),
    id.map((callId) => asked(callId)),
    id.map((callId) => stored({ type: 'approval.resolved', turnId, approvalId: `for ${callId}`, verdict: 'approved' })),
    fc
      .constantFrom('external' as const, 'approval' as const, 'manual' as const)
      .map((reason) => stored({ type: 'turn.paused', turnId, reason })),
    { weight: 1, arbitrary: fc.constant(undefined).map(finished) },
  )

  test('the encoder writes a stream that the official client accepts, with one end', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(item, { maxLength: 40 }), fc.boolean(), async (items, pauses) => {
        const it = encoder()
        const wire =
          it.start() +
          items.map((one) => it.encode(one)).join('') +
          (pauses
            ? it.pause(key)
            : it.fail({ runError: 'INTERNAL_ERROR', status: 500, code: 'x', message: 'x', reference: undefined }))
        const frames = framesOf(wire)
        await accepted(frames)
        const ends = types(frames).filter((type) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')
        expect(ends).toHaveLength(1)
        expect(types(frames).at(-1)).toBe(ends[0])
        expect(types(frames).indexOf('RUN_STARTED')).toBe(0)
        const started = new Set<unknown>()
        for (const frame of frames) {
          if (frame.type === 'TOOL_CALL_START') started.add(frame.toolCallId)
          if (frame.type === 'TOOL_CALL_RESULT') expect(started).toContain(frame.toolCallId)
        }
      }),
      { numRuns: 300 },
    )
  })
})

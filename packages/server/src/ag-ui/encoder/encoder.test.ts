import type { Event, SessionItem } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { framesOf } from '../../test.fixture.ts'
import { accepted } from '../client.fixture.ts'
import {
  answered,
  args,
  call,
  callDone,
  claimed,
  deltas,
  encoder,
  finished,
  hints,
  key,
  run,
  stepStarted,
  stored,
  text,
  thinking,
  turnId,
  types,
} from './encoder.fixture.ts'
import { PROTOCOL_VERSION } from './frames.ts'

describe('Y6: the stream', () => {
  test('Y6: text and reasoning come one after the other, followed by the usage', async () => {
    const frames = run([
      stepStarted(),
      thinking(0, 0, 'Hm.'),
      text(1, 0, 'Yes'),
      answered([
        { type: 'thinking', text: 'Hm.' },
        { type: 'text', text: 'Yes.' },
      ]),
      finished(),
    ])
    expect(types(frames)).toEqual([
      'RUN_STARTED',
      'REASONING_START',
      'REASONING_MESSAGE_START',
      'REASONING_MESSAGE_CONTENT',
      'REASONING_MESSAGE_END',
      'REASONING_END',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'CUSTOM',
      'RUN_FINISHED',
    ])
    expect(deltas(frames, 'TEXT_MESSAGE_CONTENT')).toBe('Yes.')
    await accepted(frames)
  })

  test('Y6: the answer of a model that does not stream is sent when it is complete', async () => {
    const frames = run([stepStarted(), answered([{ type: 'text', text: 'All at once.' }]), finished()])
    expect(deltas(frames, 'TEXT_MESSAGE_CONTENT')).toBe('All at once.')
    await accepted(frames)
  })

  test('Y6: calls that stream concurrently are both complete, and results follow their calls', async () => {
    const frames = run([
      stepStarted(),
      call(0, 'a'),
      call(1, 'b'),
      args(0, 'a', 0, '{"x"'),
      args(1, 'b', 0, '{}'),
      args(0, 'a', 4, ':1}'),
      answered([
        { type: 'call', callId: 'a', tool: 'look', arguments: '{"x":1}' },
        { type: 'call', callId: 'b', tool: 'look', arguments: '{}' },
      ]),
      callDone('b'),
      callDone('a'),
      finished(),
    ])
    const of = (id: string) => frames.filter((it) => it.toolCallId === id)
    expect(types(of('a'))).toEqual([
      'TOOL_CALL_START',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_END',
      'TOOL_CALL_RESULT',
    ])
    expect(deltas(of('a'), 'TOOL_CALL_ARGS')).toBe('{"x":1}')
    expect(types(of('b'))).toEqual(['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT'])
    await accepted(frames)
  })

  test('Y6: a failed tool call is marked', () => {
    const frames = run([
      stepStarted(),
      answered([{ type: 'call', callId: 'a', tool: 'look', arguments: '{}' }]),
      callDone('a', { status: 'error', error: { code: 'tool_error', message: 'no' } }),
    ])
    expect(frames.at(-1)).toMatchObject({
      type: 'TOOL_CALL_RESULT',
      metadata: { status: 'error', error: 'tool_error' },
    })
  })

  test('Y6: text that continues after another block gets its own message', async () => {
    const frames = run([
      stepStarted(),
      text(0, 0, 'one'),
      thinking(1, 0, 'hm'),
      text(2, 0, 'two'),
      answered([
        { type: 'text', text: 'one' },
        { type: 'thinking', text: 'hm' },
        { type: 'text', text: 'two' },
      ]),
      finished(),
    ])
    const starts = frames.filter((it) => it.type === 'TEXT_MESSAGE_START').map((it) => it.messageId)
    expect(starts).toEqual(['t:1', 't:1.2'])
    await accepted(frames)
  })

  test('Y6: usage is reported per call and as a sum', () => {
    const frames = run([
      stepStarted(),
      answered([{ type: 'text', text: 'a' }]),
      stepStarted(2),
      answered([{ type: 'text', text: 'b' }], 2),
    ])
    const figures = frames
      .filter((it) => it.name === 'token_usage')
      .map((it) => it.value as { delta: object; cumulative: object })
    expect(figures[1]).toMatchObject({
      delta: { totalTokens: 2 },
      cumulative: { inputTokens: 2, totalTokens: 4 },
      modelCall: { step: 2, model: 'm' },
    })
  })
})

describe('missed fragments', () => {
  test('are sent when the answer is stored', async () => {
    const repairs: number[] = []
    const frames = run(
      [
        stepStarted(),
        text(0, 0, 'one '),
        text(0, 8, 'three'),
        answered([{ type: 'text', text: 'one two three' }]),
        finished(),
      ],
      encoder(() => repairs.push(1)),
    )
    expect(deltas(frames, 'TEXT_MESSAGE_CONTENT')).toBe('one two three')
    expect(repairs).toHaveLength(1)
    await accepted(frames)
  })

  test('are not repeated when the earlier part of the step arrives again', () => {
    const frames = run([
      stepStarted(),
      text(0, 0, 'one '),
      text(0, 0, 'one two '),
      text(0, 4, 'two '),
      text(0, 8, 'three'),
      answered([{ type: 'text', text: 'one two three' }]),
    ])
    expect(deltas(frames, 'TEXT_MESSAGE_CONTENT')).toBe('one two three')
  })

  test('of an unannounced call are sent with the stored answer', async () => {
    const frames = run([
      stepStarted(),
      args(0, 'a', 2, '}'),
      answered([{ type: 'call', callId: 'a', tool: 'look', arguments: '{ }' }]),
      callDone('a'),
      finished(),
    ])
    expect(types(frames).filter((it) => it.startsWith('TOOL'))).toEqual([
      'TOOL_CALL_START',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_END',
      'TOOL_CALL_RESULT',
    ])
    await accepted(frames)
  })

  test('of an incomplete answer, which has lost its calls, go to the right blocks', async () => {
    const frames = run([
      stepStarted(),
      text(0, 0, 'one'),
      call(1, 'a'),
      args(1, 'a', 0, '{"ha'),
      text(2, 0, 'tw'),
      answered([
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ]),
      stored({ type: 'turn.cancelled', turnId, reason: 'x' }),
    ])
    expect(deltas(frames, 'TEXT_MESSAGE_CONTENT')).toBe('onetwo')
    await accepted(frames)
  })
})

describe('a repeated step', () => {
  const broken = () => [stepStarted(), text(0, 0, 'Half an ans'), call(1, 'a'), args(1, 'a', 0, '{"x'), claimed(2)]

  test('closes the open blocks, sends a hint, and begins under new ids', async () => {
    const frames = run([
      ...broken(),
      text(0, 0, 'Whole.'),
      answered([
        { type: 'text', text: 'Whole.' },
        { type: 'call', callId: 'a', tool: 'look', arguments: '{}' },
      ]),
      callDone('a'),
      finished(),
    ])
    expect(hints(frames).map((it) => it.source)).toEqual(['step_restarted'])
    const starts = frames.filter((it) => it.type === 'TEXT_MESSAGE_START').map((it) => it.messageId)
    expect(starts).toEqual(['t:1', 't:1.e2'])
    expect(frames.find((it) => it.type === 'TOOL_CALL_RESULT')).toMatchObject({ toolCallId: 'a.e2' })
    await accepted(frames)
  })

  test('has the same ids for a later reader', () => {
    const events = [...broken(), answered([{ type: 'call', callId: 'a', tool: 'look', arguments: '{}' }])].filter(
      (it) => 'seq' in it,
    )
    const late = encoder()
    for (const it of events) late.seen(it as Event)
    expect(framesOf(late.encode(callDone('a')))).toMatchObject([{ type: 'TOOL_CALL_RESULT', toolCallId: 'a.e2' }])
  })
})

describe('Y5: the end', () => {
  test('Y5: is sent once, and nothing follows it', async () => {
    const frames = run([stepStarted(), text(0, 0, 'one'), finished(), finished(), text(0, 3, 'two'), answered([])])
    expect(types(frames)).toEqual([
      'RUN_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_FINISHED',
    ])
    await accepted(frames)
  })

  test.each([
    ['total_timeout', 'TIMEOUT_ERROR'],
    ['idle_timeout', 'TIMEOUT_ERROR'],
    ['first_byte_timeout', 'TIMEOUT_ERROR'],
    ['context_overflow', 'INVALID_INPUT_ERROR'],
    ['auth', 'INTERNAL_ERROR'],
    ['whatever', 'INTERNAL_ERROR'],
  ])('Y5: a turn that failed with %s is a %s with a reference and without the original message', (code, runError) => {
    const frames = run([
      stored({
        type: 'turn.failed',
        turnId,
        error: { code, message: 'secret words of the provider', reference: 'ref-1' },
      }),
    ])
    expect(frames.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: runError })
    expect(frames.at(-1)?.message).toMatch(/ref-1/)
    expect(frames.at(-1)?.message).not.toMatch(/secret/)
  })

  test('Y5: a stopped turn is an INTERRUPTED_ERROR', () => {
    expect(run([stored({ type: 'turn.cancelled', turnId, reason: 'x' })]).at(-1)).toMatchObject({
      type: 'RUN_ERROR',
      code: 'INTERRUPTED_ERROR',
    })
  })

  test('a run that stops for the client’s calls is a success that lists every open call', async () => {
    const it = encoder()
    const started = run(
      [
        stepStarted(),
        answered([
          { type: 'call', callId: 'a', tool: 'ask', arguments: '{}' },
          { type: 'call', callId: 'b', tool: 'ask', arguments: '{}' },
          { type: 'call', callId: 'c', tool: 'look', arguments: '{}' },
        ]),
        stored({ type: 'external.requested', turnId, callId: 'a', tool: 'ask', arguments: { q: 1 } }),
        stored({ type: 'external.requested', turnId, callId: 'b', tool: 'ask', arguments: { q: 2 } }),
        callDone('c'),
        stored({ type: 'turn.paused', turnId, reason: 'external' }),
      ],
      it,
    )
    const frames = [...started, ...framesOf(it.pause(key))]
    expect(frames.at(-1)).toMatchObject({
      type: 'RUN_FINISHED',
      outcome: { type: 'success', pendingToolCallIds: ['a', 'b'] },
    })
    await accepted(frames)
  })

  test('a manually paused turn is an INTERRUPTED_ERROR', () => {
    const it = encoder()
    run([stored({ type: 'turn.paused', turnId, reason: 'manual' })], it)
    expect(framesOf(it.pause(key))).toMatchObject([{ type: 'RUN_ERROR', code: 'INTERRUPTED_ERROR' }])
  })

  test('a parked turn is an error, not silence', () => {
    const it = encoder()
    run([stored({ type: 'turn.paused', turnId, reason: 'recovery_limit' })], it)
    expect(framesOf(it.pause(key))).toMatchObject([{ type: 'RUN_ERROR', code: 'INTERNAL_ERROR' }])
  })
})

describe('Y6: hints', () => {
  const withCall = (...items: SessionItem[]) => [
    stepStarted(),
    answered([1, 2, 3].map((n) => ({ type: 'call', callId: `c${n}`, tool: 'look', arguments: '{}' }))),
    ...items,
  ]

  test.each<[string, SessionItem[]]>([
    [
      'steering',
      [
        stored({
          type: 'turn.steered',
          turnId,
          inputId: 'i',
          input: [{ type: 'text', text: 'and now this' }],
          principal: { user: 'u' },
        }),
        stepStarted(2),
      ],
    ],
    [
      'context_compacted',
      [
        stored({
          type: 'context.compacted',
          turnId,
          step: 1,
          reason: 'threshold',
          tier: 'references',
          tokensBefore: 9,
          tokensAfter: 3,
          messagesBefore: 2,
          messagesAfter: 2,
          parts: {},
          messages: [],
        }),
      ],
    ],
    [
      'citation_unknown',
      [
        stored({
          type: 'reply.reviewed',
          turnId,
          step: 1,
          code: 'citation_unknown',
          message: 'It cites what was not retrieved.',
          items: ['a.md#0'],
        }),
      ],
    ],
    ['output_rejected', [stored({ type: 'output.rejected', turnId, step: 1, message: 'not JSON' })]],
    ['unknown_outcome', withCall(callDone('c1', { status: 'unknown' }))],
    ['artifact', withCall(callDone('c1', { artifact: { id: 'art', bytes: 10 } }))],
    [
      'tool_given_up',
      withCall(
        callDone('c1', { status: 'error' }),
        callDone('c2', { status: 'timed_out' }),
        callDone('c3', { status: 'error' }),
      ),
    ],
    ['progress', withCall({ type: 'progress.delta', turnId, step: 1, callId: 'c1', text: 'half way' })],
  ])('Y6: report %s', (source, items) => {
    expect(hints(run(items)).map((it) => it.source)).toContain(source)
  })
})

describe('id lines', () => {
  const idsAndTypes = (wire: string) =>
    wire
      .trim()
      .split('\n\n')
      .map((part) => [/^id: (\d+)/.exec(part)?.[1], JSON.parse(part.slice(part.indexOf('data: ') + 6)).type])

  test('carry the number of an event with the last frame of that event', () => {
    const it = encoder()
    const started = stepStarted()
    const end = answered([{ type: 'text', text: 'ab' }])
    const wire = it.encode(started) + it.encode(text(0, 0, 'a')) + it.encode(end)
    expect(idsAndTypes(wire)).toEqual([
      [String(started.seq), 'TEXT_MESSAGE_START'],
      [undefined, 'TEXT_MESSAGE_CONTENT'],
      [undefined, 'TEXT_MESSAGE_CONTENT'],
      [undefined, 'TEXT_MESSAGE_END'],
      [String(end.seq), 'CUSTOM'],
    ])
  })
})

test('the protocol version is the version of the package', async () => {
  expect(PROTOCOL_VERSION).toBe((await import('@ag-ui/core')).PROTOCOL_VERSION)
})

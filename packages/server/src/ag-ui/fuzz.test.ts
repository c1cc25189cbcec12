// Random runs over HTTP, checked by the official client and for exactly one end, in last place.
import { tool } from '@oxbow/core'
import { gate, type Reply } from '@oxbow/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endOf, json, type Rig, rig } from '../test.fixture.ts'
import { runClient } from './client.fixture.ts'

const words = fc.stringMatching(/^[a-z]{1,5}( [a-z]{1,5}){0,8}$/)
const someCall = fc.record({
  name: fc.constantFrom('look', 'fail', 'long', 'invented'),
  arguments: fc.constantFrom<unknown>({ at: 'the sky' }, {}, '{"at": "half', 'null', '[]'),
})
const fault: fc.Arbitrary<Partial<Reply>> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  fc.nat(6).map((cutAfterChunks) => ({ cutAfterChunks })),
  fc.nat(4).map((garbageAt) => ({ garbageAt })),
  fc.constant({ error: { message: 'no' } }),
  fc.constant({ status: 500, body: 'no' }),
  fc.constant({ finishReason: 'length' }),
)
const reply: fc.Arbitrary<Reply> = fc
  .record(
    { thinking: words, text: words, calls: fc.array(someCall, { minLength: 1, maxLength: 3 }) },
    { requiredKeys: [] },
  )
  .chain((content) => fault.map((it) => ({ ...content, ...it })))
const script = fc.record({
  replies: fc.array(reply, { minLength: 1, maxLength: 4 }),
  /** The run is stopped when the first answer has sent this many chunks. */
  interruptAt: fc.option(fc.nat(3), { freq: 4, nil: undefined }),
})

const input = { type: 'object', properties: { at: { type: 'string' } } }
const tools = [
  tool({ name: 'look', description: 'Looks.', effects: ['read'], input, run: ({ at }) => `seen ${at}` }),
  tool({
    name: 'long',
    description: 'Returns a long text.',
    effects: ['read'],
    input,
    run: () => 'much '.repeat(4_000),
  }),
  tool({
    name: 'fail',
    description: 'Fails.',
    effects: ['read'],
    input,
    run: () => {
      throw new Error('no')
    },
  }),
]

let service: Rig
let queue: Reply[] = []
beforeAll(async () => {
  service = await rig({ agent: { tools }, replies: () => queue.shift() ?? { text: 'The end.' } })
})
afterAll(() => service.close())

describe('Y5, Y6: for any behaviour of the model', () => {
  test('the official client accepts the stream, and it has one end', async () => {
    let runs = 0
    const ends = new Set<string>()
    await fc.assert(
      fc.asyncProperty(script, async ({ replies, interruptAt }) => {
        const threadId = `fuzz-${++runs}`
        const held = gate()
        const [first, ...rest] = replies
        queue =
          interruptAt === undefined ? [...replies] : [{ ...first, hold: { atChunk: interruptAt, gate: held } }, ...rest]
        const running = runClient({ url: `${service.url}/api/chat/stream`, threadId })
        if (interruptAt !== undefined) {
          // The answer may be shorter than that; then nothing is stopped.
          const reached = await Promise.race([held.reached.then(() => true), running.then(() => false)])
          if (reached) await service.post(`/api/sessions/${threadId}/interrupt`, {})
          held.open()
        }
        const { events, messages, error } = await running
        expect(error).toBeUndefined()
        const end = endOf(events)
        ends.add(`${end.type} ${end.code ?? ''}`)
        if (end.type !== 'RUN_FINISHED') return

        // The client's conversation equals the stored one.
        const stored = (await json(service.get(`/api/sessions/${threadId}/messages`))).messages as {
          role: string
          blocks: { type: string; text?: string }[]
        }[]
        const text = (role: string) =>
          stored
            .filter((it) => it.role === role)
            .flatMap((it) => it.blocks.filter((one) => one.type === 'text').map((one) => one.text))
            .join('')
        expect(
          messages
            .filter((it) => it.role === 'assistant')
            .map((it) => it.content ?? '')
            .join(''),
        ).toBe(text('assistant'))
        const results = stored.filter((it) => it.role === 'tool').flatMap((it) => it.blocks)
        expect(messages.filter((it) => it.role === 'tool')).toHaveLength(results.length)
      }),
      { numRuns: 150 },
    )
    // The runs covered all kinds of ends.
    expect([...ends].toSorted()).toEqual(['RUN_ERROR INTERNAL_ERROR', 'RUN_ERROR INTERRUPTED_ERROR', 'RUN_FINISHED '])
  })

  test('an interrupted stream is distinguished from a complete one, which the official client does not do', async () => {
    const wire = 'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n'
    const { events, error } = await runClient({ wire })
    expect(error).toBeUndefined()
    expect(() => endOf(events)).toThrow(/not one end/)
  })
})

test('Y3: the official client accepts id lines and comments', async () => {
  const wire =
    ': comment\n\nid: 1\ndata: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n: keep-alive\n\nid: 2\ndata: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n\n'
  const { events, error } = await runClient({ wire })
  expect(error).toBeUndefined()
  expect(events.map((it) => it.type)).toEqual(['RUN_STARTED', 'RUN_FINISHED'])
})

test('Y6: aborting a run in the official client stops the turn', async () => {
  const held = gate()
  const own = await rig({
    replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
    overrides: { 'server.disconnectGrace': '0ms' },
  })
  const signal = new AbortController()
  const running = runClient({ url: `${own.url}/api/chat/stream`, signal })
  await held.reached
  signal.abort()
  await own.model.requests[0]?.waitForAbort()
  await running
  expect(own.model.requests[0]?.aborted).toBe(true)
  await own.close()
})

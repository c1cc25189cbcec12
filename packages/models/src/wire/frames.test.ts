// Which parts of a body count as frames, as signs of life, and as error messages.
import { describe, expect, test } from 'vitest'
import {
  anthropicAt,
  ask,
  askInVain,
  frame,
  modelAt,
  namedEvents,
  responsesAt,
  serve,
  sse,
  text,
} from '../asking.fixture.ts'
import { guardModel, withFallbacks } from '../index.ts'
import { service } from '../service.fixture.ts'

const piece = (content: string) => JSON.stringify(frame({ content }))
const end = sse([frame({}, 'stop')])

describe('B1: a frame counts however its JSON starts', () => {
  test.each([
    ['two spaces', `data:  ${piece('llo')}\n\n`],
    ['a tab', `data:\t${piece('llo')}\n\n`],
    ['an empty first line', `data:\ndata: ${piece('llo')}\n\n`],
    [
      'line feeds within',
      `data: ${JSON.stringify(frame({ content: 'llo' }), undefined, 1).replaceAll('\n', '\ndata: ')}\n\n`,
    ],
  ])('%s', async (_, raw) => {
    const { reply } = await ask(modelAt(await serve({ raw: [Buffer.from(`data: ${piece('he')}\n\n${raw}${end}`)] })))
    expect(text(reply)).toBe('hello')
  })

  test('the other formats do the same', async () => {
    const message = namedEvents([
      { type: 'message_start', message: { id: '1', model: 'm' } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
      { type: 'message_stop' },
    ])
    const response = namedEvents([
      { type: 'response.output_text.delta', output_index: 0, item_id: 'i', delta: 'hello' },
      { type: 'response.completed', response: { status: 'completed' } },
    ])
    for (const [at, raw] of [
      [anthropicAt, message],
      [responsesAt, response],
    ] as const) {
      const { reply } = await ask(at(await serve({ raw: raw.replaceAll('data: ', 'data:\t ') })))
      expect(text(reply)).toBe('hello')
    }
  })

  test('`[DONE]` ends the answer even with space around it', async () => {
    const { reply } = await ask(modelAt(await serve({ raw: `data: ${piece('hello')}\n\ndata:  [DONE] \n\n` })))
    expect(text(reply)).toBe('hello')
  })
})

describe('B1: a request that the provider queues', () => {
  const comments = (count: number) => Array.from({ length: count }, () => ': keep-alive\n\n')

  test('waits as long as comments arrive before the first frame', async () => {
    const server = await service(() => ({
      headers: { 'content-type': 'text/event-stream' },
      parts: [...comments(16), `data: ${piece('hello')}\n\n`, end],
      everyMs: 25,
    }))
    const { reply } = await ask(modelAt(server, { timeouts: { idleMs: 200 } }))
    expect(text(reply)).toBe('hello')
  })

  test('that is never answered ends at the total limit, which the breaker ignores', async () => {
    const server = await service(() => ({
      headers: { 'content-type': 'text/event-stream' },
      parts: comments(40),
      everyMs: 5,
    }))
    const model = guardModel(modelAt(server, { timeouts: { idleMs: 100, totalMs: 60 } }), { breaker: { minimum: 1 } })
    for (let i = 0; i < 2; i++) {
      const { error } = await askInVain(model)
      expect(error).toMatchObject({ code: 'total_timeout', retryable: true, details: { queued: true } })
    }
    expect(model.health().breaker).toBe('closed')
  })
})

describe('B1: an error message outside a frame', () => {
  const tooLong = 'prompt is too long: 213462 tokens > 200000 maximum'
  test.each([
    ['a line of the stream', `error: {"message": "${tooLong}"}\n\n`],
    ['plain text in an error event', `event: error\ndata: ${tooLong}\n\n`],
    ['a list', `data: [{"error": {"message": "${tooLong}"}}]\n\n`],
    ['a list as the whole body', `[{"error": {"message": "${tooLong}"}}]`],
    ['plain text with status 200', tooLong],
    ['a bare object', `event: error\ndata: {"message": "${tooLong}"}\n\n`],
  ])('is kept and recognised: %s', async (_, raw) => {
    for (const at of [modelAt, anthropicAt, responsesAt]) {
      const { error } = await askInVain(at(await serve({ raw: [Buffer.from(raw)] })))
      expect(error).toMatchObject({ code: 'context_overflow', message: expect.stringContaining(tooLong) })
    }
  })

  test('an unknown one is kept, and the request is retried', async () => {
    const server = await serve({ raw: [Buffer.from('upstream connect error')] }, { text: 'better' })
    const failed: string[] = []
    const model = withFallbacks(modelAt(server), { retry: { baseMs: 1 } })
    const reply = await model.generate(
      { system: '', messages: [], tools: [] },
      { signal: AbortSignal.timeout(5_000), onDelta() {}, onFailedAttempt: ({ message }) => failed.push(message) },
    )
    expect(text(reply)).toBe('better')
    expect(failed).toEqual([expect.stringContaining('upstream connect error')])
  })

  test('signs of life that are not JSON do not disturb an answer', async () => {
    const raw = `data: ping\n\ndata: ${piece('hello')}\n\nOK\n\ndata: "pong"\n\n${end}`
    expect(text((await ask(modelAt(await serve({ raw })))).reply)).toBe('hello')
  })
})

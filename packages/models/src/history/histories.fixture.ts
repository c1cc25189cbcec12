// Histories for tests: short constructors, and random ones, valid or not.
import type { Block, CallBlock, Message, ResultBlock } from '@oxbow/core'
import fc from 'fast-check'

export const text = (value: string): Block => ({ type: 'text', text: value })
export const call = (callId: string): CallBlock => ({ type: 'call', callId, tool: 'add', arguments: '{}' })
export const result = (callId: string, value = 'done'): ResultBlock => ({
  type: 'result',
  callId,
  tool: 'add',
  status: 'success',
  content: [{ type: 'text', text: value }],
})
let count = 0
const message = (role: Message['role'], ...blocks: Block[]): Message => ({ id: `m${++count}`, role, blocks })
export const user = (...blocks: Block[]) => message('user', ...blocks)
export const assistant = (...blocks: Block[]) => message('assistant', ...blocks)
export const tool = (...blocks: Block[]) => message('tool', ...blocks)

const id = fc.constantFrom('', 'a', 'b', 'c', 'a~2', 'call~2')
const words = fc.constantFrom('', ' ', '\n', 'x', 'one', 'two words')
const thinking: fc.Arbitrary<Block> = fc.record(
  {
    type: fc.constant('thinking' as const),
    text: words,
    signature: fc.constantFrom('s', 't'),
    redacted: fc.constant('sealed'),
  },
  { requiredKeys: ['type', 'text'] },
)
const anyBlock: fc.Arbitrary<Block> = fc.oneof(
  words.map((value): Block => text(value)),
  thinking,
  fc.constant<Block>({ type: 'data', mediaType: 'image/png', url: 'https://example.com/a.png' }),
  fc.tuple(id, fc.constantFrom('{}', '{"a":1}', '', '[1]', '{"a":')).map(
    ([callId, args]): Block => ({
      ...call(callId),
      arguments: args,
    }),
  ),
  fc.tuple(id, words).map(([callId, value]): Block => result(callId, value)),
)
const writer = fc.constantFrom('test:any', 'other:model')
const anyMessage: fc.Arbitrary<Message> = fc.record(
  {
    id: fc.string({ maxLength: 3 }),
    role: fc.constantFrom('user' as const, 'assistant' as const, 'tool' as const),
    blocks: fc.array(anyBlock, { maxLength: 5 }),
    model: writer,
  },
  { requiredKeys: ['id', 'role', 'blocks'] },
)
/** Mostly valid, so that long runs of pairing are reached, with one or two defects. */
const nearlySound = fc
  .array(fc.tuple(fc.array(id, { minLength: 1, maxLength: 3 }), fc.array(thinking, { maxLength: 2 }), writer), {
    maxLength: 6,
  })
  .chain((steps) => {
    const history = steps.flatMap(([ids, thoughts, model]): Message[] => [
      user(text('question')),
      { ...assistant(...thoughts, text('let me see'), ...ids.map(call)), model },
      tool(...ids.map((callId) => result(callId))),
    ])
    return fc.subarray(history, { minLength: Math.max(0, history.length - 3) })
  })

/** Any history, frozen. Some messages are by the model `test:any`, some by another, some without a model. */
export const histories: fc.Arbitrary<Message[]> = fc
  .oneof(
    fc.array(anyMessage, { maxLength: 12 }),
    nearlySound,
    fc
      .shuffledSubarray([...'abc'])
      .map((ids) => [
        assistant(...ids.map(call)),
        user(text('steer')),
        tool(...ids.toReversed().map((it) => result(it))),
      ]),
  )
  .map(deepFreeze)

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}

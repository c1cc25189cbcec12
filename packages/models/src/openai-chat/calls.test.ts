// How providers stream tool calls, each as its fragments.
import { expect, test } from 'vitest'
import { askInVain, calls, frame, modelAt, read, serve, sse } from '../asking.fixture.ts'

type Fragment = Record<string, unknown> | null
const fn = (name?: string, args?: unknown) => ({
  function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) },
})

const assembled = async (...frames: Fragment[][]) =>
  calls((await read([...frames.map((fragments) => frame({ tool_calls: fragments })), frame({}, 'tool_calls')])).reply)

test('parallel calls by index, fragments interleaved and without ids after the first', async () => {
  expect(
    await assembled(
      [{ index: 0, id: 'a', ...fn('f', '') }],
      [{ index: 1, id: 'b', ...fn('g', '') }],
      [{ index: 1, ...fn(undefined, '{"y"') }],
      [{ index: 0, ...fn(undefined, '{"x":1}') }],
      [{ index: 1, ...fn(undefined, ':2}') }],
    ),
  ).toEqual([
    ['f', '{"x":1}'],
    ['g', '{"y":2}'],
  ])
})

test('the provider’s call ids are not passed on', async () => {
  const { reply } = await read([frame({ tool_calls: [{ index: 0, id: 'theirs', ...fn('f', '{}') }] })])
  expect(reply.blocks).toEqual([{ type: 'call', callId: '', tool: 'f', arguments: '{}' }])
})

test('an index that starts at 1 does not leave a gap', async () => {
  expect(await assembled([{ index: 1, id: 'a', ...fn('f', '{') }], [{ index: 1, ...fn(undefined, '}') }])).toEqual([
    ['f', '{}'],
  ])
})

test('index 0 for each parallel call: a new id is a new call', async () => {
  expect(
    await assembled(
      [{ index: 0, id: 'a', ...fn('f', '') }],
      [{ index: 0, ...fn(undefined, '{"x":1}') }],
      [{ index: 0, id: 'b', ...fn('f', '') }],
      [{ index: 0, ...fn(undefined, '{"x":2}') }],
    ),
  ).toEqual([
    ['f', '{"x":1}'],
    ['f', '{"x":2}'],
  ])
})

test('index 0 for each parallel call without ids: a complete call and a new name is a new call', async () => {
  expect(
    await assembled(
      [{ index: 0, ...fn('f', '{"x":1}') }],
      [{ index: 0, ...fn('g', '{"y":2}') }],
      [{ index: 0, ...fn('g', '{"y":3}') }],
    ),
  ).toEqual([
    ['f', '{"x":1}'],
    ['g', '{"y":2}'],
    ['g', '{"y":3}'],
  ])
})

test('an id that is repeated on each fragment continues its call', async () => {
  expect(
    await assembled(
      [{ index: 0, id: 'a', ...fn('f', '{"x"') }],
      [{ index: 0, id: 'a', ...fn('f', ':1') }],
      [{ index: 0, id: 'a', ...fn(undefined, '}') }],
    ),
  ).toEqual([['f', '{"x":1}']])
})

test('a name that is repeated on each fragment without an id continues its call', async () => {
  expect(
    await assembled(
      [{ index: 0, ...fn('f', '{"x"') }],
      [{ index: 0, ...fn('f', ':1}') }],
      [{ index: 0, ...fn('f', '') }],
    ),
  ).toEqual([['f', '{"x":1}']])
})

test.each(['', 'null', null, undefined])('the id %j counts as missing', async (id) => {
  expect(await assembled([{ index: 0, id: 'a', ...fn('f', '{"x"') }], [{ index: 0, id, ...fn('', ':1}') }])).toEqual([
    ['f', '{"x":1}'],
  ])
  expect(
    await assembled([
      { id, ...fn('f', '{}') },
      { id, ...fn('g', '{}') },
    ]),
  ).toEqual([
    ['f', '{}'],
    ['g', '{}'],
  ])
  expect(
    await assembled([
      { index: 0, id, ...fn('f', '{}') },
      { index: 1, id, ...fn('g', '{}') },
    ]),
  ).toEqual([
    ['f', '{}'],
    ['g', '{}'],
  ])
})

test('ids that change with each fragment continue the call', async () => {
  expect(
    await assembled([{ index: 0, id: 'a', ...fn('f', '{"x"') }], [{ index: 0, id: 'b', ...fn(undefined, ':1}') }]),
  ).toEqual([['f', '{"x":1}']])
})

test('one id for two calls at two indexes is two calls', async () => {
  expect(await assembled([{ index: 0, id: 'a', ...fn('f', '{}') }], [{ index: 1, id: 'a', ...fn('g', '{}') }])).toEqual(
    [
      ['f', '{}'],
      ['g', '{}'],
    ],
  )
})

test('without an index the id decides, then the place in the frame, then the last call', async () => {
  expect(
    await assembled(
      [{ id: 'a', ...fn('f', '{"x"') }],
      [{ id: 'b', ...fn('g', '{"y"') }],
      [{ id: 'a', ...fn(undefined, ':1}') }],
      [fn(undefined, ':2}')],
    ),
  ).toEqual([
    ['f', '{"x":1}'],
    ['g', '{"y":2}'],
  ])
  expect(await assembled([fn('f', '{"x"'), fn('g', '{"y"')], [fn(undefined, ':1}'), fn(undefined, ':2}')])).toEqual([
    ['f', '{"x":1}'],
    ['g', '{"y":2}'],
  ])
})

test('several whole calls in one frame without ids and indexes, arguments as objects (Ollama)', async () => {
  expect(await assembled([fn('f', { x: 1 }), fn('g', {}), fn('f', { x: 2 })])).toEqual([
    ['f', '{"x":1}'],
    ['g', '{}'],
    ['f', '{"x":2}'],
  ])
})

test('a tool without parameters keeps its empty arguments: the engine knows what is required', async () => {
  expect(await assembled([{ index: 0, id: 'a', ...fn('f', '') }], [{ index: 0, ...fn(undefined, null) }])).toEqual([
    ['f', ''],
  ])
})

test.each(['{}{}{}', '{"n":?}', '{"a":1}<|call|>', '[1]', 'null', '"text"', '{"a":'])(
  'broken arguments `%s` are kept unchanged',
  async (args) => {
    expect(await assembled([{ index: 0, id: 'a', ...fn('f', '') }], [{ index: 0, ...fn(undefined, args) }])).toEqual([
      ['f', args],
    ])
  },
)

test('concatenated objects in fragments stay one text', async () => {
  const piece = [{ index: 0, ...fn(undefined, '{}') }]
  expect(await assembled([{ index: 0, id: 'a', ...fn('f', '{}') }], piece, piece)).toEqual([['f', '{}{}{}']])
})

test('arguments that are a list or a number are reported as their JSON', async () => {
  expect(
    await assembled([
      { index: 0, id: 'a', ...fn('f', [1, 2]) },
      { index: 1, id: 'b', ...fn('g', 7) },
    ]),
  ).toEqual([
    ['f', '[1,2]'],
    ['g', '7'],
  ])
})

test('a call waits for a name that comes after its id and first arguments', async () => {
  const { reply, deltas } = await read([
    frame({ tool_calls: [{ index: 0, id: 'a', ...fn(undefined, '{"x"') }] }),
    frame({ tool_calls: [{ index: 0, ...fn('f', ':1}') }] }),
  ])
  expect(calls(reply)).toEqual([['f', '{"x":1}']])
  expect(deltas).toEqual([
    { type: 'call', block: 0, tool: 'f' },
    { type: 'arguments', block: 0, text: '{"x":1}' },
  ])
})

test('arguments without a tool name become a nameless call, which the engine refuses', async () => {
  expect(await assembled([{ index: 0, id: 'a', ...fn(undefined, '{"x":1}') }])).toEqual([['', '{"x":1}']])
})

test('null and empty fragments are ignored', async () => {
  expect(
    await assembled([null, { index: 0, id: 'a', ...fn('f', '{}') }], [{ index: 1 }], [{ index: 0, function: null }]),
  ).toEqual([['f', '{}']])
})

test('text between calls has its own block', async () => {
  const { reply } = await read([
    frame({ content: 'first' }),
    frame({ tool_calls: [{ index: 0, id: 'a', ...fn('f', '{}') }] }),
    frame({ content: 'then' }),
    frame({ tool_calls: [{ index: 1, id: 'b', ...fn('g', '{}') }] }),
  ])
  expect(reply.blocks.map((block) => block.type)).toEqual(['text', 'call', 'text', 'call'])
})

test.each([
  [
    ['{"x":"}\\"}', '"}', '{"y":1}'],
    ['{"x":"}\\"}"}', '{"y":1}'],
  ],
  [
    [' {"x": [{}]', ' } ', '{"y":1}'],
    [' {"x": [{}] } ', '{"y":1}'],
  ],
  [
    ['{}', '{', '}'],
    ['{}', '{}'],
  ],
  [['{"x":?', '}', '{}'], ['{"x":?}{}']],
  [['[', '{}]', '{}'], ['[{}]{}']],
  [['nul', 'l', '{}'], ['null{}']],
  [['"{', '}"', '{}'], ['"{}"{}']],
  [['}', '{}', '{}'], ['}{}{}']],
  [['{"x":{', '}', '{}'], ['{"x":{}{}']],
])('a name repeated with each of %j opens a new call only after a whole object', async (pieces, expected) => {
  const args = await assembled(...pieces.map((piece) => [{ index: 0, ...fn('f', piece) }]))
  expect(args.map(([, text]) => text)).toEqual(expected)
})

test('a name on each of many fragments does not cost more than a name on one', async () => {
  const time = async (name: string | undefined) => {
    const pieces = ['{"x":"', ...Array.from({ length: 20_000 }, () => '}'.repeat(20)), '"}']
    const frames = pieces.map((piece, i) => frame({ tool_calls: [{ index: 0, ...fn(i === 0 ? 'f' : name, piece) }] }))
    const start = performance.now()
    const { reply } = await read([...frames, frame({}, 'tool_calls')])
    expect(calls(reply)).toEqual([['f', pieces.join('')]])
    return performance.now() - start
  }
  const plain = await time(undefined)
  expect(await time('f')).toBeLessThan(4 * plain + 200)
})

test.each([
  ['in one frame', (all: Fragment[]) => [frame({ tool_calls: all })]],
  ['in many frames', (all: Fragment[]) => all.map((one) => frame({ tool_calls: [one] }))],
  ['in one document', (all: Fragment[]) => [{ choices: [{ message: { tool_calls: all } }] }]],
])('too many calls, %s, are an error that keeps the first ones', async (_, framesOf) => {
  const all = (count: number) =>
    Array.from({ length: count }, (_it, index) => ({ index, id: `c${index}`, ...fn('f', '{}') }))
  expect(calls((await read([...framesOf(all(512)), frame({}, 'stop')])).reply)).toHaveLength(512)
  const { error } = await askInVain(modelAt(await serve({ raw: sse(framesOf(all(30_000))) })))
  expect(error).toMatchObject({
    code: 'provider_error',
    retryable: false,
    message: expect.stringMatching(/more than 512 tool calls .* raise limits\.calls/),
  })
  expect(error.partial?.blocks).toHaveLength(512)
  const model = modelAt(await serve({ raw: sse([...framesOf(all(3)), frame({}, 'stop')]) }), { limits: { calls: 2 } })
  expect((await askInVain(model)).error.message).toContain('more than 2 tool calls')
})

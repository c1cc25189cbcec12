// The helpers for programs that have their own HTTP server.

import { memory } from '@oxbow/backends'
import { type AgentDefinition, agent, createEngine, type TurnStream, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { type Reply, scriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { toResponse, uiInput } from './index.ts'

const streamOf = async (
  replies: readonly Reply[] = [{ text: 'Hello.' }],
  parts: Partial<AgentDefinition> = {},
): Promise<TurnStream> => {
  const model = await scriptedModel({ scripts: { helper: replies } })
  const helper = agent({
    name: 'helper',
    model: openaiChat({ provider: 'test', model: 'helper', baseUrl: model.url }),
    instructions: 'Help.',
    ...parts,
  })
  const engine = createEngine({ backend: memory(), agents: [helper] })
  onTestFinished(async () => {
    await engine.stop(0)
    await model.close()
  })
  return engine.session({ user: 'ann' }).stream('Hi')
}

test.each([undefined, null, {}, 'text', [], { turnId: 't' }, new Response()])(
  'B16: toResponse(%o) says that it needs the stream of a turn',
  (value) => {
    expect(() => toResponse(value as never)).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringContaining('.stream(text)') }),
    )
  },
)

test.each([
  [{ format: 'sse' }, 'format must be one of ag-ui, ui-messages; got "sse"'],
  [{ fromat: 'ag-ui' }, 'unknown field "fromat". Did you mean "format"?'],
  [{ after: -1 }, 'after must be a whole number, 0 or above; got -1'],
  [{ report: true }, 'report must be a function; got true'],
])('B16: toResponse() with %o says what is wrong', async (options, what) => {
  const stream = await streamOf()
  expect(() => toResponse(stream, options as never)).toThrow(
    expect.objectContaining({ code: 'invalid_option', message: `toResponse(): ${what}` }),
  )
  await stream.result
})

test('B16: an error that nobody else logs goes to standard error, and its words not to the reader', async () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => said.mockRestore())
  const stream = await streamOf()
  const broken = {
    turnId: stream.turnId,
    session: stream.session,
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('internal words')) }),
  }
  const text = await toResponse(broken as never).text()
  expect(text).toContain('RUN_ERROR')
  expect(text).not.toContain('internal words')
  expect(said).toHaveBeenCalledWith(
    expect.stringMatching(/^Oxbow, reference /),
    expect.objectContaining({ message: 'internal words' }),
  )
  const [, reference] = /reference ([\w-]+)/.exec(said.mock.calls[0]![0] as string)!
  expect(text).toContain(reference)
  await stream.result
})

const fails = (): never => {
  throw new Error('password of the database')
}
const broken = tool({ name: 'broken', description: 'Fails.', effects: ['read'], input: {}, run: fails })

test.each<[string, Partial<AgentDefinition>]>([
  ['a tool', { tools: [broken] }],
  ['the instructions', { instructions: fails }],
  ['stopWhen', { tools: [broken], stopWhen: fails }],
  ['a middleware around the turn', { middleware: [{ name: 'm', onAgent: fails }] }],
  ['a middleware around the model', { middleware: [{ name: 'm', onModelCall: fails }] }],
  ['a middleware around the tool', { tools: [broken], middleware: [{ name: 'm', onActing: fails }] }],
])('B16: what %s throws does not reach the reader, in either format', async (_, parts) => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => said.mockRestore())
  for (const format of ['ag-ui', 'ui-messages'] as const) {
    const replies = [{ calls: [{ name: 'broken', arguments: '{}' }] }, { text: 'Sorry.' }]
    const text = await toResponse(await streamOf(replies, parts), { format }).text()
    expect(text).toMatch(/reference/i)
    expect(text).not.toContain('password')
  }
  expect(JSON.stringify(said.mock.calls.map(([, error]) => (error as Error).message))).toContain('password')
})

const body = (...parts: unknown[]) => ({ id: 'chat', messages: [{ role: 'assistant' }, { role: 'user', parts }] })

test('B16: uiInput() reads text and files of the last message', () => {
  const { input, decisions } = uiInput(
    body(
      { type: 'text', text: 'What is this?' },
      { type: 'text', text: ' ' },
      { type: 'file', mediaType: 'image/png', filename: 'a.png', url: 'data:image/png;base64,AAEC' },
      { type: 'file', url: 'data:text/plain;charset=utf-8;base64,aGk=' },
      { type: 'source-url', url: 'https://example.com' },
    ),
  )
  expect(input).toEqual([
    { type: 'text', text: 'What is this?' },
    { type: 'data', mediaType: 'image/png', data: 'AAEC', name: 'a.png' },
    { type: 'data', mediaType: 'text/plain', data: 'aGk=' },
  ])
  expect(decisions).toEqual([])
})

test.each(['https://example.com/a.png', 'data:image/png,raw', 'file:///etc/passwd', 7, undefined])(
  'B16: uiInput() refuses a file at %s, which is not in the body',
  (url) => {
    expect(() => uiInput(body({ type: 'file', mediaType: 'image/png', filename: 'a.png', url }))).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringContaining('"a.png"') }),
    )
  },
)

test.each([
  undefined,
  null,
  7,
  {},
  { messages: 'x' },
  { messages: [null] },
  { messages: [{ role: 'user', parts: [null, 3] }] },
])('B16: uiInput(%j) finds nothing', (value) => {
  expect(uiInput(value)).toEqual({ input: [], decisions: [] })
})

// What the functions of a host may throw and answer: nothing of it ends the process, leaves a turn open, or counts as yes.
import { memory } from '@oxbow/backends'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { bench } from '../core.fixture.ts'
import { type AgentDefinition, agent, createEngine, type ToolDefinition, tool } from '../index.ts'

const replies = [{ calls: [{ name: 'look', arguments: '{"city":"Bern"}' }] }, { text: 'done' }]
const look = (more: Partial<ToolDefinition<z.ZodType<{ city: string }>>> = {}) =>
  tool({
    name: 'look',
    description: 'Looks.',
    effects: ['read'],
    input: z.object({ city: z.string() }),
    run: () => 'seen',
    ...more,
  })
const nothing: unknown[] = [undefined, null, 0, 'text']

describe('B2: what is thrown need not be an Error', () => {
  test.each(nothing)('in a tool: %j', async (thrown) => {
    const run = () => {
      throw thrown
    }
    const { session } = await bench(replies, { tools: [look({ run })] })
    const { text, calls } = await session.run('Look.')
    expect(text).toBe('done')
    expect(calls[0]!.status).toBe('error')
  })

  test.each(
    nothing.flatMap((thrown) =>
      (
        [
          ['onActing', 'acting'],
          ['onModelCall', 'a model call'],
          ['onAgent', 'the turn'],
        ] as const
      ).map(([hook, where]) => [thrown, where, hook] as const),
    ),
  )('%j in a middleware around %s fails the turn', async (thrown, _where, hook) => {
    const middleware = {
      name: 'broken',
      [hook]: async () => {
        throw thrown
      },
    }
    const { session, errors } = await bench(replies, { tools: [look()], middleware: [middleware] })
    await expect(session.run('Look.')).rejects.toMatchObject({ code: 'internal_error' })
    expect(errors).toEqual([thrown])
    expect((await session.state()).turn).toBeUndefined()
  })
})

test.each([
  [
    'throws',
    () => {
      throw new Error('from onError')
    },
  ],
  ['rejects', () => Promise.reject(new Error('from onError'))],
])('B2: an onError that %s is reported and ends nothing', async (_how, onError) => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {})
  const run = () => {
    throw new Error('from the tool')
  }
  const { agent: helper } = await bench(replies, { tools: [look({ run })] })
  const engine = createEngine({ backend: memory(), agents: [helper], onError })
  onTestFinished(async () => {
    said.mockRestore()
    await engine.stop(0)
  })
  expect((await engine.session({ user: 'ann' }).run('Look.')).text).toBe('done')
  expect(said).toHaveBeenCalledWith(
    expect.stringContaining('onError failed'),
    expect.objectContaining({ message: 'from onError' }),
    'It was called with:',
    expect.objectContaining({ message: 'from the tool' }),
  )
})

describe('H4: only true and false are answers', () => {
  test.each([[1], ['yes'], [undefined], [Promise.resolve(false)]])('stopWhen: %o fails the turn', async (answer) => {
    const { session } = await bench(replies, { tools: [look()], stopWhen: (() => answer) as never })
    await expect(session.run('Look.')).rejects.toMatchObject({
      code: 'agent_invalid',
      message: expect.stringContaining('stopWhen must answer true or false'),
    })
  })

  test.each([[7], [null], [{ text: 'x' }]])('instructions: %j fails the turn', async (answer) => {
    const { session } = await bench(replies, { instructions: (() => answer) as never })
    await expect(session.run('Look.')).rejects.toMatchObject({
      code: 'agent_invalid',
      message: expect.stringContaining('instructions must return a text'),
    })
  })
})

const never = () => new Promise<never>(() => {})
const hanging: [string, Partial<AgentDefinition>][] = [
  ['check', { tools: [look({ check: never })] }],
  ['matches', { deny: ['look(x)'], tools: [look({ matches: never })] }],
  ['instructions', { instructions: never }],
  ['a schema', { tools: [look({ input: z.object({ city: z.string().refine(never) }) as never })] }],
]
test.concurrent.each(hanging)(
  'Y6: %s that never answers does not outlive the time limit of the turn',
  async (_what, definition) => {
    const { session, engine } = await bench(replies, definition)
    await expect(session.run('Look.', { totalTimeoutMs: 100 })).rejects.toMatchObject({ code: 'total_timeout' })
    expect((await session.state()).turn).toBeUndefined()
    await engine.stop(0)
  },
)

test.each([
  [{ at: new Date(Number.NaN) }, 'attributes.at is an invalid Date'],
  [{ list: [new Map()] }, 'attributes.list[0] is a Map'],
  [{ n: Number.NaN }, 'attributes.n is NaN'],
])('P7: attributes that a restart would lose are refused: %o', async (attributes, what) => {
  const { session } = await bench(replies)
  await expect(session.run('Look.', { attributes })).rejects.toMatchObject({
    code: 'invalid_option',
    message: expect.stringContaining(what),
  })
  expect((await session.state()).seq).toBe(0)
})

test('P7: attributes are those of the moment of the call', async () => {
  const { session } = await bench(replies, { tools: [look()] })
  const attributes = { company: { name: 'Acme' } }
  const running = session.run('Look.', { attributes })
  attributes.company.name = 'Other'
  await running
  const received = (await session.events(0)).find((it) => it.type === 'turn.started')
  expect(received).toMatchObject({ options: { attributes: { company: { name: 'Acme' } } } })
})

test('H4: toolChoice none holds even if the model calls', async () => {
  const run = vi.fn<() => string>()
  const { session } = await bench(replies, { tools: [look({ run })] })
  const { text, calls } = await session.run('Look.', { toolChoice: 'none' })
  expect(text).toBe('done')
  expect(calls).toMatchObject([{ status: 'error', content: [{ text: expect.stringContaining('No more tools') }] }])
  expect(run).not.toHaveBeenCalled()
})

test('B12: an object of schemas is not a schema', () => {
  expect(() => look({ input: { city: z.string() } as never })).toThrow(
    expect.objectContaining({ code: 'tool_invalid', message: expect.stringContaining('z.object({ city: … })') }),
  )
})

test('B12: an invalid Date in a result is an error that names it', async () => {
  const { session } = await bench(replies, { tools: [look({ run: () => ({ at: new Date(Number.NaN) }) as never })] })
  const { calls } = await session.run('Look.')
  expect(calls[0]).toMatchObject({
    status: 'error',
    content: [{ text: 'Error: result.at is an invalid Date, which is not JSON' }],
  })
})

test.each(['9007199254740993', '9.007199254740993e15', '1e400'])(
  'H4: a structured answer that is the number %s is asked for again',
  async (number) => {
    const { session } = await bench([{ text: number }, { text: '12' }])
    const { output } = await session.run('How many?', { output: z.number() })
    expect(output).toBe(12)
  },
)

test('B10: an error of a back end of somebody else has a code, and its words are the cause', async () => {
  const backend = memory()
  const broken = { ...backend, journal: { ...backend.journal, append: () => Promise.reject(new TypeError('secret')) } }
  const { agent: helper } = await bench(replies)
  const engine = createEngine({
    backend: broken,
    agents: [agent({ name: helper.name, model: helper.model, instructions: 'x' })],
  })
  onTestFinished(() => engine.stop(0))
  const error: unknown = await engine
    .session({ user: 'ann' })
    .run('Hi')
    .catch((it: unknown) => it)
  expect(error).toMatchObject({ code: 'storage_error', cause: { message: 'secret' } })
  expect((error as Error).message).not.toContain('secret')
})

// What a program chooses for an agent or for one turn, and how it reads what came of it.
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memory } from '@oxbow/backends'
import { openaiChat } from '@oxbow/models'
import { scriptedModel } from '@oxbow/testing'
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { bench, call, echo } from '../core.fixture.ts'
import {
  agent,
  createEngine,
  externalTool,
  fileBlock,
  resultsOf,
  slot,
  type ToolContext,
  tool,
  userId,
} from '../index.ts'

const area = tool({
  name: 'area',
  description: 'The area of a rectangle.',
  effects: ['read'],
  input: z.object({ width: z.number(), height: z.number().default(1) }),
  output: z.object({ area: z.number() }),
  run: ({ width, height }) => ({ area: width * height }),
})

describe('instructions as a function', () => {
  test('are called for each step, with the principal and the attributes', async () => {
    const { session, server } = await bench([{ text: 'Hello.' }], {
      instructions: ({ principal, attributes }) => `You help ${principal.user} of ${attributes.company}.`,
    })
    await session.run('Hi', { attributes: { company: 'Acme' } })
    expect(JSON.stringify(server.requests[0]?.body)).toContain('You help ann of Acme.')
  })

  test('that throw fail the turn', async () => {
    const { session } = await bench([], {
      instructions: () => {
        throw new Error('no instructions')
      },
    })
    await expect(session.run('Hi')).rejects.toMatchObject({ code: 'internal_error' })
  })
})

describe('stopWhen', () => {
  test('ends the turn after the step, with the reason stopped', async () => {
    const { session, server } = await bench([call('echo', { text: 'a' }), { text: 'Not asked for.' }], {
      tools: [echo],
      stopWhen: ({ calls }) => calls.some((it) => it.tool === 'echo' && it.status === 'success'),
    })
    expect(await session.run('Go.')).toMatchObject({ status: 'finished', reason: 'stopped' })
    expect(server.requests).toHaveLength(1)
  })
})

describe('options of one turn', () => {
  const forced = (server: { requests: readonly { body: unknown }[] }): unknown[] =>
    server.requests.map((it) => (it.body as { tool_choice?: unknown }).tool_choice)

  test('toolChoice forces the first model call only', async () => {
    const { session, server } = await bench([call('echo', { text: 'a' }), { text: 'Done.' }], { tools: [echo] })
    await session.run('Go.', { toolChoice: { tool: 'echo' } })
    expect(forced(server)).toEqual([{ type: 'function', function: { name: 'echo' } }, undefined])
  })

  test('toolChoice none holds for every model call', async () => {
    const { session, server } = await bench([{ text: 'Done.' }], { tools: [echo] })
    await session.run('Go.', { toolChoice: 'none' })
    expect(forced(server)).toEqual(['none'])
  })

  test('toolChoice of a tool that the agent does not have is refused', async () => {
    const { session } = await bench([], { tools: [echo] })
    await expect(session.run('Go.', { toolChoice: { tool: 'nope' } })).rejects.toMatchObject({ code: 'unknown_tool' })
  })

  test('model chooses one of the agent’s models; another is refused', async () => {
    const other = await scriptedModel({ scripts: { small: [{ text: 'From the small one.' }] } })
    onTestFinished(() => other.close())
    const small = openaiChat({ provider: 'test', model: 'small', baseUrl: other.url })
    const { session } = await bench([], { models: [small] })
    expect(await session.run('Hi', { model: 'test:small' })).toMatchObject({ text: 'From the small one.' })
    await expect(session.run('Hi', { model: 'test:large' })).rejects.toThrow(
      'The agent helper has no model "test:large". Add it to the agent\'s models. Models: test:helper, test:small.',
    )
  })

  test('maxSteps is never more than the agent’s', async () => {
    const { session, server } = await bench(() => call('echo', { text: 'again' }), {
      tools: [echo],
      limits: { maxSteps: 2 },
    })
    await session.run('Go.', { maxSteps: 10_000 })
    expect(server.requests).toHaveLength(3)
  })
})

describe('results', () => {
  test('of one tool come with its types', async () => {
    const { session } = await bench([call('area', { width: 3, height: 4 }), { text: '12.' }], { tools: [area] })
    const result = await session.run('Go.')
    const calls = resultsOf(result, area)
    expectTypeOf(calls[0]!.output).toEqualTypeOf<{ area: number } | undefined>()
    expectTypeOf(calls[0]!.arguments.width).toEqualTypeOf<number>()
    expect(calls).toMatchObject([{ arguments: { width: 3, height: 4 }, output: { area: 12 } }])
    expect(resultsOf(result, echo)).toEqual([])
  })

  test('textStream yields the text of all answers, each part once', async () => {
    const { session } = await bench([call('echo', { text: 'a' }), { text: 'one two three' }], { tools: [echo] })
    const parts: string[] = []
    for await (const it of session.stream('Go.').textStream) parts.push(it)
    expect(parts.length).toBeGreaterThan(1)
    expect(parts.join('')).toBe('one two three')
  })
})

describe('B16: a field that has another name or place in Oxbow is refused with what to write:', () => {
  const helper = { name: 'helper', model: 'openai:gpt-5', instructions: 'Help.' }
  test.each([
    [{ system: 'x' }, 'unknown field "system". Oxbow calls it "instructions".'],
    [{ messages: [] }, 'unknown field "messages". The session keeps the conversation'],
    [{ maxTokens: 5 }, 'unknown field "maxTokens". Oxbow calls it "maxOutputTokens".'],
    [{ maxSteps: 5 }, 'unknown field "maxSteps". It belongs in limits: { maxSteps }.'],
    [{ budget: { tokens: 5 } }, 'unknown field "budget". It belongs in limits: { budget }.'],
    [{ output: {} }, 'unknown field "output". It belongs to a turn: session.run(text, { output }).'],
    [{ subAgents: [] }, 'unknown field "subAgents". Agents below it are a capability'],
    [{ mcpServers: {} }, 'unknown field "mcpServers". MCP servers are a capability'],
  ])('agent %j', (more, message) => {
    expect(() => agent({ ...helper, ...more } as never)).toThrow(`agent helper: ${message}`)
  })

  test.each([
    [{ system: 'x' }, 'unknown field "system". It belongs to the agent: agent({ instructions }).'],
    [{ messages: [] }, 'unknown field "messages". The session keeps the conversation'],
    [{ abortSignal: {} }, 'unknown field "abortSignal". Oxbow calls it "signal".'],
    [{ schema: {} }, 'unknown field "schema". Oxbow calls it "output".'],
    [{ context: {} }, 'unknown field "context". Oxbow calls it "attributes"'],
    [{ limits: { maxSteps: 1 } }, 'unknown field "limits". A turn has maxSteps, totalTimeoutMs'],
    [{ output: { age: z.number() } }, 'output must be one schema, for example z.object({ age: … })'],
    [{ output: { age: { type: 'number' } } }, "output must be a JSON Schema, for example { type: 'object', properties"],
  ])('run %j', async (options, message) => {
    const { session } = await bench([])
    await expect(session.run('Hi', options as never)).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringContaining(message),
    })
  })

  test('engine and session', async () => {
    const { engine } = await bench([])
    const backend = memory()
    const made = [...engine.agents.values()]
    expect(() => createEngine({ store: backend, agents: made } as never)).toThrow(
      'createEngine(): unknown field "store". Oxbow calls it "backend"',
    )
    for (const it of [made[0], agent({ name: 'helper', model: made[0]!.model, instructions: '' })])
      expect(() => createEngine({ backend, agents: [made[0]!, it!] })).toThrow(
        'two agents are named helper. Rename one.',
      )
    const refused = (message: string, ...args: unknown[]): void =>
      expect(() => (engine.session as (...args: unknown[]) => unknown)(...args)).toThrow(message)
    refused('unknown field "threadId". Oxbow calls it "session".', { user: 'ann', threadId: 't' })
    refused('It is the second argument: engine.session({ user }, { agent }).', { user: 'ann', agent: 'helper' })
    refused('Did you mean "agent"?', { user: 'ann' }, { agnet: 'helper' })
    refused('user is not an id: got "a@b.com". userId(text) makes an id', { user: 'a@b.com' })
    for (const it of [undefined, null, 'ann']) refused('session(): it must be an object', it)
  })

  test.each([
    [() => agent(undefined as never), "agent() needs an object, for example { name: 'helper'"],
    [() => tool('look_up' as never), "tool() needs an object, for example { name: 'add'"],
    [() => externalTool(null as never), 'tool() needs an object, for example { name'],
    [() => slot(undefined as never), "slot() needs an object, for example { name: 'todos'"],
  ])('definitions that are no objects: %s', (define, message) => {
    expect(define).toThrow(expect.objectContaining({ name: 'OxbowError', message: expect.stringContaining(message) }))
  })
})

describe('a tool', () => {
  test('types the arguments of check, matches and suggest, and the attributes of its context', () => {
    const typed = tool({
      name: 'typed',
      description: 'Typed.',
      effects: ['write'],
      input: z.object({ width: z.number(), height: z.number().default(1) }),
      check: (input) => {
        expectTypeOf(input.width).toEqualTypeOf<number>()
        expectTypeOf(input.height).toEqualTypeOf<number | undefined>()
        return undefined
      },
      suggest: ({ width }) => [String(width)],
      matches: (pattern, { width }) => pattern === String(width),
      run: (input, { attributes }: ToolContext<{ company: string }>) => {
        expectTypeOf(input.height).toEqualTypeOf<number>()
        expectTypeOf(attributes.company).toEqualTypeOf<string>()
        return attributes.company
      },
    })
    expect(typed.name).toBe('typed')
  })

  test('that runs elsewhere types them too, and its results are texts that nothing checks', async () => {
    const form = externalTool({
      name: 'form',
      description: 'Shows a form.',
      effects: ['read'],
      input: z.object({ width: z.number() }),
      suggest: ({ width }) => [width.toFixed()],
    })
    const { session } = await bench([call('form', { width: 3 }), { text: 'Done.' }], { tools: [form] })
    const { turnId, pending } = await session.run('Go.')
    await session.resolve(pending[0]!.callId, { content: 'filled in' })
    const [made] = resultsOf(await session.wait(turnId), form)
    expectTypeOf(made!.output).toEqualTypeOf<string | undefined>()
    expect(made).toMatchObject({ arguments: { width: 3 }, output: 'filled in' })
    const promise = { name: 'form', description: 'X.', effects: ['read'], input: {}, output: {} }
    expect(() => externalTool(promise as never)).toThrow(
      'tool form: unknown field "output". Nothing checks the result of an external tool',
    )
  })

  test.each([
    [{ execute: () => 1 }, 'unknown field "execute". Oxbow calls it "run".'],
    [{ parameters: {} }, 'unknown field "parameters". Oxbow calls it "input".'],
    [{ inputSchema: {} }, 'unknown field "inputSchema". Oxbow calls it "input".'],
    [{ input: { city: z.string() } }, 'input must be one schema, for example z.object({ city: … })'],
    [
      { input: { city: { type: 'string' } } },
      "{ type: 'object', properties: { city: … } }; got no keyword of JSON Schema",
    ],
    [{ output: { city: 'string' } }, 'output must be a JSON Schema'],
  ])('with a field of another library is refused with our name for it: %j', (more, message) => {
    const definition = { name: 'x', description: 'X.', effects: ['read'], input: {}, run: () => 1, ...more }
    expect(() => tool(definition as never)).toThrow(message)
  })

  test('without effects is refused with what to write', () => {
    const definition = { name: 'x', description: 'X.', input: {}, run: () => 1 }
    expect(() => tool(definition as never)).toThrow(
      "tool x: effects must list what the tool can do: got nothing. A tool that only looks has ['read'].",
    )
  })
})

describe('input', () => {
  test.each([
    [5, 'The input must be a text or a list of blocks: got number.'],
    [{ messages: [] }, 'got object. The session keeps the conversation and the agent its instructions'],
    [[{ type: 'image', image: 'AAAA' }], 'fileBlock(path) makes one of a file.'],
    [
      [{ role: 'user', content: 'Hi' }],
      'input[0]: a message with a role is not accepted: the session keeps the conversation. Pass only the new text.',
    ],
    [[{ type: 'data', mediaType: 'image/png' }], 'input[0]: a data block needs a mediaType such as image/png'],
    [[{ type: 'data', mediaType: 'png', data: 'AAAA' }], 'needs a mediaType such as image/png'],
    [[{ type: 'data', mediaType: 'image/png', data: '!' }], 'either data in Base64 or a url'],
    [[{ type: 'data', mediaType: 'image/png', url: 'no address' }], 'either data in Base64 or a url'],
  ])('of another form is refused: %j', async (input, message) => {
    const { session } = await bench([])
    await expect(session.run(input as never)).rejects.toThrow(message)
  })

  test('may hold files', async () => {
    const path = join(tmpdir(), 'oxbow-input.csv')
    await writeFile(path, 'a,b\n')
    expect(await fileBlock(path)).toEqual({
      type: 'data',
      mediaType: 'text/csv',
      data: Buffer.from('a,b\n').toString('base64'),
      name: 'oxbow-input.csv',
    })
    await expect(fileBlock(join(tmpdir(), 'oxbow-none.png'))).rejects.toMatchObject({ code: 'invalid_option' })
    await expect(fileBlock(new Uint8Array(3))).rejects.toThrow('the media type of the bytes is not known')
    await expect(fileBlock(new Uint8Array(21 * 2 ** 20), { mediaType: 'image/png' })).rejects.toThrow('at most')
  })
})

test('B16: methods name the argument that is missing or of another kind', async () => {
  const { session, engine } = await bench([])
  await expect(session.result(undefined as never)).rejects.toMatchObject({ code: 'invalid_id' })
  await expect(session.events('all' as never)).rejects.toThrow('events(): after must be a whole number, 0 or above')
  for (const it of [undefined, {}, [undefined], ['a']])
    await expect(session.decideAll(it as never)).rejects.toThrow('must be a list of { approvalId, decision }')
  await expect(engine.stop('now' as never)).rejects.toThrow('stop(): graceMs must be milliseconds, 0 or above')
})

test('userId makes an id of any text, unlike that of any other', () => {
  const names = [
    'ann@example.com',
    'Ann@example.com',
    'ann-example.com',
    '..',
    `id-${'a'.repeat(40)}`,
    '\ud800',
    '\ud801',
    '山田',
    'x'.repeat(200),
    'x'.repeat(201),
  ]
  const ids = names.map(userId)
  for (const it of ids) expect(it).toMatch(/^(?!\.+$)[A-Za-z0-9_.-]{1,64}$/)
  expect(new Set(ids).size).toBe(names.length)
  expect(userId('ann@example.com')).toBe(userId('ann@example.com'))
  expect(userId('ann-example.com')).toBe('ann-example.com')
})

test.each([undefined, null, 7, '', ' \n', { mail: 'ann@example.com' }])(
  'userId(%j) says that it needs a text',
  (value) => {
    expect(() => userId(value as never)).toThrow(
      expect.objectContaining({ code: 'invalid_id', message: expect.stringContaining('userId(): needs a text') }),
    )
  },
)

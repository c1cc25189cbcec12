// Schemas that providers refuse, as they are sent: a single one would fail every turn.
import { agent, tool as coreTool, type ToolSpec } from '@oxbow/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { anthropicAt, ask, askInVain, modelAt, responsesAt, serve } from '../asking.fixture.ts'
import { createModels } from '../catalogue/models.ts'
import { translate } from './dialect.ts'

const text = { type: 'string' }
const schemaOf = (schema: unknown) => JSON.parse(JSON.stringify(translate(schema)))

describe('B12: a schema becomes one object that every provider accepts', () => {
  test.each<[string, unknown, unknown]>([
    ['nothing', {}, { type: 'object', properties: {} }],
    ['true', true, { type: 'object', properties: {} }],
    ['no properties', { type: 'object' }, { type: 'object', properties: {} }],
    ['a nullable root', { type: ['object', 'null'] }, { type: 'object', properties: {} }],
    [
      'an array without items, and boolean schemas',
      { type: 'object', properties: { a: { type: 'array' }, b: true }, additionalProperties: false },
      {
        type: 'object',
        properties: { a: { type: 'array', items: {} }, b: {} },
        additionalProperties: false,
      },
    ],
    [
      'a union',
      {
        anyOf: [
          { type: 'object', properties: { id: text, kind: { const: 'a' } }, required: ['kind', 'id'] },
          { type: 'object', properties: { name: text, kind: { const: 'b' } }, required: ['kind', 'name'] },
        ],
      },
      {
        type: 'object',
        properties: { id: text, name: text, kind: { anyOf: [{ const: 'a' }, { const: 'b' }] } },
        required: ['kind'],
        description: 'Give one of these sets of properties: kind, id; kind, name.',
      },
    ],
    [
      'an intersection',
      {
        allOf: [
          { properties: { a: text }, required: ['a'] },
          { properties: { b: text }, required: ['b'] },
        ],
      },
      { type: 'object', properties: { a: text, b: text }, required: ['a', 'b'] },
    ],
    [
      'a reference, of an older draft',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        $ref: '#/definitions/A',
        definitions: { A: { type: 'object', properties: { a: { $ref: '#/definitions/B' } } }, B: text },
      },
      {
        type: 'object',
        properties: { a: { $ref: '#/$defs/B' } },
        $defs: { A: { type: 'object', properties: { a: { $ref: '#/$defs/B' } } }, B: text },
      },
    ],
    [
      'a limit of draft 4, a tuple and a nullable of OpenAPI',
      {
        type: 'object',
        properties: {
          n: { type: 'number', minimum: 0, exclusiveMinimum: true },
          t: { type: 'array', items: [text] },
          s: { type: 'string', nullable: true },
        },
      },
      {
        type: 'object',
        properties: {
          n: { type: 'number', minimum: 0, exclusiveMinimum: 0 },
          t: { type: 'array', items: { anyOf: [text] } },
          s: { type: ['string', 'null'] },
        },
      },
    ],
  ])('%s', (_, schema, expected) => {
    expect(schemaOf(schema)).toEqual({ schema: expected })
  })

  test('a valid schema is unchanged', () => {
    const sound = {
      type: 'object',
      description: 'Adds.',
      properties: { a: { anyOf: [{ type: 'number' }, text] }, b: { enum: ['x', 'y'] } },
      required: ['a'],
      additionalProperties: false,
    }
    expect(schemaOf(sound)).toEqual({ schema: sound })
  })

  test.each([
    [{ type: 'string' }, /type "string", not "object"/],
    [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, /no case of its union is an object/],
    [{ type: 'object', properties: { a: { $ref: 'https://example.com/a.json' } } }, /another document/],
    [false, /not an object/],
  ])('%j cannot be translated', (schema, problem) => {
    expect(translate(schema)).toEqual({ problem: expect.stringMatching(problem) })
  })
})

const tool = (name: string, input: Record<string, unknown> = {}): ToolSpec => ({ name, description: name, input })

describe('B12: a tool that a provider would refuse', () => {
  test.each([
    ['chat', modelAt],
    ['messages', anthropicAt],
    ['responses', responsesAt],
  ])('is omitted with a warning, and the others are offered: %s', async (format, at) => {
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    const server = await serve({ text: 'a' })
    const name = `bad_${format}`
    await ask(at(server), { tools: [tool('good'), tool(name, { type: 'string' })] })
    expect(server.requests[0]?.tools.map((it) => it.function.name)).toEqual(['good'])
    expect((await warned).message).toMatch(`Tool ${name} is not offered to test:any: its schema has the type "string"`)
  })

  test.each(['openai:gpt-5', 'anthropic:claude-sonnet-5', 'deepseek:deepseek-chat', 'google:gemini-3-pro-preview'])(
    'is reported once when the agent is defined: %s',
    async (name) => {
      const warnings: string[] = []
      const listen = ({ message }: Error) => warnings.push(message)
      process.on('warning', listen)
      onTestFinished(() => void process.off('warning', listen))
      const key = 'k'
      const environment = { OPENAI_API_KEY: key, ANTHROPIC_API_KEY: key, DEEPSEEK_API_KEY: key, GEMINI_API_KEY: key }
      const model = createModels({}, environment).get(name)
      const schema = { type: 'object', properties: { a: { $ref: 'https://example.com/a.json' } } }
      const remote = coreTool({ name: 'remote', description: 'd', input: schema, effects: ['read'], run: () => '' })
      agent({ name: 'a', model, models: [model], instructions: '', tools: [remote] })
      await new Promise(setImmediate)
      expect(warnings).toEqual([expect.stringMatching(`Tool remote is not offered to ${name}: it refers to another`)])
    },
  )

  test.each([
    ['tools.1.custom.input_schema: JSON schema is invalid', 'b'],
    ["Invalid schema for function 'c_d': wrong", 'c.d'],
    ["Invalid schema for function 'a': array schema missing items", 'a'],
    ['Invalid value at tools[0].function_declarations', 'a'],
  ])('is named: %s', async (message, name) => {
    const server = await serve({ status: 400, body: { error: { message } } })
    const { error } = await askInVain(anthropicAt(server), { tools: [tool('b'), tool('a'), tool('c.d')] })
    expect(error).toMatchObject({ code: 'invalid_request', details: { at: 'tool', tool: name } })
    expect(error.message).toMatch(
      `The provider refused the tool ${name}. Change its name, description or input schema.`,
    )
  })

  test('is not named for an error about something else', async () => {
    const server = await serve({ status: 400, body: { error: { message: 'temperature must be below 2' } } })
    const { error } = await askInVain(modelAt(server), { tools: [tool('a')] })
    expect(error.message).not.toMatch(/refused the tool/)
  })
})

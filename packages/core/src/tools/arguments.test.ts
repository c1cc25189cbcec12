import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { tool } from '../index.ts'
import { parseArguments } from './arguments.ts'

const parse = (raw: string, input: Parameters<typeof tool>[0]['input']) =>
  parseArguments(raw, tool({ name: 't', description: 't', effects: ['read'], input, run: () => '' }))

const numbers = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false }

describe('B12: arguments', () => {
  test.each([
    ['{"n":1}', { n: 1 }],
    ['{"n":"123"}', { n: 123 }],
    ['{"n":" 7 "}', { n: 7 }],
    ['{"n":1}<|call|>', { n: 1 }],
    ['{"n":1} <|tool_call_end|><|im_end|>', { n: 1 }],
  ])('%s is read', async (raw, expected) => {
    expect(await parse(raw, numbers)).toMatchObject({ ok: true, arguments: expected })
  })

  test.each([
    '{"n":?}',
    '{"n":1',
    '{"n":1}}',
    '{"n":1}{"n":2}',
    '[1]',
    'null',
    '3',
    '"{}"',
    '',
    '   ',
    '{"n":"12a"}',
    '{"n":"9007199254740993"}',
    '{"n":"0x10"}',
    '{"n":null}',
    '{"n":[1]}',
    '{"n":1.5}',
    '{"n":1,"m":2}',
    '{n:1}',
    "{'n':1}",
  ])('%s is refused, with the schema', async (raw) => {
    const outcome = await parse(raw, numbers)
    expect(outcome.ok).toBe(false)
    expect(outcome).toMatchObject({ message: expect.stringContaining('"required":["n"]') })
  })

  test('an empty text is {} only when nothing is required', async () => {
    expect(await parse('', {})).toMatchObject({ ok: true, arguments: {} })
    expect(await parse(' \n', { type: 'object', properties: { a: {} } })).toMatchObject({ ok: true })
  })

  test('conversions are lossless: booleans, texts, nested JSON, an optional null', async () => {
    const input = z.object({
      flag: z.boolean(),
      text: z.string(),
      list: z.array(z.number()),
      inner: z.object({ a: z.number() }),
      maybe: z.string().optional(),
    })
    const raw = '{"flag":"true","text":5,"list":"[1,2]","inner":"{\\"a\\":\\"1\\"}","maybe":null}'
    const outcome = await parse(raw, input)
    // The inner text is read as an object; its own "1" would need a second round and is refused rather than guessed.
    expect(outcome.ok).toBe(false)
    expect(await parse(raw.replace('\\"1\\"', '1'), input)).toMatchObject({
      ok: true,
      arguments: { flag: true, text: '5', list: [1, 2], inner: { a: 1 } },
    })
  })

  test('names that look like the prototype change nothing but the object', async () => {
    const input = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"object"},"constructor":{"type":"number"}}}',
    ) as Record<string, unknown>
    const outcome = await parse('{"__proto__":"{\\"polluted\\":1}","constructor":"2"}', input)
    expect((outcome as { arguments?: { polluted?: unknown } }).arguments?.polluted).toBeUndefined()
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(Object.prototype.constructor).toBe(Object)
  })

  test('schemas of the same address in several tools do not clash', async () => {
    const make = (type: string) => ({ $id: 'https://example.test/args', ...numbers, properties: { n: { type } } })
    expect((await parse('{"n":1}', make('integer'))).ok).toBe(true)
    expect((await parse('{"n":"x"}', make('string'))).ok).toBe(true)
  })

  test('any text yields a valid object or a refusal', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.json(),
          fc.string(),
          fc.json().map((it) => it.slice(0, -1)),
        ),
        async (raw) => {
          const outcome = await parse(raw, numbers)
          if (outcome.ok) expect(outcome.arguments).toEqual({ n: expect.any(Number) })
          else expect(outcome.message).toMatch(/^Not run: /)
        },
      ),
      { numRuns: 500 },
    )
  })
})

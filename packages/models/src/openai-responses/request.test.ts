// The request as the server receives it.
import type { Block, Message, ModelRequest } from '@oxbow/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ask, request, responsesAt, serve, userMessage } from '../asking.fixture.ts'
import { assistant, call, histories, result, text, tool, user } from '../history/histories.fixture.ts'
import { type OpenAiResponsesOptions, repairHistory } from '../index.ts'
import { responsesRequestWriter } from './request.ts'

// biome-ignore lint/suspicious/noExplicitAny: these tests assert on the wire format.
type Body = Record<string, any>

async function sent(
  overrides: Partial<ModelRequest> = {},
  options: Partial<OpenAiResponsesOptions> = {},
): Promise<Body> {
  const server = await serve({ text: 'ok' })
  await ask(responsesAt(server, options), overrides)
  return server.requests[0]!.body
}
const input = async (history: Message[]) => (await sent({ messages: history })).input

const spec = (name: string) => ({ name, description: `Does ${name}.`, input: { type: 'object' } })

test('a plain question asks the provider to store nothing and to encrypt the reasoning', async () => {
  const server = await serve({ text: 'ok' })
  await ask(responsesAt(server), { system: 'Be terse.', temperature: 0.5, maxOutputTokens: 100 })
  const { path, headers, body } = server.requests[0]!
  expect(path).toBe('/v1/responses')
  expect(headers.authorization).toBe('Bearer sk-secret')
  expect(body).toEqual({
    model: 'any',
    stream: true,
    store: false,
    include: ['reasoning.encrypted_content'],
    temperature: 0.5,
    max_output_tokens: 100,
    instructions: 'Be terse.',
    input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }],
  })
})

test.each([
  ['gpt-4o', false],
  ['gpt-4.1-mini', false],
  ['gpt-5-chat-latest', false],
  ['gpt-5.1', true],
  ['o4-mini', true],
])('reasoning is requested from %s: %s', async (model, expected) => {
  expect('include' in (await sent({}, { model }))).toBe(expected)
  expect('include' in (await sent({}, { model, reasoning: !expected }))).toBe(!expected)
})

test('fields of the request are passed on; `include` is merged', async () => {
  const options = { include: ['file_search_call.results'], reasoning: { effort: 'low', summary: 'auto' } }
  expect(await sent({ options })).toMatchObject({
    include: ['file_search_call.results', 'reasoning.encrypted_content'],
    reasoning: { effort: 'low', summary: 'auto' },
  })
})

describe('input', () => {
  test('a turn with tools is sent', async () => {
    expect(
      await input([
        userMessage('add'),
        assistant(text('Let me see.'), { ...call('c1'), arguments: '{"a": 1}' }, { ...call('c2'), arguments: '[' }),
        tool(result('c1'), { ...result('c2'), status: 'error', content: [] }),
      ]),
    ).toEqual([
      { role: 'user', content: [{ type: 'input_text', text: 'add' }] },
      { role: 'assistant', content: 'Let me see.' },
      { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a": 1}' },
      { type: 'function_call', call_id: 'c2', name: 'add', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'done' },
      { type: 'function_call_output', call_id: 'c2', output: '(error, no output)' },
    ])
  })

  test('images and files are sent as data or by URL, in results too', async () => {
    const image = { type: 'data' as const, mediaType: 'image/png', data: 'AAAA' }
    const pdf = { type: 'data' as const, mediaType: 'application/pdf', data: 'BBBB', name: 'a.pdf' }
    const linked = { type: 'data' as const, mediaType: 'application/pdf', url: 'https://example.com/a.pdf' }
    const items = await input([
      user(image, pdf, linked),
      assistant(call('c')),
      tool({ ...result('c'), content: [image] }),
    ])
    const wireImage = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' }
    expect(items[0].content).toEqual([
      wireImage,
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,BBBB' },
      { type: 'input_file', file_url: 'https://example.com/a.pdf' },
    ])
    expect(items[2].output).toEqual([wireImage])
  })

  test('an image by the model is sent as a note: only a user may send images', async () => {
    const [, made] = await input([user(text('a')), assistant({ type: 'data', mediaType: 'image/png', data: 'AAAA' })])
    expect(made).toEqual({ role: 'assistant', content: '[file image/png]' })
  })
})

describe('reasoning', () => {
  const sealed: Block = { type: 'thinking', text: 'hm', signature: 'rs_1', redacted: 'xyz' }
  const wire = {
    type: 'reasoning',
    id: 'rs_1',
    summary: [{ type: 'summary_text', text: 'hm' }],
    encrypted_content: 'xyz',
  }
  const written = async (model: string | undefined, ...blocks: Block[]) => {
    const answer = model === undefined ? assistant(...blocks) : { ...assistant(...blocks), model }
    return (await input([user(text('a')), answer, user(text('b'))])).slice(1, -1)
  }

  test.each(['test:any', undefined])('of this model is sent back in its place (by %s)', async (model) => {
    const second: Block = { type: 'thinking', text: '', signature: 'rs_2', redacted: 'abc' }
    expect(await written(model, sealed, text('one'), second, text('two'))).toEqual([
      wire,
      { role: 'assistant', content: 'one' },
      { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'abc' },
      { role: 'assistant', content: 'two' },
    ])
  })

  test('of another model is never sent back, nor unencrypted or trailing reasoning', async () => {
    const one = { role: 'assistant', content: 'one' }
    expect(await written('openai:other', sealed, text('one'))).toEqual([one])
    expect(await written('test:any', { type: 'thinking', text: 'hm', signature: 'rs_1' }, text('one'))).toEqual([one])
    expect(await written('test:any', text('one'), sealed)).toEqual([one])
  })
})

describe('tools', () => {
  test('are sorted by name; those of the provider follow', async () => {
    const body = await sent({ tools: [spec('b'), spec('a')], options: { tools: [{ type: 'image_generation' }] } })
    expect(body.tools).toEqual([
      {
        type: 'function',
        name: 'a',
        description: 'Does a.',
        parameters: { type: 'object', properties: {} },
        strict: false,
      },
      {
        type: 'function',
        name: 'b',
        description: 'Does b.',
        parameters: { type: 'object', properties: {} },
        strict: false,
      },
      { type: 'image_generation' },
    ])
  })

  test.each([
    ['required', 'required'],
    ['none', 'none'],
    [{ tool: 'a' }, { type: 'function', name: 'a' }],
  ] as const)('are sent with the choice %j', async (toolChoice, expected) => {
    expect((await sent({ tools: [spec('a')], toolChoice })).tool_choice).toEqual(expected)
  })
})

test('a JSON answer is requested by its schema, next to other text settings', async () => {
  const output = { name: 'city', schema: { type: 'object' } }
  expect((await sent({ output, options: { text: { verbosity: 'low' } } })).text).toEqual({
    verbosity: 'low',
    format: { type: 'json_schema', name: 'city', schema: { type: 'object' }, strict: false },
  })
})

describe('any history', () => {
  const write = (history: readonly Message[]): Body =>
    JSON.parse(
      responsesRequestWriter({ model: 'any', id: 'test:any', reasoning: true })(request({ messages: history })),
    )
  const check = (property: (history: Message[]) => void) =>
    fc.assert(fc.property(histories, property), { numRuns: 2_000 })

  test('is written within the API’s rules', () => {
    check((history) => {
      expect(broken(write(history).input)).toEqual([])
    })
  })

  test('is written with the reasoning of this model only', () => {
    check((history) => {
      const others = history.map((it) => ({ ...it, model: 'other:model' }))
      expect(JSON.stringify(write(others).input)).not.toContain('"reasoning"')
    })
  })

  test('is written the same when repaired first', () => {
    check((history) => {
      expect(write(repairHistory(history).messages)).toEqual(write(history))
    })
  })
})

/** What the API would refuse in the shape of a conversation. */
function broken(items: readonly Body[]): string[] {
  const problems: string[] = []
  const must = (right: boolean, rule: string) => {
    if (!right) problems.push(rule)
  }
  const open = new Set<string>()
  const used = new Set<string>()
  items.forEach((item, index) => {
    if (item.type === 'function_call') {
      must(/^[\w-]{1,64}$/.test(item.call_id) && !used.has(item.call_id), 'ids are valid and unique')
      must(typeof JSON.parse(item.arguments) === 'object', 'arguments are an object')
      used.add(item.call_id)
      open.add(item.call_id)
    } else if (item.type === 'function_call_output') {
      must(open.delete(item.call_id), 'a result has its call before it')
      must(item.output.length > 0, 'no result is empty')
    } else if (item.type === 'reasoning') {
      const next = items.slice(index).find((it) => it.type !== 'reasoning')
      must(next?.type === 'function_call' || next?.role === 'assistant', 'reasoning is followed by what it led to')
      must(typeof item.encrypted_content === 'string', 'reasoning is sealed')
    } else {
      must(item.role !== 'user' || open.size === 0, 'calls are answered before a user speaks')
      must(item.content.length > 0, 'no message is empty')
    }
  })
  must(open.size === 0, 'the last calls have results')
  return problems
}

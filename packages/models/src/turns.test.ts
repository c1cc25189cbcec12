// Whole turns of an agent through the engine, in each driver's format: what the next request carries of the last
// answer.
import { memory } from '@oxbow/backends'
import { agent, createEngine, type Model, tool } from '@oxbow/core'
import { type Reply, type ScriptedModel, scriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { anthropic, openaiResponses } from './index.ts'

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const
const weather = tool({
  name: 'weather',
  description: 'The weather of a city.',
  effects: ['read'],
  input: city,
  run: () => 'sunny',
})
const people = tool({
  name: 'people',
  description: 'How many live in a city.',
  effects: ['read'],
  input: city,
  run: () => 2_100_000,
})

const replies: Reply[] = [
  {
    thinking: 'Both at once.',
    signature: 'proof-1',
    text: 'I look it up.',
    calls: [
      { name: 'weather', arguments: { city: 'Paris' } },
      { name: 'people', arguments: { city: 'Paris' } },
    ],
  },
  { thinking: 'Enough.', signature: 'proof-2', text: 'Sunny, for two million.' },
  { text: 'You are welcome.' },
]

interface Bench {
  readonly server: ScriptedModel
  /** One turn of the session, by this model. */
  turn(model: Model, text: string): Promise<string | undefined>
}

async function bench(): Promise<Bench> {
  const server = await scriptedModel({ scripts: { '*': replies } })
  const backend = memory()
  onTestFinished(async () => {
    await backend.close()
    await server.close()
  })
  return {
    server,
    turn: async (model, text) => {
      const guide = agent({ name: 'guide', model, instructions: 'You guide.', tools: [weather, people] })
      const engine = createEngine({ backend, agents: [guide] })
      const result = await engine.session({ user: 'ann', session: 's1' }).run(text)
      await engine.stop(0)
      return result.text
    },
  }
}

const claude = ({ server }: Bench): Model =>
  anthropic({
    provider: 'anthropic',
    model: 'claude',
    baseUrl: server.url,
    options: { thinking: { type: 'enabled', budget_tokens: 2_000 } },
  })
const gpt = ({ server }: Bench): Model => openaiResponses({ provider: 'openai', model: 'gpt-5', baseUrl: server.url })

test('Anthropic: two turns with tools and thinking; each request carries the thinking so far with its signatures', async () => {
  const it = await bench()
  expect(await it.turn(claude(it), 'Paris?')).toBe('Sunny, for two million.')
  expect(await it.turn(claude(it), 'Thanks.')).toBe('You are welcome.')

  // biome-ignore lint/suspicious/noExplicitAny: this test asserts on the wire format.
  const [first, second, third] = it.server.requests.map(({ body }) => body as any)
  expect(first.tools.map((tool: { name: string }) => tool.name)).toEqual(['people', 'read_artifact', 'weather'])
  expect(second.thinking).toEqual({ type: 'enabled', budget_tokens: 2_000 })
  const [question, calls, results] = second.messages
  expect(question.content).toMatchObject([{ type: 'text', text: 'Paris?' }])
  expect(calls).toEqual({
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'Both at once.', signature: 'proof-1' },
      { type: 'text', text: 'I look it up.' },
      { type: 'tool_use', id: expect.any(String), name: 'weather', input: { city: 'Paris' } },
      { type: 'tool_use', id: expect.any(String), name: 'people', input: { city: 'Paris' } },
    ],
  })
  expect(results.content).toMatchObject([
    { type: 'tool_result', tool_use_id: calls.content[2].id, content: [{ type: 'text', text: 'sunny' }] },
    { type: 'tool_result', tool_use_id: calls.content[3].id, content: [{ type: 'text', text: '2100000' }] },
  ])
  expect(third.messages[3].content[0]).toEqual({ type: 'thinking', thinking: 'Enough.', signature: 'proof-2' })
  // Earlier messages are unchanged, except for the cache marks.
  const plain = (value: unknown) => JSON.stringify(value).replaceAll(',"cache_control":{"type":"ephemeral"}', '')
  expect(plain(third.messages.slice(0, 3))).toBe(plain(second.messages))
  it.server.assertDrained()
})

test('OpenAI’s responses: two turns with tools; each request carries the encrypted reasoning in its place', async () => {
  const it = await bench()
  expect(await it.turn(gpt(it), 'Paris?')).toBe('Sunny, for two million.')
  expect(await it.turn(gpt(it), 'Thanks.')).toBe('You are welcome.')

  // biome-ignore lint/suspicious/noExplicitAny: this test asserts on the wire format.
  const [, second, third] = it.server.requests.map(({ body }) => body as any)
  const kinds = (items: { type?: string; role?: string }[]) => items.map((item) => item.type ?? item.role)
  const turn = ['user', 'reasoning', 'assistant', 'function_call', 'function_call']
  expect(kinds(second.input)).toEqual([...turn, 'function_call_output', 'function_call_output'])
  expect(second.input[1]).toEqual({
    type: 'reasoning',
    id: 'rs_reply-0',
    summary: [{ type: 'summary_text', text: 'Both at once.' }],
    encrypted_content: 'proof-1',
  })
  expect(second.input[5]).toMatchObject({ call_id: second.input[3].call_id, output: 'sunny' })
  expect(third.input.slice(0, 7)).toEqual(second.input)
  expect(third.input[7]).toMatchObject({ type: 'reasoning', encrypted_content: 'proof-2' })
  it.server.assertDrained()
})

test.each([
  ['Anthropic', claude, 'OpenAI', gpt],
  ['OpenAI', gpt, 'Anthropic', claude],
])('a session of %s continues with %s, without the reasoning of the first', async (_, first, _then, second) => {
  const it = await bench()
  await it.turn(first(it), 'Paris?')
  expect(await it.turn(second(it), 'Thanks.')).toBe('You are welcome.')
  const request = JSON.stringify(it.server.requests[2]!.body)
  expect(request).toContain('I look it up.')
  expect(request).not.toMatch(/proof-|Both at once|Enough/)
})

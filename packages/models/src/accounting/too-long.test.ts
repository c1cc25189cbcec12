import type { Message } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { ask, askInVain, modelAt, serve, userMessage } from '../asking.fixture.ts'
import { withFacts } from '../index.ts'

const history = (words: number): Message[] => [
  userMessage('word '.repeat(words)),
  { id: 'a', role: 'assistant', blocks: [{ type: 'text', text: 'Yes.' }] },
  { ...userMessage('and?'), id: 'u2' },
]
const refusal = { status: 400, body: { error: { message: 'Something about your input' } } }
const price = { input: 1, output: 1 }
const facts = { price, contextWindow: 10_000 }

describe('B1: an unrecognised refusal', () => {
  test('of a long conversation counts as context overflow, so that the conversation is compacted once', async () => {
    const model = withFacts(modelAt(await serve({ text: 'a' }, refusal)), facts)
    await ask(model, { messages: history(4_000) })
    const { error } = await askInVain(model, { messages: history(8_000) })
    expect(error).toMatchObject({ code: 'context_overflow', status: 400 })
    expect(error.message).toMatch(
      /^The conversation may be longer than test:any can read\. .*Something about your input/,
    )
  })

  test.each([
    ['a short conversation', history(10), refusal],
    ['a first message', history(8_000).slice(0, 1), refusal],
    ['another cause', history(8_000), { status: 400, body: { error: { message: 'Your input was flagged' } } }],
  ])('of %s is not reclassified', async (_, messages, reply) => {
    const model = withFacts(modelAt(await serve(reply)), facts)
    expect((await askInVain(model, { messages })).error.code).toBe('invalid_request')
  })

  test('of a request no longer than an answered one is not reclassified', async () => {
    const model = withFacts(modelAt(await serve({ text: 'a' }, refusal)), facts)
    await ask(model, { messages: history(8_000) })
    expect((await askInVain(model, { messages: history(7_000) })).error.code).toBe('invalid_request')
  })
})

import { describe, expect, test } from 'vitest'
import { ask, modelAt, serve } from '../asking.fixture.ts'
import { costAt, modelFacts, withFacts } from './prices.ts'

const usage = {
  inputTokens: 1_000,
  cacheReadTokens: 500,
  cacheWriteTokens: 200,
  outputTokens: 100,
  reasoningTokens: 40,
  estimated: false,
}

describe('X6: what a call costs', () => {
  test('follows the public list, cached input at its own price', async () => {
    const { cost, contextWindow } = await modelFacts('openai:gpt-4o-mini')
    const cached = cost(usage)!
    const uncached = cost({ ...usage, inputTokens: 1_500, cacheReadTokens: 0 })!
    expect(cached).toBeGreaterThan(0)
    expect(cached).toBeLessThan(uncached)
    expect(contextWindow).toBe(128_000)
  })

  test('the name in the answer finds a model behind an alias', async () => {
    const { cost } = await modelFacts('azure:our-deployment', 'gpt-4o-mini-2024-07-18')
    expect(cost(usage)).toBeGreaterThan(0)
  })

  test.each(['openai:no-such-model', 'vllm:gpt-4o-mini', 'ollama:qwen3:8b', 'constructor:x', 'offline:offline'])(
    'stays unknown, never zero: %s',
    async (id) => {
      const facts = await modelFacts(id)
      expect(facts.cost(usage)).toBeUndefined()
      expect(facts.contextWindow).toBeUndefined()
    },
  )

  test('a configured price wins; cached input costs the same as input unless given', () => {
    expect(costAt({ input: 2, output: 10 }, usage)).toBeCloseTo((1_700 * 2 + 100 * 10) / 1e6, 12)
    const exact = { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 }
    expect(costAt(exact, usage)).toBeCloseTo((1_000 * 2 + 500 * 0.2 + 200 * 2.5 + 100 * 10) / 1e6, 12)
  })

  test('is in the reply', async () => {
    const figures = { usage: { prompt_tokens: 1_000, completion_tokens: 100 } }
    const server = await serve({ text: 'hi', ...figures }, { text: 'hi', ...figures }, { text: 'hi', ...figures })
    const own = withFacts(modelAt(server), { price: { input: 1, output: 10 } })
    expect((await ask(own)).reply.usage.cost).toBeCloseTo(0.002, 12)
    expect((await ask(withFacts(modelAt(server)))).reply.usage).not.toHaveProperty('cost')
    const listed = withFacts(modelAt(server, { provider: 'openai', model: 'gpt-4o-mini' }))
    expect((await ask(listed)).reply.usage.cost).toBeGreaterThan(0)
  })
})

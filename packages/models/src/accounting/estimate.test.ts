import { estimateTokens } from '@oxbow/core'
import { expect, test } from 'vitest'
import { estimateRequestTokens } from '../index.ts'

test.each([
  ['', 0],
  ['The quick brown fox jumps over the lazy dog.', 11],
  ['今天天气怎么样', 7],
  ['Weather: 天气', 5],
  ['안녕하세요', 5],
])('%j is about %d tokens', (text, tokens) => {
  expect(estimateTokens(text)).toBe(tokens)
})

test('a request counts its system, tools and messages, a file as a fixed sum', () => {
  const empty = { system: '', messages: [], tools: [] }
  expect(estimateRequestTokens(empty)).toBe(0)
  expect(estimateRequestTokens({ ...empty, system: 'x'.repeat(40) })).toBe(10)
  expect(estimateRequestTokens({ ...empty, tools: [{ name: 'aaaa', description: 'bbbb', input: {} }] })).toBe(3)
  const image = { type: 'data' as const, mediaType: 'image/png', data: 'A'.repeat(100_000) }
  expect(estimateRequestTokens({ ...empty, messages: [{ id: '1', role: 'user', blocks: [image] }] })).toBeLessThan(
    2_000,
  )
})

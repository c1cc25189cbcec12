import { estimateTokens } from '@oxbow/core'
import { expect, test } from 'vitest'
import { estimateRequestTokens } from '../index.ts'

test.each([
  ['', 0],
  ['The quick brown fox jumps over the lazy dog.', 10],
  ['{"id":10042,"paid":true}', 10],
  ['今天天气怎么样', 5],
  ['Weather: 天气', 3],
  ['안녕하세요', 3],
])('%j is about %d tokens', (text, tokens) => {
  expect(estimateTokens(text)).toBe(tokens)
})

test('a request counts its system, tools and messages, a file as a fixed amount', () => {
  const empty = { system: '', messages: [], tools: [] }
  expect(estimateRequestTokens(empty)).toBe(0)
  expect(estimateRequestTokens({ ...empty, system: 'one two '.repeat(10) })).toBe(21)
  expect(estimateRequestTokens({ ...empty, tools: [{ name: 'aaaa', description: 'bbbb', input: {} }] })).toBe(2)
  const image = { type: 'data' as const, mediaType: 'image/png', data: 'A'.repeat(100_000) }
  expect(estimateRequestTokens({ ...empty, messages: [{ id: '1', role: 'user', blocks: [image] }] })).toBeLessThan(
    2_000,
  )
})

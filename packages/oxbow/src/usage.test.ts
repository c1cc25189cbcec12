import type { Usage } from '@oxbow/core'
import { expect, test } from 'vitest'
import { usageDetail, usageLine } from './usage.ts'

const usage = (more: Partial<Usage> = {}): Usage => ({
  inputTokens: 11_000,
  cacheReadTokens: 1_000,
  cacheWriteTokens: 0,
  outputTokens: 345,
  reasoningTokens: 200,
  estimated: false,
  ...more,
})

test('X6: one line shows context, turn and session separately', () => {
  const state = { contextTokens: 12_345, usage: usage({ inputTokens: 1_200_000, cost: 1.5 }) }
  expect(usageLine({ turn: usage({ cost: 0.0123 }), state, window: 400_000 })).toBe(
    'context 12k of 400k (3 %) · turn 12k tokens $0.012 · session 1.2M tokens $1.50',
  )
})

test('unknown values are omitted, and an estimate is marked', () => {
  const estimated = usage({ inputTokens: 100, cacheReadTokens: 0, outputTokens: 20, estimated: true })
  const used = { turn: estimated, state: { contextTokens: 120, usage: estimated }, window: undefined }
  expect(usageLine(used)).toBe('context 120 · turn about 120 tokens · session about 120 tokens')
  expect(usageDetail(used).split('\n').slice(3)).toEqual([
    'context  120 tokens; the model’s window is unknown',
    'The provider does not report all counts: some are estimated.',
  ])
})

test('the details have every count', () => {
  const state = { contextTokens: 12_345, usage: usage() }
  expect(usageDetail({ turn: usage({ cost: 0.01 }), state, window: 24_690 })).toBe(
    [
      '         input  from cache  to cache  output  thinking     cost',
      'turn     11000        1000         0     345       200    $0.01',
      'session  11000        1000         0     345       200  unknown',
      'context  12345 of 24690 tokens (50 %)',
    ].join('\n'),
  )
})

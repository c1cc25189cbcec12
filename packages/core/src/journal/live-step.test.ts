// Fragments that another process has made, as they may arrive: twice, late or not at all.
import { describe, expect, test } from 'vitest'
import type { Delta } from '../events/types.ts'
import { liveStep } from './live-step.ts'

const key = { tenant: 'default', user: 'ann', session: 's' }
const base = { turnId: 't', step: 1, block: 0 }
const text = (offset: number, words: string, block = 0) =>
  ({ ...base, type: 'text.delta', block, offset, text: words }) satisfies Delta

describe('H14: a fragment of another replica', () => {
  test('shows only what readers have not seen of it', () => {
    const live = liveStep(key, 't', 1)
    expect(live.merge(text(0, 'one two'))).toEqual(text(0, 'one two'))
    expect(live.merge(text(4, 'two three'))).toEqual(text(7, ' three'))
    expect(live.merge(text(0, 'one two'))).toBe(undefined)
    expect(live.soFar()).toEqual([text(0, 'one two three')])
  })

  test('is not shown behind a gap', () => {
    const live = liveStep(key, 't', 1)
    live.merge(text(0, 'one'))
    expect(live.merge(text(7, ' three'))).toBe('gap')
    expect(live.merge(text(0, 'one two three'))).toEqual(text(3, ' two three'))
  })

  test('keeps the id of its call', () => {
    const live = liveStep(key, 't', 1)
    const opened = { ...base, type: 'call.delta', callId: 'call_7', tool: 'save' } satisfies Delta
    const written = { ...base, type: 'arguments.delta', callId: 'call_7', offset: 0, text: '{}' } satisfies Delta
    expect(live.merge(written)).toBe('gap')
    expect(live.merge(opened)).toEqual(opened)
    expect(live.merge(opened)).toBe(undefined)
    expect(live.merge(written)).toEqual(written)
    expect(live.soFar()).toEqual([opened, written])
  })
})

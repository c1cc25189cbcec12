// A reader may disconnect anywhere, live or later, and reconnect at any time: it gets everything once.
import type { SessionItem } from '@oxbow/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { moments } from './moments.ts'
import { positionOf } from './positions.ts'

interface Script {
  /** The blocks of the answer, each as its fragments. */
  readonly blocks: { type: 'text' | 'thinking'; fragments: string[] }[]
  /** The number of the fragment before which a steering input arrives. */
  readonly steerAt: number
  readonly calls: number
}

const script = fc.record({
  blocks: fc.array(
    fc.record({
      type: fc.constantFrom('text' as const, 'thinking' as const),
      fragments: fc.array(fc.string({ minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  steerAt: fc.nat(12),
  calls: fc.nat(2),
})

const turnId = 't'
const principal = { user: 'u' }

/** The items of a live turn: events with fragments between them. */
function live({ blocks, steerAt, calls }: Script): SessionItem[] {
  const items: SessionItem[] = []
  let seq = 0
  const add = (body: object): void =>
    void items.push({ ...body, turnId, seq: ++seq, at: seq } as unknown as SessionItem)
  add({ type: 'turn.started', input: [], surface: 'x', principal, agent: { name: 'a', version: '1' }, options: {} })
  add({ type: 'turn.claimed', worker: 'w', epoch: 1 })
  add({ type: 'step.started', step: 1, toolsOffered: true })
  let n = 0
  for (const [block, { type, fragments }] of blocks.entries()) {
    let offset = 0
    for (const text of fragments) {
      if (n++ === steerAt) add({ type: 'turn.steered', inputId: 'i', input: [], principal })
      items.push({ type: `${type}.delta`, turnId, step: 1, block, offset, text })
      offset += text.length
    }
  }
  const whole = blocks.map(({ type, fragments }) => ({ type, text: fragments.join('') }))
  const asked = Array.from({ length: calls }, (_, i) => ({ type: 'call', callId: `c${i}`, tool: 'f', arguments: '{}' }))
  const message = { id: 'm', role: 'assistant', blocks: [...whole, ...asked] }
  const usage = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }
  add({ type: 'model.finished', step: 1, message, finishReason: 'stop', usage, model: 'm', timing: { totalMs: 1 } })
  add({ type: 'turn.finished', reason: 'completed' })
  return items
}

interface Reported {
  readonly at: number
  readonly what: string
}

/** The moments of these items for a reader that has everything up to `after`. */
function read(items: readonly SessionItem[], after: number): Reported[] {
  const fold = moments(turnId, after)
  return items
    .flatMap((it) => fold.take(it))
    .filter((it) => it.at > after)
    .map((it) => {
      if (it.type === 'text' || it.type === 'thinking')
        return { at: it.at, what: [...it.text].map((c) => it.type + c).join(' ') }
      return { at: it.at, what: `<${it.type} ${it.type === 'call' ? it.callId : positionOf(it.at).seq}>` }
    })
}

const joined = (reported: readonly Reported[]): string =>
  reported
    .map((it) => it.what)
    .join(' ')
    .replaceAll('  ', ' ')

const stored = (items: readonly SessionItem[]): SessionItem[] => items.filter((it) => 'seq' in it)

/** The order of block and steering input differs between live and later; the text, the calls and the events do not. */
const content = (reported: readonly Reported[]): { text: string; rest: string[] } => ({
  text: reported
    .filter((it) => !it.what.startsWith('<'))
    .map((it) => it.what)
    .join(' '),
  rest: reported.filter((it) => it.what.startsWith('<')).map((it) => it.what),
})

test('B9, P3: numbers increase, and a reader that resumes from one gets everything once', () => {
  fc.assert(
    fc.property(script, fc.nat(60), fc.boolean(), (given, cut, later) => {
      const items = live(given)
      const whole = read(items, 0)
      const numbers = whole.map((it) => it.at)
      expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
      expect(content(read(stored(items), 0))).toEqual(content(whole))

      const had = whole.slice(0, cut)
      const after = had.at(-1)?.at ?? 0
      const rest = read(later ? stored(items) : items, after)
      expect(content([...had, ...rest])).toEqual(content(whole))
      if (!later) expect(joined([...had, ...rest])).toBe(joined(whole))
    }),
    { numRuns: 2_000 },
  )
})

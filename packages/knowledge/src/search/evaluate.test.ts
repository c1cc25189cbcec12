import { expect, test } from 'vitest'
import { evaluate, parseLabels } from './evaluate.ts'

test('recall, reciprocal rank and gain per set', async () => {
  const labels = parseLabels(
    '{"query":"a","relevant":["x.md","y.md"],"set":"one"}\n\n{"query":"b","relevant":["z.md#1a2b3c4d"],"set":"two"}\n',
  )
  const answers: Record<string, string[]> = {
    a: ['w.md#00000001', 'x.md#00000002', 'x.md#00000003', 'y.md#00000004'],
    b: ['z.md#ffffffff'],
  }
  // Documents count once; the third, y.md, lies beyond k = 2.
  const [one, two] = await evaluate(labels, async (it) => answers[it]!, 2)
  expect(one).toMatchObject({ set: 'one', queries: 1, recall: 0.5, mrr: 0.5 })
  expect(one!.ndcg).toBeCloseTo(1 / Math.log2(3) / (1 + 1 / Math.log2(3)), 10)
  // Another passage of the right document is not the requested passage.
  expect(two).toEqual({ set: 'two', queries: 1, recall: 0, mrr: 0, ndcg: 0 })
})

test('invalid labels are refused with their line', () => {
  expect(() => parseLabels('{"query":"a","relevant":["x"]}\n{"query":"b","relevant":[]}')).toThrow(/Line 2/)
  expect(() => parseLabels('nonsense')).toThrow(/Line 1/)
  expect(() => parseLabels('\n')).toThrow(/no labels/)
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fuse } from './fusion.ts'

const list = fc.uniqueArray(fc.constantFrom(...'abcdefghij'), { maxLength: 10 })
const ids = (lists: readonly (readonly string[])[]) => fuse(lists).map((it) => it.id)

describe('Y11: reciprocal rank fusion', () => {
  test('a score is the sum of 1 / (60 + rank), and ties are ordered by id', () => {
    expect(
      fuse([
        ['b', 'a'],
        ['a', 'b', 'c'],
      ]),
    ).toEqual([
      { id: 'a', score: 1 / 61 + 1 / 62 },
      { id: 'b', score: 1 / 61 + 1 / 62 },
      { id: 'c', score: 1 / 63 },
    ])
  })

  test('one list keeps its order; nothing is lost or invented; the order of the lists does not matter', () => {
    fc.assert(
      fc.property(fc.array(list, { maxLength: 4 }), (lists) => {
        for (const it of lists) expect(ids([it])).toEqual(it)
        expect(ids(lists).toSorted()).toEqual([...new Set(lists.flat())].toSorted())
        expect(new Set(ids(lists))).toEqual(new Set(ids(lists.toReversed())))
      }),
    )
  })

  test('an entry at least as high in every list and higher in one comes first', () => {
    fc.assert(
      fc.property(list, list, (one, two) => {
        const order = ids([one, two])
        const rank = (of: readonly string[], id: string) =>
          of.includes(id) ? of.indexOf(id) : Number.POSITIVE_INFINITY
        const better = (a: string, b: string) => a !== b && rank(one, a) <= rank(one, b) && rank(two, a) <= rank(two, b)
        const wrong = order.flatMap((a, n) =>
          order
            .slice(0, n)
            .filter((b) => better(a, b))
            .map((b) => `${b} before ${a}`),
        )
        expect(wrong).toEqual([])
      }),
    )
  })
})

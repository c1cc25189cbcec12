import { expect, test } from 'vitest'
import { defined } from './defined.ts'

test('only undefined is left out', () => {
  const limit: number | undefined = undefined
  expect(Object.entries(defined({ a: 0, b: '', c: null, d: false, limit }))).toEqual([
    ['a', 0],
    ['b', ''],
    ['c', null],
    ['d', false],
  ])
})

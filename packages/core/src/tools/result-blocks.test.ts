import { describe, expect, test } from 'vitest'
import { resultBlocks } from './result-blocks.ts'

const text = (value: unknown): unknown => {
  const [block] = resultBlocks(value)
  return block?.type === 'text' ? block.text : block
}
const circular: Record<string, unknown> = {}
circular.self = circular

describe('a result', () => {
  test.each([
    ['plain', 'plain'],
    [undefined, 'Done.'],
    [10n, '10'],
    [{ id: 10n, when: new Date(0), nothing: undefined }, '{"id":"10","when":"1970-01-01T00:00:00.000Z"}'],
    [[1, undefined, null], '[1,null,null]'],
    [Object.create(null), '{}'],
  ])('number %# of these is shown as JSON', (value, shown) => {
    expect(text(value)).toBe(shown)
  })

  test.each([
    ['a Map', { rows: new Map([[1, 2]]) }, 'result.rows is a Map, which is not JSON'],
    ['a Set', new Set([1]), 'result is a Set, which is not JSON'],
    ['a list of promises', [Promise.resolve(1)], 'result[0] is a Promise, which is not JSON'],
    [
      'the reason of a settled promise',
      [{ status: 'rejected', reason: new TypeError('x') }],
      'result[0].reason is a TypeError',
    ],
    ['a Blob', new Blob(['x']), 'result is a Blob, which is not JSON'],
    ['NaN', { mean: Number.NaN }, 'result.mean is NaN, which is not JSON'],
    ['a symbol', [Symbol('x')], 'result[0] is a symbol, which is not JSON'],
    ['bytes', { file: new Uint8Array(3) }, 'result.file holds bytes'],
    ['a cycle', circular, 'contains itself'],
    ['more than 16 MB', 'x'.repeat(16 * 1024 * 1024 + 1), 'longer than 16777216 characters'],
    ['many values', Array.from({ length: 17 * 1024 * 1024 }, () => 1), 'longer than 16777216 characters'],
  ])('with %s is an error that names the place', (_, value, message) => {
    expect(() => resultBlocks(value)).toThrow(message)
  })

  test('that is an Error throws that error', () => {
    expect(() => resultBlocks(new RangeError('out of range'))).toThrow('out of range')
  })
})

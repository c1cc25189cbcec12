import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inexactInteger, parseExact, writtenAs } from './exact-json.ts'

describe('parseExact', () => {
  test('returns the result of JSON.parse for every value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        expect(parseExact(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  test.each(['2064875200729235458', '1.10', '100.00', '1e2', '-0', '0.1234567890123456789'])(
    'remembers how %s was written, in objects and lists',
    (source) => {
      const value = parseExact(`{"a":[${source}],"b":${source}}`) as { a: number[]; b: number }
      expect(writtenAs(value.a, '0')).toBe(source)
      expect(writtenAs(value, 'b')).toBe(source)
    },
  )

  test('finds whole numbers that a double cannot hold, wherever they are', () => {
    expect(inexactInteger(parseExact('{"a":{"ids":[1,9007199254740993]}}'))).toEqual({
      path: 'a.ids.1',
      source: '9007199254740993',
    })
    expect(inexactInteger(parseExact('{"a":[9007199254740991,1e300,1.5]}'))).toBeUndefined()
  })
})

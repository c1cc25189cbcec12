import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inexactNumber, parseExact, stringifyExact, writtenAs } from './exact-json.ts'

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

  test('finds numbers that a double cannot hold, wherever they are', () => {
    expect(inexactNumber(parseExact('{"a":{"ids":[1,9007199254740993]}}'))).toEqual({
      path: 'a.ids.1',
      source: '9007199254740993',
    })
    expect(inexactNumber(parseExact('{"a":[9007199254740991,1e300,1.5]}'))).toBeUndefined()
  })

  test.each(['12345678901234567.89', '0.1234567890123456789', '1e400', '-9007199254740993.0'])(
    'finds that a double cannot hold %s',
    (source) => {
      expect(inexactNumber(parseExact(`[${source}]`))).toEqual({ path: '0', source })
    },
  )

  test.each(['0.30000000000000004', '0.10000000000000001', '5000000000000000000000e-3', '1.50', '-0'])(
    'accepts %s, as other programs write doubles',
    (source) => {
      expect(inexactNumber(parseExact(`[${source}]`))).toBeUndefined()
    },
  )

  test.each(['{"a":[2064875200729235458,1.10],"b":{"c":1e2,"d":"1.10"}}', '[-0,1.5,true,null]'])(
    'is undone by stringifyExact for %s',
    (text) => {
      expect(stringifyExact(parseExact(text))).toBe(text)
    },
  )
})

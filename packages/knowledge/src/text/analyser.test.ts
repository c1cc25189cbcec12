import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openStore } from '../indexing/store.ts'
import { matchAny, queryOf, termsOf } from './analyser.ts'

const terms = (text: string) => termsOf(text).split(' ')

describe('terms', () => {
  test.each([
    ['getUserById', ['getuserbyid', 'get', 'user', 'by', 'id']],
    ['user_profile', ['userprofile', 'user', 'profile']],
    ['XMLHttpRequest', ['xmlhttprequest', 'xml', 'http', 'request']],
    ['src/App.test.tsx', ['srcapptesttsx', 'src', 'app', 'test', 'tsx']],
    ['ERR_MODULE_NOT_FOUND', ['errmodulenotfound', 'err', 'module', 'not', 'found']],
    ['TS2304', ['ts2304']],
    ['ORD-2024-00183', ['ord2024.00183', 'ord', '2024', '00183', 'ord202400183']],
    ['ＯＲＤ－２０２４', ['ord2024', 'ord', '2024']],
    ['3.12.1', ['3.12.1', '3', '12', '1']],
    ["don't the user's", ['dont', 'the', 'user']],
    ['C++ and C#', ['c++', 'and', 'c#']],
    ['订单ORD', ['订单', '订', '单', 'ord']],
    ['税', ['税']],
  ])('%s', (text, expected) => {
    expect(terms(text)).toEqual(expected)
  })

  test('B6: the parts of an order number do not make another number exact', () => {
    expect(queryOf('ORD-2024-00183').exact).toEqual(['ord2024.00183'])
    expect(queryOf('in 2024, 15 days').exact).toEqual([])
    expect(queryOf('00183 and E1042').exact).toEqual(['00183', 'e1042'])
  })
})

describe('a question is data', () => {
  const database = openStore(':memory:')
  const ask = database.prepare('SELECT rowid FROM terms WHERE terms MATCH ?')
  const asks = (question: string): void => {
    for (const terms of Object.values(queryOf(question))) if (terms.length > 0) ask.all(matchAny(terms))
  }

  test.each([
    '"',
    "'",
    '*',
    'a AND',
    'NEAR(a b',
    'body: x',
    '-a',
    '^a',
    '{a b}: c',
    '(',
    'a" OR "b',
    '\0',
    'NOT',
    "'; DROP TABLE x",
  ])('FTS5 syntax has no effect: %s', (question) => {
    expect(() => asks(question)).not.toThrow()
  })

  test('any text can be searched for and indexed', () => {
    const insert = database.prepare("INSERT INTO terms (rowid, headings, body) VALUES (?, '', ?)")
    let rows = 0
    const unit = fc.oneof(
      fc.constantFrom(...'"\'*^():{}-+.#_/@aZ9中字😀\0\n'),
      fc.string({ unit: 'binary', maxLength: 1 }),
    )
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 60 }), (text) => {
        asks(text)
        rows += 1
        insert.run(rows, termsOf(text))
        // Every indexed text is found by itself, unless it contains no words.
        const { any } = queryOf(text)
        const found = any.length === 0 || ask.all(matchAny(any)).some((it) => it.rowid === rows)
        expect(found).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('the longest and strangest questions are bounded', () => {
    for (const unit of ['a', 'a ', 'a-', 'aA', '字', '\u0301', '\ufdfa', "'", '+', 'x1.']) {
      const { any, exact } = queryOf(unit.repeat(1_000_000))
      expect(any.length).toBeLessThanOrEqual(128)
      expect(Math.max(0, ...any.map((it) => it.length), exact.length)).toBeLessThanOrEqual(64)
      expect(() => asks(unit.repeat(1_000_000))).not.toThrow()
    }
  })
})

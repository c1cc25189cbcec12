import { describe, expect, test } from 'vitest'
import { checkCitations } from './citations.ts'

const retrieved = ['setup.md#1a2b3c4d5e6f', 'guide/a, b.md#00000000aaaa', '手册.md#abcdefabcdef-2']
const check = (text: string) => checkCitations(text, retrieved).map((it) => [it.id, it.known])

describe('Y11: citations in a reply', () => {
  test('a retrieved one is known, even with others in the same brackets or with a comma in its name', () => {
    expect(check('Do it [setup.md#1a2b3c4d5e6f].')).toEqual([['setup.md#1a2b3c4d5e6f', true]])
    expect(check('[setup.md#1a2b3c4d5e6f; 手册.md#abcdefabcdef-2]').map((it) => it[1])).toEqual([true, true])
    expect(check('[guide/a, b.md#00000000aaaa]')).toEqual([['guide/a, b.md#00000000aaaa', true]])
  })

  test('one that was not retrieved is flagged: out of date, of another document, or invented', () => {
    expect(check('[setup.md#1a2b3c4d5e60]')).toEqual([['setup.md#1a2b3c4d5e60', false]])
    expect(check('[other.md#1a2b3c4d5e6f]')).toEqual([['other.md#1a2b3c4d5e6f', false]])
    expect(check('[setup.md#installation]')).toEqual([['setup.md#installation', false]])
  })

  test('other brackets are not citations', () => {
    expect(check('[link](a.md#top) a[i] [x] [1] [see #42] [C#] - [ ] todo')).toEqual([])
  })

  test('the bounds are those of the brackets', () => {
    const text = 'See [setup.md#1a2b3c4d5e6f].'
    const { start, end } = checkCitations(text, retrieved)[0]!
    expect(text.slice(start, end)).toBe('[setup.md#1a2b3c4d5e6f]')
  })
})

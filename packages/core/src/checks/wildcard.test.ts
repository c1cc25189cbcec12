import fc from 'fast-check'
import { expect, test } from 'vitest'
import { matchesWildcard } from './wildcard.ts'

test('a wildcard means what the same regular expression means', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 8 })
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 6 })
  fc.assert(
    fc.property(pattern, text, (it, of) => {
      expect(matchesWildcard(it, of)).toBe(new RegExp(`^${it.replaceAll('*', '.*')}$`).test(of))
    }),
  )
})

test('many stars in the name of a tool are read in time', { timeout: 1_000 }, () => {
  expect(matchesWildcard(`${'*'.repeat(60)}z`, 'get_current_time')).toBe(false)
  expect(matchesWildcard(`${'*e'.repeat(60)}z`, 'e'.repeat(10_000))).toBe(false)
})

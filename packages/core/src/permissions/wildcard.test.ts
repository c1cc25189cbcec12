import fc from 'fast-check'
import { expect, test } from 'vitest'
import { commandMatches, commandMentions } from './commands/judge.ts'
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

/** With a regular expression each of these would outlast the universe. */
test.each([
  ['stars inside of a word', `git ${'a*'.repeat(40)}b`, `git ${'a'.repeat(2_000)}`],
  ['stars as words', `git ${'* a '.repeat(40)}b`, `git ${'a '.repeat(2_000)}`],
  ['options that may be skipped', `git ${'* -a '.repeat(40)}b`, `git ${'-a '.repeat(2_000)}`],
  ['a command in a wrapper', `git ${'* git '.repeat(40)}b`, `xargs ${'git '.repeat(2_000)}`],
])('however many wildcards a rule has, it is read in time: %s', { timeout: 5_000 }, async (_, pattern, command) => {
  expect(await commandMatches(pattern, command)).toBe(false)
  expect(await commandMentions(pattern, command)).not.toBe(true)
})

test('many stars in the name of a tool are read in time', { timeout: 1_000 }, () => {
  expect(matchesWildcard(`${'*'.repeat(60)}z`, 'get_current_time')).toBe(false)
  expect(matchesWildcard(`${'*e'.repeat(60)}z`, 'e'.repeat(10_000))).toBe(false)
})

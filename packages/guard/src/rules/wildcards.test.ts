import { expect, test } from 'vitest'
import { commandMatches, commandMentions } from '../check/check-command.ts'

/** With a regular expression each of these would outlast the universe. */
test.each([
  ['stars inside a word', `git ${'a*'.repeat(40)}b`, `git ${'a'.repeat(2_000)}`],
  ['stars as words', `git ${'* a '.repeat(40)}b`, `git ${'a '.repeat(2_000)}`],
  ['options that may be skipped', `git ${'* -a '.repeat(40)}b`, `git ${'-a '.repeat(2_000)}`],
  ['a command in a wrapper', `git ${'* git '.repeat(40)}b`, `xargs ${'git '.repeat(2_000)}`],
])('however many wildcards a rule has, it is read in time: %s', { timeout: 5_000 }, async (_, pattern, command) => {
  expect(await commandMatches(pattern, command)).toBe(false)
  expect(await commandMentions(pattern, command)).not.toBe(true)
})

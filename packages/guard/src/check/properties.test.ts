import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ATTACKS, DISASTERS, sections } from '../fixtures/attacks.fixture.ts'
import { makeWorkspace, type Workspace } from '../fixtures/workspace.fixture.ts'
import { checkCommand } from './check-command.ts'

let peaceful: Workspace
let hostile: Workspace
let allowed: readonly string[]
/** Allowed commands that leave the folder and the variables as they were. */
let still: readonly string[]
beforeAll(async () => {
  peaceful = makeWorkspace({ hostile: false })
  hostile = makeWorkspace()
  const commands = sections('everyday.fixture.txt').get('read-only')!
  const decisions = await Promise.all(commands.map((it) => decide(it, peaceful)))
  allowed = commands.filter((_, index) => decisions[index] === 'allow')
  still = allowed.filter((it) => !/\bcd\b|=|\bread\b|\bfor\b/.test(it))
})
afterAll(() => {
  peaceful.remove()
  hostile.remove()
})

const decide = async (text: string, { root, home }: Workspace = hostile): Promise<string> =>
  (await checkCommand(text, { cwd: root, roots: [root], home, searchPath: 'tools:/usr/bin:/bin', shell: 'bash' }))
    .decision
const pick = <T>(list: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...list)

const QUOTES: readonly ((word: string) => string)[] = [
  (word) => `'${word}'`,
  (word) => `"${word}"`,
  (word) => [...word].map((it) => `\\${it}`).join(''),
  (word) => `${word.slice(0, 1)}''${word.slice(1)}`,
  (word) => `${word.slice(0, 1)}"${word.slice(1)}"`,
  (word) => `$'${word}'`,
  (word) => `${word.slice(0, 1)}\\\n${word.slice(1)}`,
]

/** Words that quotes do not change: no operators, patterns, reserved words or assignments. */
const isPlain = (word: string): boolean =>
  /^[\w./-]+$/.test(word) &&
  !/^(if|then|else|elif|fi|for|in|do|done|while|until|case|esac|time|function|select)$/.test(word)

const quoteOne = (text: string, index: number, quote: (word: string) => string): string | undefined => {
  // Where words stand apart only by blanks, quotes around one of them are quotes for the shell.
  if (/['"`\\$#{}()<>[\]]/.test(text)) return undefined
  const words = text.split(' ')
  const at = index % words.length
  if (!isPlain(words[at]!)) return undefined
  return words.with(at, quote(words[at]!)).join(' ')
}

// The same texts in every run: findings are added to the corpus.
fc.configureGlobal({ seed: 20_261_130 })

describe('quotes', () => {
  test('around a word of an allowed command leave it allowed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.nat(), pick(QUOTES), async (which, index, quote) => {
        const text = quoteOne(allowed[which % allowed.length]!, index, quote)
        fc.pre(text !== undefined)
        expect({ text, decision: await decide(text, peaceful) }).toEqual({ text, decision: 'allow' })
      }),
      { numRuns: 400 },
    )
  })

  test('around a word of a disaster leave it denied', async () => {
    await fc.assert(
      fc.asyncProperty(pick(DISASTERS), fc.nat(), pick(QUOTES), async (command, index, quote) => {
        const text = quoteOne(command, index, quote)
        fc.pre(text !== undefined)
        expect({ text, decision: await decide(text) }).toEqual({ text, decision: 'deny' })
      }),
      { numRuns: 400 },
    )
  })

  test('around a word of an attack do not get it allowed', async () => {
    await fc.assert(
      fc.asyncProperty(pick(ATTACKS), fc.nat(), pick(QUOTES), async ({ command }, index, quote) => {
        const text = quoteOne(command, index, quote)
        fc.pre(text !== undefined)
        expect({ text, decision: await decide(text) }).not.toEqual({ text, decision: 'allow' })
      }),
      { numRuns: 600 },
    )
  })
})

describe('a command that is not allowed', () => {
  const JOINS: readonly ((one: string, other: string) => string)[] = [
    (one, other) => `${one}; ${other}`,
    (one, other) => `${one} && ${other}`,
    (one, other) => `${one} || ${other}`,
    (one, other) => `${one} | ${other}`,
    (one, other) => `${one} & ${other}`,
    (one, other) => `${one}\n${other}`,
    (one, other) => `${one} $(${other})`,
    (one, other) => `${one} "$(${other})"`,
    (one, other) => `${one} <(${other})`,
    (one, other) => `${one} \`${other}\``,
    (one, other) => `${other}; ${one}`,
    (one, other) => `(${other}); ${one}`,
    (one, other) => `if ${one}; then ${other}; fi`,
    (one, other) => `for v in 1; do ${one}; ${other}; done`,
    (one, other) => `timeout 5 ls; ${other}; ${one}`,
  ]
  // An attack of several commands may be none behind a pipe or in a subshell, where nothing that it sets outlives it.
  const attacks = ATTACKS.filter(
    ({ kind, command }) => kind !== 'broken syntax' && kind !== 'strange characters' && !/[;&|\n]/.test(command),
  )

  test('is not allowed next to one that is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), pick(attacks), pick(JOINS), async (which, { command }, join) => {
        const text = join(still[which % still.length]!, command)
        expect({ text, decision: await decide(text) }).not.toEqual({ text, decision: 'allow' })
      }),
      { numRuns: 1_500 },
    )
  })

  test('is not allowed with invisible characters in it', async () => {
    const characters = [
      '\0',
      '\r',
      '\b',
      '\u001b',
      '\u007f',
      '\u0085',
      '\u00a0',
      '\u00ad',
      '\u200b',
      '\u200d',
      '\u200e',
      '\u202e',
      '\u2028',
      '\u2066',
      '\u3000',
      '\ufe0f',
      '\ufeff',
      '\ud800',
      '\u{e0001}',
    ]
    await fc.assert(
      fc.asyncProperty(pick(ATTACKS), fc.nat(), pick(characters), async ({ command }, at, character) => {
        const index = at % (command.length + 1)
        const text = command.slice(0, index) + character + command.slice(index)
        expect({ text, decision: await decide(text) }).not.toEqual({ text, decision: 'allow' })
      }),
      { numRuns: 800 },
    )
  })
})

describe('any text', () => {
  const pieces = pick([
    'ls',
    ' ',
    '$',
    '(',
    ')',
    '{',
    '}',
    '`',
    '"',
    "'",
    '\\',
    '\n',
    ';',
    '&',
    '|',
    '<',
    '>',
    '<<E',
    '#',
    '*',
    '[',
    ']',
    '!',
    '~',
    '=',
    '$((',
    '${',
    ',',
    '..',
    '/',
    'é',
    '\u202e',
    '\0',
    '😀',
    'E',
  ])

  test('is answered without an error', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.array(pieces).map((it) => it.join('')),
          fc.string({ unit: 'binary' }),
          fc.string({ unit: 'grapheme' }),
        ),
        async (text) => {
          expect(await decide(text)).toMatch(/^(allow|ask|deny)$/)
        },
      ),
      { numRuns: 1_500 },
    )
  })

  test('that is a command with a piece cut out or put in is answered without an error', async () => {
    await fc.assert(
      fc.asyncProperty(pick(ATTACKS), fc.nat(), fc.nat({ max: 5 }), pieces, async ({ command }, at, length, piece) => {
        const index = at % (command.length + 1)
        expect(await decide(command.slice(0, index) + piece + command.slice(index + length))).toMatch(
          /^(allow|ask|deny)$/,
        )
      }),
      { numRuns: 800 },
    )
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeBudget, TooMuch } from '../budget.ts'
import { makeWorkspace } from '../fixtures/workspace.fixture.ts'
import { checkCommand, commandMatches, commandMentions } from './check-command.ts'

const place = { cwd: '/tmp', roots: ['/tmp'], shell: 'bash' as const }

describe('a command that costs too much to follow asks, with that reason', () => {
  test.each([
    ['doubled values', `x=a;${'x=$x$x;'.repeat(25)}echo $x`],
    ['nested loops', `${'for i in 1 2 3 4 5 6 7 8 9; do '.repeat(6)}ls${'; done'.repeat(6)}`],
    ['brackets', `ls ${'['.repeat(19_900)}`],
    ['braces', `ls ${'{'.repeat(19_900)}`],
    ['a long loop', 'for i in {1..190}; do ls; ls; ls; ls; ls; ls; done'],
    ['a text that is too long', 'ls; '.repeat(100_000)],
    ['many variables', Array.from({ length: 3_800 }, (_, n) => `a${n}=`).join(';')],
  ])('%s', (_, text) => {
    const { decision, reasons } = checkCommand(text, place)
    expect(decision).toBe('ask')
    expect(reasons.map((it) => it.code)).toContain('too much')
    expect(commandMatches('ls *', text, place)).toBe(false)
    expect(commandMentions('rm *', text, place)).toBe('unknown')
  })

  test('so does one with too many paths to resolve', () => {
    const { reasons } = checkCommand(`ls ${Array.from({ length: 1_900 }, (_, n) => `a${n}`).join(' ')}`, place)
    expect(reasons.map((it) => it.code)).toContain('too much')
  })

  test('a folder that is no longer known asks', () => {
    expect(checkCommand(`${'cd a; '.repeat(120)}ls`, place).decision).toBe('ask')
    expect(checkCommand(`${'cd a || cd b; '.repeat(30)}ls`, place).decision).toBe('ask')
  })

  test('a disaster before the limit is denied all the same', () => {
    const text = `rm -rf /; ${'for i in 1 2 3 4 5 6 7 8 9; do '.repeat(6)}ls${'; done'.repeat(6)}`
    expect(checkCommand(text, place).decision).toBe('deny')
  })
})

test('a budget ends when it is spent, whatever it counts', () => {
  for (const cost of ['commands', 'characters', 'steps', 'folders', 'entries', 'paths'] as const) {
    const { spend } = makeBudget()
    expect(() => {
      for (;;) spend(cost, 100)
    }).toThrow(TooMuch)
  }
})

describe('any text of up to 100 KB is answered within the budget', () => {
  const pieces = fc.constantFrom(
    ...'ls|cat |cd a;|x=$x$x;|x=a |$x|"$x"|for i in 1 2 3; do |; done|while a; do |if a; then |; fi|{a,b}|{1..99}|*|*/|[|]|?|**|$(|)|`|"|\'|\\|$|{x:-|}|<<E\n|\nE\n|<(ls)|case a in a) |;; esac|f() { |; }|(|&&|a[|=|$((|))|eval |sh -c |xargs |env |find . -exec |[[ |]]|git |\n|é|😀| '.split(
      /(?<!\|)\|(?!\|)/,
    ),
  )
  test('of pieces of shell syntax, repeated', () => {
    const workspace = makeWorkspace()
    const options = { cwd: workspace.root, roots: [workspace.root], shell: 'bash' as const }
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.array(pieces, { minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 3_000 })), {
          minLength: 1,
          maxLength: 4,
        }),
        fc.integer({ min: 100, max: 100_000 }),
        (parts, length) => {
          const text = parts
            .map(([words, times]) => words.join('').repeat(times))
            .join('')
            .slice(0, length)
          const { decision, reasons } = checkCommand(text, options)
          expect(decision === 'allow' ? reasons : decision).toEqual(
            decision === 'allow' ? [] : expect.stringMatching(/ask|deny/),
          )
          expect(commandMentions('rm *', text, options)).toBeDefined()
        },
      ),
      { numRuns: 150, seed: 20_261_130 },
    )
    workspace.remove()
  }, 60_000)
})

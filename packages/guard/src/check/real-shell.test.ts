import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sections } from '../fixtures/attacks.fixture.ts'
import { isListed, realShell, type StubShell, stubShell } from '../fixtures/real-shell.fixture.ts'
import { makeWorkspace } from '../fixtures/workspace.fixture.ts'
import { analyseCommand, checkCommand } from './check-command.ts'

// Pieces of shell syntax, put together at random. None of them names a place outside of the folder.
const $ = '$'
const PIECES = [
  [
    'ls',
    'cat',
    'wc',
    'git',
    'rm',
    'x',
    'y',
    'id',
    'a',
    '-l',
    ' ',
    ' ',
    ' ',
    ' ',
    ';',
    '|',
    '&',
    '&&',
    '||',
    '\n',
    '\\\n',
    '\\',
    "'",
    '"',
  ],
  [
    "'a b'",
    '"a b"',
    '"$v"',
    '$v',
    `${$}{v:-z}`,
    `"${$}{v:-$(id)}"`,
    '$(id)',
    '`id`',
    '"$(id)"',
    "'$(id)'",
    '"\\$(id)"',
    '$((1+2))',
    "$'a\\x20b'",
  ],
  [
    '{a,b}',
    '{1..3}',
    '{',
    '}',
    '(',
    ')',
    '{ ',
    '; }',
    '( ',
    ' )',
    '*',
    '*.ts',
    '?',
    '[ab]*',
    '~',
    '#',
    ' # c\n',
    '>o',
    '2>&1',
    '>&-',
    '<a.ts',
  ],
  [
    '<<E\n',
    '\nE\n',
    "<<'E'\n",
    '<<-E\n',
    '<<<a',
    'v=1',
    'v=a ',
    'if ',
    ' then ',
    ' else ',
    ' fi',
    'for v in ',
    ' do ',
    ' done',
    'case a in ',
  ],
  [
    'a) ',
    ';; ',
    'esac',
    '! ',
    '[[ ',
    '[ ',
    ' ]',
    ' ]]',
    'time ',
    'env ',
    'eval ',
    'echo ',
    'printf ',
    'true ',
    'cd sub',
    'command ',
    'sh -c ',
  ],
  [
    'xargs ',
    '\\;',
    '\\"',
    '\\$',
    '<(id)',
    '|&',
    '&>o',
    'f() ',
    'f',
    '@(a|b)',
    '$[1+1]',
    ';;&',
    '=',
    '-',
    '--',
    "'a'\\''b'",
    "$'a\\'; x #'",
  ],
].flat()

/** A small generator with a seed, so that a failure can be repeated. */
function generator(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

for (const [name, shell] of [
  ['bash', 'bash'],
  ['dash', 'sh'],
] as const) {
  const program = realShell(name)
  describe.skipIf(program === undefined)(`what ${name} really runs`, () => {
    let stub: StubShell
    beforeEach(() => {
      stub = stubShell(program!, '/home/nobody')
    })
    afterEach(() => stub.remove())

    test('is in the list of every text that was understood', { timeout: 60_000 }, async () => {
      const cwd = mkdtempSync(join(tmpdir(), 'oxbow-fuzz-'))
      const files = ['a.ts', 'b.ts', 'c d.ts', '-n', 'sub']
      mkdirSync(join(cwd, 'sub'))
      for (const it of files.slice(0, -1)) writeFileSync(join(cwd, it), '')
      const random = generator(name === 'bash' ? 1 : 2)
      const unlisted: string[] = []
      let understood = 0
      while (understood < 60) {
        const text = Array.from({ length: 1 + random(12) }, () => PIECES[random(PIECES.length)]).join(
          random(2) === 0 ? '' : ' ',
        )
        const { simple, unknown } = await analyseCommand(text, { cwd, roots: [cwd], home: '/home/nobody', shell })
        if (unknown.length > 0 || simple.length === 0) continue
        understood += 1
        const calls = stub.run(text, cwd, ['ls', 'cat', 'wc', 'git', 'rm', 'x', 'y', 'id', 'a', 'env', 'xargs', 'f'])
        for (const call of calls)
          if (!isListed(call, simple)) unlisted.push(`${JSON.stringify(text)} runs ${JSON.stringify(call)}`)
        for (const it of readdirSync(cwd)) if (!files.includes(it)) rmSync(join(cwd, it), { recursive: true })
        writeFileSync(join(cwd, 'a.ts'), '')
      }
      rmSync(cwd, { recursive: true })
      expect(unlisted).toEqual([])
    })

    test('is in the list of every everyday command that is allowed', { timeout: 60_000 }, async () => {
      const workspace = makeWorkspace({ hostile: false })
      const where = { cwd: workspace.root, roots: [workspace.root], home: '/home/nobody', shell }
      const unlisted: string[] = []
      let calls = 0
      const commands = sections('everyday.fixture.txt').get('read-only')!
      for (const text of commands.filter((_, index) => index % 3 === 0)) {
        const { decision, simple } = await checkCommand(text, where)
        if (decision !== 'allow') continue
        const programs = simple.flatMap((it) => [...it.words, ...it.written].flatMap((word) => word.value ?? []))
        for (const call of stub.run(text, workspace.root, programs)) {
          calls += 1
          if (!isListed(call, simple)) unlisted.push(`${text} runs ${JSON.stringify(call)}`)
        }
      }
      workspace.remove()
      expect(unlisted).toEqual([])
      expect(calls).toBeGreaterThan(80)
    })
  })
}

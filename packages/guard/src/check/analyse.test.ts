import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeWorkspace, type Workspace } from '../fixtures/workspace.fixture.ts'
import { analyseCommand } from './check-command.ts'

const $ = '$'
let workspace: Workspace
beforeAll(() => {
  workspace = makeWorkspace({ hostile: false })
})
afterAll(() => workspace.remove())

const analyse = (text: string) =>
  analyseCommand(text, { cwd: workspace.root, roots: [workspace.root], home: workspace.home, shell: 'bash' })

/** Programs with their arguments; what only the shell knows is a question mark. */
const programs = async (text: string): Promise<readonly string[]> =>
  (await analyse(text)).simple
    .filter((it) => it.words.length > 0)
    .map((it) => it.words.map((word) => word.value ?? '?').join(' '))

describe('every simple command is found', () => {
  test.each([
    ['a; b && c || d | e & f', ['a', 'b', 'c', 'd', 'e', 'f']],
    ['! (a; { b; }) | c', ['a', 'b', 'c']],
    ['if a; then b; elif c; then d; else e; fi', ['a', 'b', 'c', 'd', 'e']],
    ['while a; do b; done; until c; do d; done', ['a', 'b', 'c', 'd']],
    ['case $(a) in $(b)) c;; *) d;; esac', ['a', 'b', 'c', 'd']],
    ['echo $(a "$(b `c`)")', ['c', 'b ?', 'a ?', 'echo ?']],
    ['cat <(a) >(b) <<< "$(c)"', ['a', 'b', 'c', 'cat ? ?']],
    [`x=$(a) y="${$}{z:-$(b)}" c`, ['a', 'b', 'c']],
    [`cat <<E\n$(a) ${$}{x:-\`b\`}\nE`, ['a', 'b', 'cat']],
    ["cat <<'E'\n$(a)\nE", ['cat']],
    ['a > $(b) < "$(c)"', ['b', 'c', 'a']],
    ['[[ $(a) == $(b) ]] && (( $(c) ))', ['a', 'b', '[[ ?', 'c']],
    ['for ((i=$(a);;)); do b; done', ['a', 'b']],
    ['f() { a; }; coproc b; select x in y; do c; done', ['a', 'b', 'c']],
    ['echo $((1 + $(a)))', ['a', 'echo ?']],
    ["sh -c 'a; b' && eval 'c; d'", ['sh -c a; b', 'a', 'b', 'eval c; d', 'c', 'd']],
    ["trap 'a' EXIT; ssh host 'b; c'", ['trap a EXIT', 'a', 'ssh host b; c', 'b', 'c']],
    ['env -i X=1 nice -n 3 timeout 5 nohup a b', ['a b']],
    ['xargs -n 1 a b', ['a b ?']],
    ['find . -exec a {} \\; -exec b {} +', ['find . -exec a {} ; -exec b {} +', 'a ?', 'b ?']],
    ['time command a', ['a']],
  ])('%s', async (text, expected) => {
    expect(await programs(text)).toEqual(expected)
  })

  test('with its context', async () => {
    const { simple } = await analyse("for i in x; do timeout 5 sh -c 'env A=1 ls >out'; done")
    expect(
      simple.map(({ via, assignments, redirections }) => [
        via,
        assignments.map((it) => it.name),
        redirections.map((it) => it.text),
      ]),
    ).toEqual([
      [['timeout'], [], []],
      [['timeout', 'sh -c', 'env'], ['A'], ['>out']],
    ])
  })
})

describe('words are parsed as the shell parses them', () => {
  test.each([
    ['a "b c" d\\ e \'f\'"g"h', ['a', 'b c', 'd e', 'fgh']],
    ["a $'b\\tc\\x41'", ['a', 'b\tcA']],
    ['a {b,c{1..3}}d', ['a', 'bd', 'c1d', 'c2d', 'c3d']],
    ['a {b,"c,d"} {} {e} x{,y}', ['a', 'b', 'c,d', '{}', '{e}', 'x', 'xy']],
    ['a src/*.ts', ['a', 'src/a.ts', 'src/b.ts']],
    [
      'a "src/*.ts" src/*.none src/[ab].ts src/[!a].ts',
      ['a', 'src/*.ts', 'src/*.none', 'src/a.ts', 'src/b.ts', 'src/b.ts'],
    ],
    [
      'a */package.json packages/*/package.json',
      ['a', '*/package.json', 'packages/one/package.json', 'packages/two/package.json'],
    ],
    ['a b\\\nc d', ['a', 'bc', 'd']],
    ['a # b', ['a']],
    ['a b#c', ['a', 'b#c']],
    [`x=b; a $x "$x" '$x' "${$}{x}c"`, ['a', 'b', 'b', '$x', 'bc']],
    ['x="b c"; a "$x"', ['a', 'b c']],
  ])('%s', async (text, expected) => {
    const { simple } = await analyse(text)
    expect(simple.at(-1)!.words.map((it) => it.value)).toEqual(expected)
  })

  test.each([
    'a $x',
    'a "$x"',
    'a $(b)',
    'a ~bob',
    'a "$@"',
    'x="b c"; a $x',
    "x='*'; a $x",
    'a src/[a-z].ts',
    'a $((1))',
    'read x; a $x',
  ])('%s has a word that only the shell knows', async (text) => {
    const { simple } = await analyse(text)
    expect(simple.at(-1)!.words.some((it) => it.value === undefined)).toBe(true)
  })
})

describe('the folder is followed', () => {
  test.each([
    ['cd src; a', ['', 'src']],
    ['cd src && a', ['src']],
    ['cd src || a', ['']],
    ['cd src || exit 1; a', ['src']],
    ['cd src && cd deep && a', ['src/deep']],
    ['(cd src); a', ['']],
    ['cd src | b; a', ['']],
    ['cd src & a', ['']],
    ['{ cd src; } && a', ['src']],
    ['{ cd src; true; }; a', ['src', '']],
    ['if cd src; then a; fi', ['src']],
    ['! cd src || a', ['src']],
    ['env -C src a', ['src']],
    ['command cd src && a', ['src']],
    ['bash -c "cd src && b"; a', ['']],
  ])('%s', async (text, folders) => {
    const { simple } = await analyse(text)
    const found = simple.filter((it) => it.words[0]?.value === 'a').flatMap((it) => it.directories)
    expect(new Set(found)).toEqual(
      new Set(folders.map((it) => (it === '' ? workspace.root : `${workspace.root}/${it}`))),
    )
  })

  test.each(['cd; a', 'cd - && a', 'cd $x && a', 'pushd src; a', 'eval x; a', '. x; a', '$x; a'])(
    '%s leads to a folder that is not known',
    async (text) => {
      const { simple } = await analyse(text)
      expect(simple.at(-1)!.directories).toEqual([])
    },
  )
})

test('a text that is too long is not understood, and nothing of it is walked', () => {
  const { simple, unknown } = analyse('ls; '.repeat(10_000))
  expect(unknown.map((it) => it.kind)).toEqual(['too long'])
  expect(simple).toEqual([])
})

test('hostile texts are answered', () => {
  const texts = [
    ' '.repeat(19_000),
    `ls ${'a '.repeat(9_000)}`,
    `echo ${'{a,b}'.repeat(40)}`,
    `ls ${'*'.repeat(200)}`,
    `ls ${'*a'.repeat(200)}`,
    `cat ${'*/'.repeat(100)}`,
    'x'.repeat(19_000),
    '&'.repeat(10_000),
    '\\'.repeat(10_001),
    `${'$('.repeat(2_000)}`,
    `${'`'.repeat(5_001)}`,
    `${'if a; then '.repeat(500)}`,
    `${'for i in a b c d; do '.repeat(8)} ls; ${'done; '.repeat(8)}`,
    `sed '${'s/a/b/;'.repeat(2_000)}' x`,
    `awk '${'/a/'.repeat(4_000)}' x`,
    `${'A=1 '.repeat(4_000)}ls`,
  ]
  for (const it of texts) expect(analyse(it)).toHaveProperty('unknown')
})

// Ways out that were found by running them: each one is run for real in a scratch folder, where its effect must be seen,
// and the command must not be one that runs unasked.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { realShell } from '../fixtures/real-shell.fixture.ts'
import { checkCommand, commandMatches } from './check-command.ts'

const bash = realShell('bash')
const has = (program: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0

let outside: string
let root: string
beforeEach(() => {
  outside = realpathSync(mkdtempSync(join(tmpdir(), 'oxbow-real-')))
  root = join(outside, 'work')
  mkdirSync(root)
})
afterEach(() => rmSync(outside, { recursive: true }))

const write = (files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text, { mode: 0o755 })
  }
}
const run = (text: string): string =>
  spawnSync(bash!, ['-c', text], {
    cwd: root,
    input: '',
    timeout: 10_000,
    env: { PATH: process.env.PATH, HOME: outside, API_TOKEN: 'secret-of-the-environment' },
    encoding: 'utf8',
  }).output.join('')
const decide = (text: string, more: { allowEdits?: boolean; allow?: readonly string[] } = {}): string =>
  checkCommand(text, { cwd: root, roots: [root], home: outside, shell: 'bash', searchPath: '/usr/bin:/bin', ...more })
    .decision

describe.skipIf(bash === undefined)('a command that runs another one is not run unasked', () => {
  test.each([
    ['find', "echo '-maxdepth 0 -exec touch PWN ;' | xargs -I{} -n9 find ."],
    ['find', 'touch x; ls | xargs --replace touch echo PWN; ls | xargs touch'],
    ['awk', `awk 'BEGIN{for(print "x" > "PWN"; 0;);}'`],
    ['awk', `awk 'BEGIN{for(;;print "x" > "PWN") if (n++) break}'`],
    ['bash', "a=1; test -v 'a[$(touch PWN)]'"],
    ['bash', "printf -v 'a[$(touch PWN)]' x"],
    ['bash', "x='a[$(touch PWN)]'; let x"],
    ['bash', "a=(1); unset 'a[$(touch PWN)]'"],
    ['bash', "declare 'a[$(touch PWN)]=1'"],
    ['bash', "read 'a[$(touch PWN)]' <<< x"],
    ['bash', "compgen -W '$(touch PWN)' > /dev/null"],
    ['bash', "mapfile -C 'touch PWN #' -c 1 a <<< x"],
  ])('%s: %s', (program, text) => {
    if (has(program)) {
      run(text)
      expect(existsSync(join(root, 'PWN'))).toBe(true)
      rmSync(join(root, 'PWN'))
    }
    expect(decide(text)).toBe('ask')
    expect(existsSync(join(root, 'PWN'))).toBe(false)
  })

  test.each([
    ['test *', "test -v 'a[$(touch PWN)]'"],
    ['[ *', "[ -v 'a[$(touch PWN)]' ]"],
    ['printf *', "printf -v 'a[$(touch PWN)]' x"],
    ['unset *', "a=(1); unset 'a[$(touch PWN)]'"],
    ['read *', "read 'a[$(touch PWN)]' < x"],
    ['declare *', "declare 'a[$(touch PWN)]=1'"],
    ['mapfile *', "mapfile -C 'touch PWN #' -c 1 a < x"],
  ])('also not where a rule allows %s: %s', (rule, text) => {
    write({ x: 'x\n' })
    run(text)
    expect(existsSync(join(root, 'PWN'))).toBe(true)
    expect(commandMatches(rule, text, { cwd: root, roots: [root], shell: 'bash' })).toBe(false)
    expect(decide(text, { allow: [rule] })).toBe('ask')
  })
})

describe.skipIf(bash === undefined)('a command that shows the environment is not run unasked', () => {
  test.each([
    ['awk', "awk 'BEGIN{for(k in ENVIRON) print ENVIRON[k]}'"],
    ['jq', 'jq -n env'],
    ['jq', "jq -n '$ENV.API_TOKEN'"],
    ['bash', 'set -x; test -n "$API_TOKEN"'],
    ['bash', 'bash -xc \'test -n "$API_TOKEN"\''],
    ['bash', '[ "$API_TOKEN" -eq 1 ]'],
    ['bash', '[[ $API_TOKEN =~ (.*) ]] && declare -p BASH_REMATCH'],
    ['ps', 'ps -A e ww'],
  ])('%s: %s', (program, text) => {
    if (has(program)) expect(run(text)).toContain('secret-of-the-environment')
    expect(decide(text)).toBe('ask')
  })
})

describe.skipIf(bash === undefined || !has('git'))(
  'git does not run unasked in a repository that starts programs',
  () => {
    const bare = (folder: string, setting: string): void => {
      run(`git init -q --bare ${folder} && git -C ${folder} config ${setting} && mkdir -p ${folder}/refs/docs`)
      run('git init -q .')
    }
    const bareWithTree = (folder: string): void => {
      bare(folder, "core.fsmonitor 'touch $PWN; false'".replace('$PWN', join(root, 'PWN')))
      run(`git -C ${folder} config core.bare false && git -C ${folder} config core.worktree ${root}/${folder}`)
    }

    test('a link leads into a folder that git treats as a repository', () => {
      bareWithTree('vendor')
      symlinkSync('vendor/refs', join(root, 'docs'))
      run('cd docs && git status')
      expect(existsSync(join(root, 'PWN'))).toBe(true)
      expect(decide('cd docs && git status')).toBe('ask')
      expect(decide('git -C docs status')).toBe('ask')
      expect(decide('git status')).toBe('allow')
    })

    test('its objects and settings are elsewhere', () => {
      bareWithTree('vendor')
      write({ 'thin/HEAD': 'ref: refs/heads/main\n', 'thin/commondir': '../vendor\n' })
      expect(run('cd thin && git config core.fsmonitor')).toContain('touch')
      expect(decide('cd thin && git status')).toBe('ask')
    })

    test.each([
      ['[core] fsmonitor = touch PWN'],
      ['[core]\n\tfsmonitor = true && touch PWN'],
      ['[core]\n\tsomethingNew = touch PWN'],
      ['[core]\n\talternateRefsCommand = touch PWN'],
      ['[remote "x"]\n\turl = ext::touch PWN'],
      ['[core]\n\tbare = false \\\n\tfsmonitor = touch PWN'],
      ['nonsense'],
    ])('its settings are %s', (config) => {
      run('git init -q . && git init -q nested')
      expect(decide('cd nested && git status')).toBe('allow')
      write({ 'nested/.git/config': `${config}\n` })
      expect(decide('cd nested && git status')).toBe('ask')
    })

    test('it has a hook', () => {
      run('git init -q . && git init -q nested && touch nested/x && git -C nested add x')
      write({ 'nested/.git/hooks/post-index-change': `#!/bin/sh\ntouch ${root}/PWN\n` })
      run('touch nested/x && cd nested && git status')
      expect(decide('cd nested && git status')).toBe('ask')
    })

    test('addresses of remotes are shown unasked where they hold no password', () => {
      run('git init -q . && git remote add origin https://example.com/x.git')
      expect(decide('git remote -v')).toBe('allow')
      run('git remote set-url origin https://ann:password@example.com/x.git')
      expect(run('git remote -v')).toContain('password')
      expect(decide('git remote -v')).toBe('ask')
      expect(decide('git config --get remote.origin.url')).toBe('ask')
      expect(decide('git config user.name')).toBe('allow')
      expect(decide('git config --list')).toBe('ask')
    })
  },
)

describe('a search that reaches secrets is not run unasked', () => {
  const SECRET = 'KEY=secret-of-the-workspace\n'
  test.each([
    ['grep', 'grep -r KEY .'],
    ['grep', 'grep -d recurse KEY .'],
    ['grep', 'grep -r KEY src/deep'],
    ['grep', 'grep -R KEY linked'],
    ['git', 'git grep --untracked KEY'],
    ['rg', 'rg KEY . -g .env'],
    ['rg', 'rg --no-ignore KEY'],
    ['rg', 'rg -uu KEY'],
    ['grep', 'cat .git/config src/deep/.env'],
  ])('%s: %s', (program, text) => {
    write({ '.env': SECRET, 'src/deep/.env': SECRET, 'src/a.ts': 'a', 'linked/a.ts': 'a', '.gitignore': 'kept\n' })
    write({ 'kept/server.key': SECRET })
    symlinkSync('../.env', join(root, 'linked/more'))
    run('git init -q .')
    if (has(program)) expect(run(text)).toContain('secret-of-the-workspace')
    expect(decide(text)).toBe('ask')
  })

  test('one that leaves them out runs', () => {
    write({ '.env': SECRET, 'src/a.ts': 'a', '.gitignore': 'kept\nnode_modules/\n', 'kept/server.key': SECRET })
    run('git init -q .')
    for (const text of [
      'rg KEY',
      'rg KEY -g "!*.md"',
      'grep -r KEY src',
      'grep -r --include="*.ts" KEY .',
      'git grep KEY',
    ])
      expect([text, decide(text)]).toEqual([text, 'allow'])
    write({ '.ignore': '!kept\n' })
    expect(decide('rg KEY')).toBe('ask')
  })

  test('a tree that is too large to look through asks, and its ignored part does not count', () => {
    for (let folder = 0; folder < 21; folder += 1)
      write(Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`node_modules/${folder}/${n}.js`, ''])))
    write({ 'a.ts': 'a', '.gitignore': 'node_modules\n' })
    run('git init -q .')
    expect(decide('rg KEY')).toBe('allow')
    expect(decide('grep -r KEY --exclude-dir=.git .')).toBe('ask')
    expect(decide('grep -r KEY --exclude-dir=.git --exclude-dir=node_modules .')).toBe('allow')
  })
})

test('names outside of the roots are not listed unasked', () => {
  write({ x: '' })
  writeFileSync(join(outside, 'private-name'), '')
  expect(run('echo ../*')).toContain('private-name')
  for (const text of [
    'echo ../*',
    'for name in ../*; do echo "$name"; done',
    'printf "%s\\n" /etc/*',
    'cd .. ; echo *',
  ])
    expect([text, decide(text)]).toEqual([text, 'ask'])
  expect(decide('echo *')).toBe('allow')
})

describe.skipIf(bash === undefined)('a line is checked against what it writes itself', () => {
  test('a pattern matches a file that the line has just made', () => {
    write({ a: '', 'folder/b': '' })
    const text = '> ./-delete; find folder ?delete'
    expect(decide(text, { allowEdits: true })).toBe('ask')
    run(text)
    expect(existsSync(join(root, 'folder'))).toBe(false)
  })

  test.each([
    "> ./--pre=sh; echo 'touch PWN' > z.sh; rg x *",
    'for name in *; do cat "$name"; done > out',
    'while true; do rg x * > ./--pre=sh; done',
    "echo '!kept' > .ignore; rg x",
    'ls > x; cat *.ts',
  ])('%s', (text) => {
    write({ 'kept/server.key': '', 'a.ts': '', '.git/HEAD': '', '.gitignore': 'kept\n' })
    expect(decide(text, { allowEdits: true })).toBe('ask')
  })

  test('a rule allows what puts a link where the check has seen a file, or nothing', () => {
    writeFileSync(join(outside, 'secret'), 'secret-outside')
    write({ a: '' })
    const text = 'ln -sf ../secret x && cat x'
    expect(decide(text, { allow: ['ln *'] })).toBe('ask')
    expect(decide('git checkout topic && cat a', { allow: ['git checkout *'] })).toBe('ask')
    expect(run(text)).toContain('secret-outside')
  })

  test('what does not depend on it runs', () => {
    write({ 'a.ts': 'a' })
    for (const text of [
      'cat *.ts > all.txt',
      'echo x > out; cat out',
      'ls > out && wc -l out',
      'sort a.ts 2> /dev/null; ls *.ts',
    ])
      expect([text, decide(text, { allowEdits: true })]).toEqual([text, 'allow'])
    expect(decide('npm test 2>&1 | tail -5', { allow: ['npm test'] })).toBe('allow')
    expect(decide('git checkout topic && echo done', { allow: ['git checkout *'] })).toBe('allow')
  })
})

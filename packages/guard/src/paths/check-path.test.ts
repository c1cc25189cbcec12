import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { foldsCase } from './case-folding.ts'
import { checkPath, type PathOptions } from './check-path.ts'
import { DANGEROUS_FILES } from './dangerous-files.ts'

let outside: string
let root: string
let home: string
beforeAll(() => {
  outside = realpathSync(mkdtempSync(join(tmpdir(), 'oxbow-paths-')))
  root = join(outside, 'work')
  home = join(outside, 'home')
  for (const it of ['work/src/deep', 'work/café', 'home/.ssh', 'work-hack', 'shared', 'other'])
    mkdirSync(join(outside, it), { recursive: true })
  for (const it of [
    'secret',
    'work/a.txt',
    'work/src/b.txt',
    'work-hack/x',
    'home/.ssh/id_rsa',
    'shared/x',
    'work/config.json',
  ])
    writeFileSync(join(outside, it), '')
  const links: Record<string, string> = {
    'work/out': '..',
    'work/absolute': outside,
    'work/file': '../secret',
    'work/dangling': '../new/file',
    'work/dangling-inside': 'src/new',
    'work/loop': 'loop',
    'work/loop-a': 'loop-b',
    'work/loop-b': 'loop-a',
    'work/inside': 'src',
    'work/src/up': '..',
    'work/src/upup': '../..',
    'work/chain': 'chain-2',
    'work/chain-2': 'src/upup/secret',
    'work/slash': '/',
    'work/sibling': '../work-hack',
    'work/ssh': '../home/.ssh',
    'work/env': '.env',
    'work/hooks': '.git/hooks',
    'work/dev': '/dev',
    'work/proc': '/proc/self',
    'work/shared': '../shared',
    'link-to-work': 'work',
  }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(outside, name))
})
afterAll(() => rmSync(outside, { recursive: true }))

const check = (path: string, more: Partial<PathOptions> = {}) =>
  checkPath(path, { cwd: root, roots: [root], home, ...more })

describe('inside', () => {
  test.each(
    [
      'a.txt',
      './a.txt',
      'src/b.txt',
      'src/../a.txt',
      'src//b.txt',
      'new/folder/file',
      '.',
      '',
      'inside/b.txt',
      'inside/../a.txt',
      'src/up/a.txt',
      'src/up/src/b.txt',
      'dangling-inside',
      'dangling-inside/x',
      'café',
      'ünïcode',
      '…',
      'a b',
      'a~',
      'a\\b',
      '-rf',
      '...',
      '..a',
      'a..',
      '%2e%2e/x',
      '$HOME/x',
      '*',
    ].filter((it) => it !== ''),
  )('%s', (path) => {
    expect(check(path)).toMatchObject({ inside: true, reason: 'inside', root })
  })

  test('the real path is reported', () => {
    expect(check('src/up/inside/./b.txt').real).toBe(join(root, 'src/b.txt'))
    expect(check('dangling-inside').real).toBe(join(root, 'src/new'))
    expect(check(`${root}/a.txt`).real).toBe(join(root, 'a.txt'))
  })

  test('a root may be given by a link, and a path by the real name or the link', () => {
    const roots = [join(outside, 'link-to-work')]
    expect(check(join(outside, 'link-to-work/a.txt'), { roots }).inside).toBe(true)
    expect(check(join(root, 'a.txt'), { roots }).inside).toBe(true)
    expect(check('a.txt', { roots, cwd: roots[0]! }).inside).toBe(true)
    expect(check('../secret', { roots, cwd: roots[0]! }).inside).toBe(false)
  })

  test('what may only be read is inside for reading', () => {
    const readOnlyRoots = [join(outside, 'shared')]
    expect(check('shared/x', { readOnlyRoots, access: 'read' })).toMatchObject({ inside: true, root: readOnlyRoots[0] })
    expect(check('shared/x', { readOnlyRoots })).toMatchObject({ inside: false, reason: 'read-only' })
    expect(check('../other/x', { readOnlyRoots, access: 'read' }).inside).toBe(false)
  })
})

describe('outside', () => {
  test.each([
    '..',
    '../secret',
    '../',
    './..',
    'src/../..',
    'src/../../secret',
    '/',
    '/etc/passwd',
    '//etc',
    '///etc/passwd',
    '/./etc',
    '/../etc',
    '../work-hack/x',
    '../workspace',
    '~',
    '~/x',
    '~/.ssh/id_rsa',
    '~root',
    '~root/x',
    '~+/x',
    '~-',
    'out',
    'out/secret',
    'out/work-hack/x',
    'out/../x',
    'absolute/secret',
    'file',
    'dangling',
    'dangling/x',
    'loop',
    'loop/x',
    'loop-a/x',
    'inside/../../secret',
    'src/up/../secret',
    'src/upup/secret',
    'src/upup',
    'chain',
    'slash/etc/passwd',
    'slash',
    'sibling/x',
    'ssh/id_rsa',
    'dev/sda',
    'dev/null',
    'proc/environ',
    'proc/cwd/a.txt',
    'proc/root/etc',
    'new/../../secret',
    'new/../out/secret',
    'a.txt/../../secret',
    '/proc/self/root/etc/passwd',
    '/proc/self/cwd/a.txt',
    '/proc/1/environ',
    '/proc/self/fd/0',
    '/dev/fd/0',
    '/dev/sda',
    '/dev/null',
    '/dev/stdin',
    '/dev/tcp/h/1',
    '/sys/kernel',
    'src/deep/../../../secret',
    'shared/x',
    'C:\\Windows',
    'c:/Windows',
    '\\\\server\\share',
    '//server/share/x',
    '\\x',
    '\\\\?\\C:\\x',
    '\\\\.\\pipe\\x',
    '..\\secret',
    'src\\..\\..\\secret',
    'src\\..',
    '\\??\\C:\\x',
    '',
    '\0',
    'a.txt\0',
    'a\0/../../secret',
    'a\n',
    'a\r',
    'a\u001b',
    '\u202esecret',
    'a\u200b',
    '\ufeffa',
    'a\u2028',
    '\ud800',
  ])('%j', (path) => {
    expect(check(path).inside).toBe(false)
    expect(check(path, { access: 'read' }).inside).toBe(false)
  })

  test('with the reason', () => {
    const reason = (path: string) => check(path).reason
    expect(reason('../x')).toBe('outside')
    expect(reason('loop')).toBe('loop')
    expect(reason('~bob')).toBe('other home')
    expect(reason('a\0')).toBe('malformed')
    expect(reason('/proc/self/cwd/a.txt')).toBe('device')
    expect(reason('\\\\server\\share')).toBe('unknown form')
  })

  test('a sibling with a longer name is outside, and without roots everything is', () => {
    expect(check('/work-hack', { roots: ['/work'] }).inside).toBe(false)
    expect(check(`${root}x`).inside).toBe(false)
    expect(check('a.txt', { roots: [] }).inside).toBe(false)
    expect(check('a.txt', { cwd: join(outside, 'other') }).inside).toBe(false)
  })

  test('two spellings of a letter with an accent are two files where the volume says so', () => {
    expect(check('x', { roots: [join(root, 'cafe\u0301')], cwd: join(root, 'caf\u00e9') }).inside).toBe(foldsCase(root))
  })
})

describe('case', () => {
  test('counts unless the volume folds it', () => {
    const path = join(outside, 'WORK/a.txt')
    expect(check(path).inside).toBe(foldsCase(root))
    expect(check(path, { caseInsensitive: true }).inside).toBe(true)
    expect(check(path, { caseInsensitive: false }).inside).toBe(false)
    expect(check(join(outside, 'WORK-hack/x'), { caseInsensitive: true }).inside).toBe(false)
  })

  test('is asked of the volume without writing, and not of a folder that does not exist', () => {
    expect(foldsCase(join(outside, 'none'))).toBe(false)
    expect(typeof foldsCase(root)).toBe('boolean')
  })
})

describe('on Windows', () => {
  const windows = (path: string, more: Partial<PathOptions> = {}) =>
    checkPath(path, { cwd: 'C:\\repo', roots: ['C:\\repo'], home: 'C:\\Users\\me', platform: 'win32', ...more })

  test.each([
    'a',
    'a\\b',
    'a/b',
    'C:\\repo\\a',
    'c:\\REPO\\a',
    'C:/repo/a',
    '\\\\?\\C:\\repo\\a',
    '//?/C:/repo/a',
    'a\\..\\b',
    '.\\a',
    'a.',
    'a ',
  ])('%s is inside', (path) => {
    expect(windows(path)).toMatchObject({ inside: true })
  })

  test.each([
    '..',
    '..\\x',
    'a\\..\\..\\x',
    'C:\\repo-hack\\x',
    'C:\\',
    'D:\\repo\\a',
    'D:\\',
    'C:x',
    'D:x',
    'C:',
    '\\repo\\a',
    '\\x',
    '/repo/a',
    '\\\\server\\share',
    '\\\\server\\share\\repo',
    '//server/share',
    '\\\\server',
    '\\\\?\\UNC\\server\\share\\x',
    '\\\\?\\Volume{1}\\x',
    '\\\\?\\C:\\repo\\..\\x',
    '\\\\.\\C:\\repo\\a',
    '\\\\.\\PhysicalDrive0',
    '\\??\\C:\\repo\\a',
    '\\\\?\\GLOBALROOT\\x',
    'a:stream',
    'a::$DATA',
    'nul',
    'NUL.txt',
    'con',
    'a\\com1',
    'LPT1',
    'PROGRA~1\\x',
    '~',
    '~\\x',
    '~bob\\x',
    'a\0',
  ])('%s is outside', (path) => {
    expect(windows(path).inside).toBe(false)
  })

  test('a root may be a share', () => {
    const share = { cwd: '\\\\server\\share\\repo', roots: ['\\\\server\\share\\repo'] }
    expect(windows('a', share).inside).toBe(true)
    expect(windows('\\\\?\\UNC\\server\\share\\repo\\a', share).inside).toBe(true)
    expect(windows('\\\\server\\other\\repo\\a', share).inside).toBe(false)
    expect(windows('..\\x', share).inside).toBe(false)
  })

  test('names are dangerous in the form that Windows opens', () => {
    for (const it of ['.env', '.ENV', '.env.', '.env ', '.git\\config', '.GIT/Config'])
      expect(windows(it).dangerous).toBeDefined()
  })
})

describe('dangerous files', () => {
  test.each([
    '.env',
    '.env.production',
    'src/.env.local',
    'id_rsa',
    '.ssh/config',
    'deep/.ssh/authorized_keys',
    '.gnupg/x',
    'server.pem',
    'a/b/x.key',
    '.npmrc',
    'packages/x/.npmrc',
    '.netrc',
    '.pypirc',
    '.aws/credentials',
    '.aws',
    '.kube/config',
    '.docker/config.json',
    '.config/gcloud/x',
    '.config/gh/hosts.yml',
    '.git-credentials',
    '.pgpass',
    'terraform.tfstate',
    'credentials.json',
    'secrets.json',
    'config/secrets.yaml',
    'app-secrets.json',
    'AuthKey_1.p8',
    'deploy_key',
    'backup_rsa',
    '.git/config',
    '.bash_history',
    '.envrc',
    '.ENV',
    '.Env',
    '.ｅnv',
    '.𝐞nv',
    'env',
  ])('%s must not even be read', (path) => {
    expect(check(path, { access: 'read' })).toMatchObject({ inside: true, dangerous: { kind: 'secret' } })
    expect(check(path)).toMatchObject({ inside: true, dangerous: { kind: 'secret' } })
  })

  test.each([
    ['.bashrc', 'shell start-up'],
    ['.zshenv', 'shell start-up'],
    ['.profile', 'shell start-up'],
    ['.vimrc', 'shell start-up'],
    ['.git/HEAD', 'git internals'],
    ['vendor/HEAD', 'git internals'],
    ['vendor/commondir', 'git internals'],
    ['.git/hooks/pre-commit', 'git internals'],
    ['.git', 'git internals'],
    ['.git/objects/aa/bb', 'git internals'],
    ['sub/.git', 'git internals'],
    ['.GIT/hooks', 'git internals'],
    ['.gitmodules', 'git internals'],
    ['.gitattributes', 'git internals'],
    ['.husky/pre-commit', 'git internals'],
    ['hooks', 'git internals'],
    ['hooks/post-checkout', 'git internals'],
    ['.vscode/tasks.json', 'editor task'],
    ['.vscode/settings.json', 'editor task'],
    ['.idea/workspace.xml', 'editor task'],
    ['x.code-workspace', 'editor task'],
    ['.devcontainer/devcontainer.json', 'editor task'],
    ['.github/workflows/ci.yml', 'pipeline'],
    ['.gitlab-ci.yml', 'pipeline'],
    ['Jenkinsfile', 'pipeline'],
    ['oxbow.toml', 'agent settings'],
    ['AGENTS.md', 'agent settings'],
    ['packages/x/CLAUDE.md', 'agent settings'],
    ['package.json', 'project command'],
    ['packages/x/package.json', 'project command'],
    ['Makefile', 'project command'],
    ['.circleci/config.yml', 'pipeline'],
    ['.pnpmfile.cjs', 'package manager'],
    ['.yarn/releases/yarn.cjs', 'package manager'],
    ['node_modules/.bin/ls', 'package manager'],
    ['.cargo/config.toml', 'package manager'],
    ['x.pth', 'package manager'],
    ['rust-toolchain.toml', 'toolchain'],
    ['.tool-versions', 'toolchain'],
    ['crontab', 'scheduled job'],
    ['systemd/user/x.service', 'system service'],
    ['Library/LaunchAgents/x.plist', 'system service'],
    ['.claude/settings.json', 'agent settings'],
    ['.mcp.json', 'agent settings'],
    ['.oxbow/config.toml', 'agent settings'],
  ])('%s may be read and needs a question to be written (%s)', (path, kind) => {
    expect(check(path)).toMatchObject({ inside: true, dangerous: { kind } })
    expect(check(path, { access: 'read' }).dangerous).toBeUndefined()
  })

  test.each([
    'a.txt',
    'README.md',
    '.gitignore',
    '.env.example',
    '.env.sample',
    'src/environment.ts',
    'env.ts',
    'tsconfig.json',
    '.github/README.md',
    'git/config',
    'sshd/config',
    'keyboard.ts',
    '.eslintrc.json',
  ])('%s is an ordinary file', (path) => {
    expect(check(path).dangerous).toBeUndefined()
  })

  test('they are reported outside the roots too, and by each name that a link gives them', () => {
    expect(check('~/.ssh/id_rsa').dangerous?.kind).toBe('secret')
    expect(check('/etc/shadow').dangerous?.kind).toBe('secret')
    expect(check('ssh/id_rsa').dangerous?.kind).toBe('secret')
  })

  test('a workspace that lies in such a folder is not dangerous as a whole', () => {
    const nested = join(root, '.claude/worktrees/x')
    const inNested = (path: string) => check(path, { cwd: nested, roots: [nested] })
    expect(inNested('src/a.ts').dangerous).toBeUndefined()
    expect(inNested('.git/HEAD').dangerous?.kind).toBe('git internals')
    expect(inNested('.claude/settings.json').dangerous?.kind).toBe('agent settings')
  })

  test('a device inside a root is reported', () => {
    expect(checkPath('/dev/null', { cwd: '/', roots: ['/'] }).dangerous?.kind).toBe('device')
  })

  test('each row of the list says why, and each of its patterns matches a file', () => {
    for (const { why, patterns } of DANGEROUS_FILES) {
      expect(why).toMatch(/^[A-Z].+\.$/)
      for (const pattern of patterns) {
        expect(pattern).toBe(pattern.toLowerCase())
        const example = pattern.replace(/\/\*\*$/, '/x').replaceAll('*', 'x')
        const path = example.startsWith('/') ? example : join(root, example)
        expect([pattern, checkPath(path, { cwd: '/', roots: ['/'] }).dangerous !== undefined]).toEqual([pattern, true])
      }
    }
  })
})

describe('for every path', () => {
  const segment = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.constantFrom(
        '..',
        '.',
        'src',
        'deep',
        'out',
        'inside',
        'up',
        'upup',
        'file',
        'new',
        '',
        'work',
        'work-hack',
        'a.txt',
        '~',
        'absolute',
        'slash',
        'chain',
        'sibling',
      ),
    },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 4 }) },
  )
  const paths = fc
    .tuple(fc.constantFrom('', '/', './'), fc.array(segment, { maxLength: 8 }))
    .map(([start, segments]) => start + segments.join('/'))

  test('what is inside is really in the root, and no text throws', () => {
    fc.assert(
      fc.property(paths, (path) => {
        const { inside, real } = check(path)
        expect(inside ? real === root || real.startsWith(`${root}/`) : true).toBe(true)
        let opened: string | undefined
        try {
          opened = realpathSync(path.startsWith('/') ? path : `${root}/${path}`)
        } catch {
          // Nothing is there; then nothing can be compared.
        }
        if (inside && opened !== undefined) expect(real).toBe(opened)
      }),
      { numRuns: 3_000 },
    )
  })
})

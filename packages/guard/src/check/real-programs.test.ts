// Ways out that were found by running them: each one is run for real in a scratch folder, where its effect must be seen,
// and the command must not be one that runs unasked.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
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

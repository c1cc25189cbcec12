import { describe, expect, test } from 'vitest'
import { commandMatches, commandMentions, suggestRules } from '../check/check-command.ts'
import { commandPatternProblem } from './reading.ts'

describe('a rule matches by words', () => {
  test.each([
    ['git status', 'git status'],
    ['git status', '  git   status  '],
    ['git status', "'git' status"],
    ['git status', 'git "status"'],
    ['git status', '/usr/bin/git status'],
    ['git status', 'git status 2>/dev/null'],
    ['git status', 'timeout 5 git status'],
    ['git status', 'env git status'],
    ['git *', 'git'],
    ['git *', 'git status'],
    ['git *', 'git log --oneline -5'],
    ['git *', 'git status && git log'],
    ['git commit *', 'git commit -m "a b"'],
    ['git commit *', 'git commit -m "$x"'],
    ['git * --oneline', 'git log --oneline'],
    ['npm run test:*', 'npm run test:unit'],
    ['npm run test:*', 'npm run test:'],
    ['npm run test:*', 'npm run test:"$x"'],
    ['npm run test:* *', 'npm run test:unit --watch'],
    ['cat src/*', 'cat src/a.ts'],
    ["git commit -m 'a b'", 'git commit -m "a b"'],
    ["echo '*'", "echo '*'"],
    ['timeout 5 make *', 'timeout 5 make all'],
    ['sudo apt *', 'sudo apt install x'],
    ['sudo -u bob make *', 'sudo -u bob make all'],
    ["sh -c 'git status'", "sh -c 'git status'"],
    ['xargs grep *', 'xargs grep x'],
  ])('"%s" matches "%s"', async (pattern, text) => {
    // The inner program of sh -c is a second command unless the rule is the whole of it.
    if (text.startsWith('sh -c')) expect(await commandMatches(pattern, text)).toBe(false)
    else expect(await commandMatches(pattern, text)).toBe(true)
  })

  test.each([
    ['git status', 'git statusx'],
    ['git status', 'git status -s'],
    ['git status', 'git'],
    ['git status', 'xgit status'],
    ['git status', './git status'],
    ['git status', 'git status; rm x'],
    ['git status', 'git status && rm x'],
    ['git status', 'git status || rm x'],
    ['git status', 'git status | sh'],
    ['git status', 'git status & rm x'],
    ['git status', 'git status\nrm x'],
    ['git status', 'git status $(rm x)'],
    ['git status', 'git status > x'],
    ['git status', 'git status > ~/.bashrc'],
    ['git status', 'LD_PRELOAD=x git status'],
    ['git status', 'PATH=. git status'],
    ['git status', 'sudo git status'],
    ['git status', 'f() { git status; }'],
    ['git *', 'git log; ls'],
    ['git *', 'git log "$(ls)"'],
    ['git *', 'gitk'],
    ['git *', 'git log `ls`'],
    ['git commit *', 'git commit -m x; rm y'],
    ['git commit *', 'git commit-tree x'],
    ['git commit *', 'git -c x=y commit'],
    ['npm run test:*', 'npm run test'],
    ['npm run test:*', 'npm run test:unit --watch'],
    ['npm run test:*', 'npm run testing:x'],
    ['cat src/*', 'cat src/../../etc/passwd'],
    ['cat src/*', 'cat src/a /etc/passwd'],
    ['cat src/*', 'cat $x'],
    ['sudo *', 'sudo rm x'],
    ['sudo *', 'sudo -u bob rm x'],
    ['timeout *', 'timeout 5 rm x'],
    ['xargs *', 'xargs rm'],
    ['env *', 'env rm x'],
    ['nice *', 'nice rm x'],
    ['npx *', 'npx evil'],
    ['sh -c *', 'sh -c "rm x"'],
    ['bash *', 'bash -c "rm x"'],
    ['find *', 'find . -exec rm x ;'],
    ['find *', 'find . -exec rm {} \\;'],
    ['eval *', 'eval rm x'],
    ['echo *', 'echo x > y'],
    ['ls', ''],
    ['ls', 'ls "'],
    ['ls *', 'ls\u200b x'],
  ])('"%s" does not match "%s"', async (pattern, text) => {
    expect(await commandMatches(pattern, text)).toBe(false)
  })
})

describe('a rule that could never match has a problem', () => {
  test.each([
    '',
    '   ',
    '* x',
    'g* status',
    'ls; rm',
    'ls && rm',
    'ls | cat',
    'echo $(x)',
    'echo `x`',
    "echo 'x",
    'ls > x',
    'ls\nrm',
    '$x',
  ])('"%s"', (pattern) => {
    expect(commandPatternProblem(pattern)).toEqual(expect.any(String))
    expect(commandPatternProblem(pattern, 'deny')).toEqual(expect.any(String))
  })
})

describe('a rule that forbids', () => {
  test.each([
    ['git push *', 'git push'],
    ['git push *', 'git push --force origin main'],
    ['git push *', 'git -C x push'],
    ['git push *', 'git --no-pager push'],
    ['git push *', 'git -c a.b=c push'],
    ['git push *', 'ls; git push'],
    ['git push *', 'echo $(git push)'],
    ['git push *', 'bash -c "git push"'],
    ['git push *', 'eval git push'],
    ['git push *', 'sudo git push'],
    ['git push *', 'sudo -u x git push'],
    ['git push *', 'timeout 5 git push'],
    ['git push *', 'find . -exec git push ;'],
    ['git push *', 'find . -exec git push \\;'],
    ['git push *', '/usr/bin/git push'],
    ['git push *', "g'it' push"],
    ['git push *', 'GIT_DIR=x git push > y'],
    ['git push *', 'f() { git push; }; f'],
    ['git push *', 'git push "'],
    ['rm *', 'xargs rm'],
    ['rm *', 'nohup nice rm x &'],
  ])('"%s" means "%s"', async (pattern, text) => {
    expect(await commandMentions(pattern, text)).toBe(true)
  })

  test.each([
    ['git push *', 'git status'],
    ['git push *', 'git commit -m push'],
    ['git push *', 'echo git push'],
    ['rm *', 'ls rm'],
    ['rm *', "echo 'rm x'"],
  ])('"%s" does not mean "%s"', async (pattern, text) => {
    expect(await commandMentions(pattern, text)).toBe(false)
  })
})

describe('a rule that forbids could mean what cannot be followed', () => {
  test.each([
    'git $x o',
    'bash << E\ngit push o\nE',
    "bash <<< 'git push o'",
    'bash -o posix << E\ngit push o\nE',
    'env -S "git push o"',
    '$(echo git) push o',
    "printf 'git push o' | sh",
    'f(){ git "$@"; }; f push o',
    'a="git push o"; $a',
    'git$IFS""push o',
    'source <(echo git push o)',
    'source /dev/stdin',
    'awk \'BEGIN{system("git push o")}\'',
    "sed '1e git push o' x",
    "python3 -c 'x'",
    'node --eval x',
    'cat x | python',
    'alias g=git; g push',
    'git -c alias.x=push x',
    'script -c "git push"',
    'timeout 5 $x',
    'git "$(cat x)"',
  ])('"%s"', async (text) => {
    expect(await commandMentions('git push *', text, { cwd: '/', roots: [], shell: 'bash' })).toBe('unknown')
  })

  test.each([
    'echo $x',
    'ls "$dir"',
    'git log $x',
    'make',
    'sh x.sh',
    'python -m pytest',
    "awk '{print $1}' x",
    'x=1; echo $x',
  ])('but not "%s"', async (text) => {
    expect(await commandMentions('git push *', text, { cwd: '/', roots: [], shell: 'bash' })).toBe(false)
  })

  test('and one that cannot be read forbids everything', async () => {
    expect(await commandMentions('git push; ls', 'pwd')).toBe(true)
  })
})

describe('the exact words are offered as a rule, without a wildcard', () => {
  test.each([
    ['touch x', ['touch x']],
    ['git commit -m "a b"', ["git commit -m 'a b'"]],
    ['git commit', ['git commit']],
    ['git push --force', ['git push --force']],
    ['npm run build', ['npm run build']],
    ['npm run test:unit -- --watch', ['npm run test:unit -- --watch']],
    ['npm install x', ['npm install x']],
    ['cargo test foo', ['cargo test foo']],
    ['eslint src --fix', ['eslint src --fix']],
    ['go test ./...', ['go test ./...']],
    ["touch 'it'\\''s'", ["touch 'it'\\''s'"]],
  ])('for "%s"', async (text, rules) => {
    expect(await suggestRules(text)).toEqual(rules)
    expect(await commandMatches(rules[0]!, text)).toBe(true)
  })

  test.each([
    'ls; touch x',
    'touch x | cat',
    'touch $x',
    'touch $(ls)',
    'touch *',
    'touch {a,b}',
    'timeout 5 touch x',
    'sudo touch x',
    'env touch x',
    'xargs touch',
    'sh -c "touch x"',
    'bash x.sh',
    'python -c 1',
    'python x.py',
    'node x.js',
    'npx evil',
    'ssh host ls',
    'find . -delete',
    'rm x',
    'curl x',
    'touch x > y',
    'FOO=1 make',
    './x',
    '/tmp/x',
    'eval x',
    'if true; then touch x; fi',
    '(touch x)',
    'touch "',
    'touch x\u200b',
    '',
  ])('but not for "%s"', async (text) => {
    expect(await suggestRules(text)).toEqual([])
  })
})

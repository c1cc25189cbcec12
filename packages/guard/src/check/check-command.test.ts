// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file has expansions of the shell.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ATTACKS, DISASTERS, sections } from '../fixtures/attacks.fixture.ts'
import { makeWorkspace, type Workspace } from '../fixtures/workspace.fixture.ts'
import type { CommandOptions } from '../words/types.ts'
import { checkCommand } from './check-command.ts'

let hostile: Workspace
let peaceful: Workspace
beforeAll(() => {
  hostile = makeWorkspace()
  peaceful = makeWorkspace({ hostile: false })
})
afterAll(() => {
  hostile.remove()
  peaceful.remove()
})

const options = (workspace: Workspace, more: Partial<CommandOptions> = {}): CommandOptions => ({
  cwd: workspace.root,
  roots: [workspace.root],
  home: workspace.home,
  searchPath: 'tools:/usr/bin:/bin',
  shell: 'bash',
  ...more,
})

const decide = async (command: string, workspace: Workspace, more: Partial<CommandOptions> = {}): Promise<string> =>
  (await checkCommand(command, options(workspace, more))).decision

/** The commands of a list for which something else was decided than expected. */
async function others(
  commands: readonly string[],
  expected: string,
  workspace: Workspace,
  more: Partial<CommandOptions> = {},
): Promise<readonly string[]> {
  const found: string[] = []
  for (const it of commands) if ((await decide(it, workspace, more)) !== expected) found.push(it)
  return found
}

describe('attacks', () => {
  const kinds = Map.groupBy(ATTACKS, (it) => it.kind)

  test('the corpus is large', () => {
    expect(ATTACKS.length).toBeGreaterThan(1_000)
  })

  test.each([...kinds.keys()])('none of "%s" is allowed', async (kind) => {
    for (const shell of ['bash', 'sh'] as const) {
      const allowed: string[] = []
      for (const { command } of kinds.get(kind)!)
        if ((await decide(command, hostile, { shell })) === 'allow') allowed.push(command)
      expect(allowed).toEqual([])
    }
  })

  test('edits that are allowed do not allow any of them but what writes a harmless file', async () => {
    const allowed: string[] = []
    for (const { command } of ATTACKS)
      if ((await decide(command, hostile, { allowEdits: true })) === 'allow') allowed.push(command)
    expect(allowed.filter((it) => !/>|<E/.test(it))).toEqual([])
    expect(allowed.filter((it) => /\.git|\.bashrc|\/dev\/(?!null)|\/proc|\.\.|\$|`/.test(it))).toEqual([])
  })

  test('disasters are denied anywhere in a line', async () => {
    expect(await others(DISASTERS, 'deny', hostile)).toEqual([])
    expect(await others(DISASTERS, 'deny', hostile, { shell: 'sh', allow: ['rm *', 'sudo *', 'dd *'] })).toEqual([])
  })

  test('what only looks like a disaster is not denied', async () => {
    const harmless = [
      'echo "rm -rf /"',
      'grep -r "rm -rf /" src',
      "cat <<'E'\nrm -rf /\nE",
      'rm -rf ./build',
      'rm -rf node_modules dist',
      'rm -rf "$DIR"',
      'chmod -R u+w .',
      'find . -name "*.log" -delete',
      'dd if=a of=b.img',
      'kill -9 1234',
      'git commit -m "rm -rf /"',
      'docker run alpine rm -rf /tmp',
      'mv src/a.ts src/d.ts',
      'rm -rf src/*',
    ]
    const denied: string[] = []
    for (const it of harmless) if ((await decide(it, peaceful)) === 'deny') denied.push(it)
    expect(denied).toEqual([])
  })
})

describe('secrets of the environment', () => {
  test('a jq program reaches them with space or comments inside the variable', async () => {
    const programs = ['$  ENV', '$\nENV', '$#c\nENV', '"\\($ ENV)"', '.a|$ENV.B', '[.[]|env]', '..env']
    expect(
      await others(
        programs.map((it) => `jq -n '${it}'`),
        'ask',
        peaceful,
      ),
    ).toEqual([])
    expect(await others(["jq '.env' package.json", "jq '.ENV.a' package.json"], 'allow', peaceful)).toEqual([])
  })

  test('a test that depends on the value of one is asked about', async () => {
    const tests = [
      '[[ $OPENAI_API_KEY == s$a* ]] && echo $a',
      '[[ $DB_PASSWORD > m ]]',
      '[[ ${OPENAI_API_KEY:0:1} == s ]]',
      '[[ -n ${OPENAI_API_KEY#s} ]]',
      '[[ -n $A && $OPENAI_API_KEY < m ]]',
      '[[ $OPENAI_API_KEY ]]',
      '[[ -e $OPENAI_API_KEY ]]',
      'test "$OPENAI_API_KEY" = x',
      '[ "$OPENAI_API_KEY" != x ]',
      '[ -n "${OPENAI_API_KEY#s}" ]',
      '[ -n $OPENAI_API_KEY ]',
      '[ -n "$A" -a "$OPENAI_API_KEY" = x ]',
      'case $OPENAI_API_KEY in s*) echo s;; esac',
      'case sk in $OPENAI_API_KEY) echo s;; esac',
      'exit $OPENAI_API_KEY',
      'cat < $OPENAI_API_KEY',
      'while read -r c; do echo; done <<< $OPENAI_API_KEY',
      'echo $HTTP_PROXY',
      'echo $https_proxy',
      'printenv ALL_PROXY',
    ]
    expect(await others(tests, 'ask', peaceful)).toEqual([])
  })

  test('a test that only looks whether one is set is allowed', async () => {
    const tests = [
      '[ -n "$OPENAI_API_KEY" ] && echo set',
      'test ! -z "${OPENAI_API_KEY:-}"',
      '[[ -z $OPENAI_API_KEY || -n "$DB_PASSWORD" ]]',
      'echo $NO_PROXY',
    ]
    expect(await others(tests, 'allow', peaceful)).toEqual([])
  })
})

describe('everyday commands', () => {
  const everyday = sections('everyday.fixture.txt')

  test('of those that only read, at most one in twenty is asked about, and none is denied', async () => {
    const commands = everyday.get('read-only')!
    expect(commands.length).toBeGreaterThan(300)
    const asked = await others(commands, 'allow', peaceful)
    expect(asked.length / commands.length).toBeLessThan(0.05)
    expect(await others(asked, 'ask', peaceful)).toEqual([])
  })

  test('those that do more are asked about', async () => {
    expect(await others(everyday.get('asks')!, 'ask', peaceful)).toEqual([])
  })

  test('what is allowed without a rule only reads', async () => {
    const { readOnly } = await checkCommand('git status && ls | head', options(peaceful))
    expect(readOnly).toBe(true)
    expect((await checkCommand('npm test', options(peaceful, { allow: ['npm test'] }))).readOnly).toBe(false)
    expect((await checkCommand('ls > out', options(peaceful, { allowEdits: true }))).readOnly).toBe(false)
  })
})

describe('the reasons', () => {
  test('name the part, the worst first', async () => {
    const { decision, reasons } = await checkCommand('make > out; rm -rf /', options(peaceful))
    expect(decision).toBe('deny')
    expect(reasons.map(({ decision, code, text }) => ({ decision, code, text }))).toEqual([
      { decision: 'deny', code: 'disaster', text: 'rm -rf /' },
      { decision: 'ask', code: 'redirection', text: '> out' },
      { decision: 'ask', code: 'not read-only', text: 'make > out' },
      { decision: 'ask', code: 'not read-only', text: 'rm -rf /' },
    ])
  })

  test('of a path say where it really leads', async () => {
    const { reasons } = await checkCommand('cat link-chain', options(hostile))
    expect(reasons[0]?.message).toContain(`${hostile.outside}/secret is outside`)
  })

  test('a program of the workspace that takes the name of a system program is asked about', async () => {
    const { reasons } = await checkCommand('rg x src', options(hostile, { searchPath: 'tools' }))
    expect(reasons).toEqual([])
    const shadowed = await checkCommand(
      'ls',
      options(hostile, { searchPath: `${hostile.root}/node_modules/.bin:/bin` }),
    )
    expect(shadowed.decision).toBe('allow')
  })
})

describe('the shell', () => {
  test.each([
    '[[ a || reboot ]]',
    "echo $'a\\'; touch x #'",
    'cat <(ls)',
    'cat <<< x',
    'ls &> /dev/null',
    'ls |& cat',
    'echo {a,b}',
    `echo "${'$'}{x/a/b}"`,
    'x=(a b)',
    'echo $[1]',
    "sh -c '[[ a || b ]]'",
    "dash -c 'echo $(ls) {a,b}'",
  ])('%s is asked about where the shell may not be bash', async (command) => {
    expect(await decide(command, peaceful, { shell: 'sh' })).toBe('ask')
  })

  test('bash -c is read as bash also where the outer shell is another', async () => {
    expect(await decide("bash -c '[[ -f package.json ]] && ls'", peaceful, { shell: 'sh' })).toBe('allow')
  })

  test('a "!" is a letter for a shell without a terminal, and asked about with one', async () => {
    expect(await decide('echo "hi!you"', peaceful)).toBe('allow')
    expect(await decide('echo "hi!you"', peaceful, { interactive: true })).toBe('ask')
    expect(await decide("echo 'hi!you'", peaceful, { interactive: true })).toBe('allow')
    expect(await decide('ls !!', peaceful, { interactive: true })).toBe('ask')
  })

  test('emoji made of several characters do not count as invisible characters', async () => {
    expect(await decide('echo "✔️ 🤖 👩‍💻"', peaceful)).toBe('allow')
  })
})

describe('rules of the person', () => {
  const allow = ['npm test', 'git commit *', 'npm run test:*', 'make *']

  test.each([
    'npm test',
    'npm test | tail -20',
    'cd packages && npm test',
    'timeout 60 npm test',
    'NODE_ENV=test npm test',
    'npm test 2>&1 | head || true',
    'git commit -m "a b"',
    'git commit -m "$(cat <<\'EOF\'\nA title\n\nA body with `code` and $(nothing)\nEOF\n)"',
    'git status && git commit -am wip',
    'npm run test:unit && make build',
    'for i in 1 2; do make $i; done',
  ])('%s is allowed', async (command) => {
    expect(await decide(command, peaceful, { allow })).toBe('allow')
  })

  test.each([
    'npm test; npm publish',
    'npm test && touch x',
    'npm test > out',
    'npm test > .git/config',
    'LD_PRELOAD=x npm test',
    'npm testing',
    'npm test --x',
    'npm -C / test',
    'sudo npm test',
    'git commit -m "$(touch x)"',
    'git -c core.editor=x commit',
    'git commit -m x | sh',
    'npm run test:unit --silent',
    'npm run testing',
    'xargs make',
    'make $(touch x)',
    'f() { make; }; f',
    'cd / && make',
    'make\ntouch x',
    'eval make all',
  ])('%s is asked about', async (command) => {
    expect(
      await decide(command, peaceful, { allow: allow.filter((it) => command !== 'xargs make' || it !== 'make *') }),
    ).toBe('ask')
  })

  test('edits that are allowed cover harmless files of the workspace', async () => {
    const more = { allowEdits: true }
    expect(await decide('ls > out.txt', peaceful, more)).toBe('allow')
    expect(await decide("cat > src/new.ts <<'EOF'\nx\nEOF", peaceful, more)).toBe('allow')
    for (const it of [
      'ls > .git/config',
      'ls > ../x',
      'ls > .env',
      'ls > ~/.bashrc',
      'ls > .github/workflows/a.yml',
      'ls > oxbow.toml',
      'ls > package.json',
      'ls > AGENTS.md',
      'ls > src/HEAD',
      'ls > $x',
      'cd .. && ls > x',
    ])
      expect(await decide(it, peaceful, more)).toBe('ask')
  })
})

describe('notes', () => {
  test.each([
    ['git rebase -i HEAD~3', 'interactive'],
    ['GIT_SEQUENCE_EDITOR=true git rebase -i HEAD~3', 'interactive'],
    ['git commit', 'interactive'],
    ['git push', 'interactive'],
    ['ssh host', 'interactive'],
    ['sudo ls', 'interactive'],
    ['vim x', 'interactive'],
    ['cat', 'interactive'],
    ['tail -f error.log', 'endless'],
    ['npm run dev', 'endless'],
    ['docker run -it alpine sh', 'interactive'],
    ['python', 'interactive'],
  ])('%s may be %s', async (command, kind) => {
    const { notes } = await checkCommand(command, options(peaceful))
    expect(notes.map((it) => it.kind)).toContain(kind)
  })

  test.each([
    'ls | cat',
    'git commit -m x',
    'git rebase main',
    'tail error.log',
    'cat < README.md',
    'python x.py',
    'echo "vim"',
  ])('%s has none', async (command) => {
    expect((await checkCommand(command, options(peaceful))).notes).toEqual([])
  })
})

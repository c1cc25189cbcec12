// Commands that must never be allowed in the workspace of `workspace.fixture.ts`, by what they try. Those of one line
// stand in attacks.fixture.txt, as they are typed; those that need characters which cannot be shown stand here.
import { readFileSync } from 'node:fs'

/** The sections of a text: a heading, then one command on each line. */
export function sections(file: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  let current: string[] = []
  for (const line of readFileSync(new URL(file, import.meta.url), 'utf8').split('\n')) {
    if (line.startsWith('## ')) {
      current = []
      found.set(line.slice(3), current)
    } else if (line.trim() !== '') current.push(line)
  }
  return found
}

const MORE: Readonly<Record<string, readonly string[]>> = {
  'a second command': [
    'ls\ntouch x',
    'ls\n\n  touch x',
    'ls # comment\ntouch x',
    'ls \\\n; touch x',
    'ls "a\nb"; touch x',
    "ls 'a' ; touch x",
    'cat <<E\nbody\nE\ntouch x',
    "cat <<'E'\nbody\nE\ntouch x",
    'cat <<E; touch x\nbody\nE',
    'cat <<-E\n\tbody\n\tE\ntouch x',
    'cat <<E\nnot the end\n E\nE\ntouch x',
    'cat <<"E"\n$(ls)\nE\ntouch x',
    'cat <<A <<B\na\nA\nb\nB\ntouch x',
    'ls &\ntouch x',
  ],
  substitution: [
    'cat <<E\n$(touch x)\nE',
    'cat <<E\n`touch x`\nE',
    `cat <<E\n${'$'}{x:-$(touch x)}\nE`,
    'cat <<-E\n\t$(touch x)\n\tE',
  ],
  'code of another language': [
    "sed '1a\\\nw x' package.json",
    "sed -e p -e 'w x' package.json",
    "sed 'p\nw x' package.json",
    'awk \'{print $1,\n$2 > "x"}\' package.json',
    'awk \'BEGIN{print "a" # c\n"touch x" | getline}\'',
  ],
  redirections: [
    'cat <<E > x\nbody\nE',
    'cat > x <<E\nbody\nE',
    'cat <<E >> .bashrc\nalias ls=rm\nE',
    'cat <<E\nno end',
  ],
  'strange characters': [
    'ls\r',
    'ls\r\ntouch x',
    'ls\u0000; touch x',
    'ls \u0000',
    'ls\u000btouch x',
    'ls \u001b[2K',
    'l\u200bs',
    'ls \u202e x',
    'ls \u2066x\u2069',
    'ls\u00a0-la',
    'ls\u2028touch x',
    'ls\u2029touch x',
    'ls\u0085touch x',
    'ls \ufeff',
    '\ufeffls',
    'ls\u3000x',
    'ls \u00ad',
    'ls \ud800',
    'ls \u{e0041}',
    'lѕ',
    'ｌｓ',
    'ls； touch x\u200d',
    'cat ．．/x ‮',
    'cat .ｅnv',
    'cat .𝐞nv',
    'git‐status',
    'ls \u007f',
    'ls \u0008\u0008rm',
  ],
  'broken syntax': [
    'ls "',
    "ls '",
    'ls `',
    'ls $(',
    'ls ${',
    'ls $((',
    'ls (',
    'ls )',
    'ls |',
    'ls &&',
    '| ls',
    '&& ls',
    '; ls',
    'ls ;; ls',
    'if true; then ls',
    'for i in a; do ls',
    'while true; do',
    'case x in',
    '{ ls;',
    '( ls',
    'ls <',
    'ls >',
    'ls <<',
    'ls <<E',
    '[[ -f x',
    '[ -f x',
    'ls $"a"',
    'ls *(a)',
    'ls !(a)',
    'ls @(a|b)',
    'f() ls',
    'ls a(b)',
    'ls a<(b)',
    '{a,b',
    '',
    '   ',
    '# only a comment',
    '\n\n',
    ')',
    'then ls',
    'do ls; done',
    'fi',
    'ls \\',
    'echo `ls',
    'echo ${x',
    'echo $((1+)',
    'echo {a..}',
    'echo {{a,b}',
    'ls <<E\n$(touch x\nE',
    `echo ${'('.repeat(300)}`,
    `echo ${'$('.repeat(300)}ls${')'.repeat(300)}`,
    `ls ${'a'.repeat(30_000)}`,
  ],
}

const typed = sections('attacks.fixture.txt')

/** Refused without a question. */
export const DISASTERS: readonly string[] = typed.get('disasters')!

export const ATTACKS: readonly { readonly kind: string; readonly command: string }[] = [
  ...[...typed].filter(([kind]) => kind !== 'disasters'),
  ...Object.entries(MORE),
].flatMap(([kind, commands]) => commands.map((command) => ({ kind, command })))

// One meaning, several spellings: options with and without their long names, in any order, and names of sub-commands.

import type { Argument } from '../words/types.ts'

/** For each program, or program and sub-command: long options with the letters that mean the same; '' for none. */
const LONG_OPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  chgrp: { recursive: 'R' },
  chmod: { recursive: 'R' },
  chown: { recursive: 'R' },
  cp: { archive: 'a', force: 'f', recursive: 'rR' },
  curl: { data: 'd', insecure: 'k', location: 'L', output: 'o', request: 'X' },
  'docker rm': { force: 'f', volumes: 'v' },
  'docker run': { detach: 'd', env: 'e', interactive: 'i', privileged: '', publish: 'p', tty: 't', volume: 'v' },
  'git add': { all: 'A', force: 'f', patch: 'p' },
  'git branch': { delete: 'dD', force: 'f', move: 'mM' },
  'git checkout': { force: 'f' },
  'git clean': { force: 'f' },
  'git commit': { all: 'a', amend: '', message: 'm', 'no-verify': 'n' },
  'git push': { all: '', delete: 'd', force: 'f', 'no-verify': '', tags: '', 'set-upstream': 'u' },
  'git rebase': { interactive: 'i' },
  'git reset': { hard: '' },
  'git tag': { delete: 'd', force: 'f' },
  ln: { force: 'f', symbolic: 's' },
  mkdir: { parents: 'p' },
  mv: { force: 'f' },
  npm: { force: 'f', global: 'g', 'save-dev': 'D' },
  pip: { editable: 'e', requirement: 'r', upgrade: 'U' },
  pnpm: { force: '', global: 'g', 'save-dev': 'D' },
  rm: { dir: 'd', force: 'f', interactive: 'iI', recursive: 'rR' },
  sudo: { user: 'u' },
}

/** Programs whose long options have one dash, so that letters after a dash are not single-letter options. */
const ONE_DASH = new Set(
  'find java javac go gcc g++ cc clang clang++ terraform openssl ffmpeg ip kill xcodebuild'.split(' '),
)

/** Other names of sub-commands. */
const ALIASES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  brew: { install: 'instal', uninstall: 'remove rm' },
  bun: { install: 'i add a', remove: 'rm' },
  cargo: { add: '', build: 'b', check: 'c', doc: 'd', remove: 'rm', run: 'r', test: 't' },
  helm: { uninstall: 'del delete un' },
  npm: {
    ci: 'clean-install ic install-clean isntall-clean',
    exec: 'x',
    install: 'i in ins inst insta instal isnt isnta isntal isntall add',
    link: 'ln',
    publish: '',
    run: 'run-script rum urn',
    test: 't tst',
    uninstall: 'un unlink remove rm r',
    update: 'up upgrade udpate',
  },
  pip: { install: '' },
  pnpm: {
    add: 'i install',
    exec: '',
    install: 'i add',
    remove: 'rm uninstall un',
    run: 'run-script',
    update: 'up upgrade',
  },
  yarn: { add: 'install', install: 'add' },
}
/** Programs that accept the beginning of a sub-command for all of it. */
const ABBREVIATE = new Set(['npm', 'ip', 'hg', 'nmcli'])

/** Whether the program takes `given` for the sub-command `wanted`. */
export function isSubcommand(program: string, wanted: string, given: string): boolean {
  if (given === wanted) return true
  if (given !== '' && ABBREVIATE.has(program) && wanted.startsWith(given)) return true
  const aliases = ALIASES[program]
  const names = (it: string): readonly string[] => [it, ...(aliases?.[it]?.split(' ') ?? [])]
  if (aliases === undefined) return false
  return (
    names(wanted).includes(given) ||
    Object.keys(aliases).some((it) => names(it).includes(wanted) && names(it).includes(given))
  )
}

/** `docker container rm` is `docker rm`. */
export function withoutManagement<T>(
  words: readonly T[],
  textOf: (word: T | undefined) => string | undefined,
): readonly T[] {
  if (!/^(docker|podman)$/.test(textOf(words[0]) ?? '')) return words
  const [second, third] = [textOf(words[1]), textOf(words[2])]
  const redundant = second === 'container' || (second === 'image' && /^(build|load|pull|push|save)$/.test(third ?? ''))
  return redundant ? words.toSpliced(1, 1) : words
}

type Answer = boolean | 'unknown'

const CLUSTER = /^-[A-Za-z0-9]+$/

/**
 * Whether a command has an option of a rule, in whatever spelling: joined, apart, in another order, by its long name, with
 * a value. `unknown` if a word could be it: an abbreviation, a letter whose long name is not known here, a variable.
 *
 * @param command the program, and its sub-command, as keys of the table
 */
export function hasOption(
  option: string,
  [program, subcommand]: readonly [string, string],
  args: readonly Argument[],
): Answer {
  const end = args.findIndex((it) => it.value === '--')
  const words = end < 0 ? args : args.slice(0, end)
  const table = LONG_OPTIONS[`${program} ${subcommand}`] ?? LONG_OPTIONS[program] ?? {}
  if (program === 'git' && subcommand === 'push') {
    // A refspec can say the same.
    const mark = /^(-f|--force)$/.test(option) ? '+' : /^(-d|--delete)$/.test(option) ? ':' : undefined
    if (mark !== undefined && args.some((it) => it.prefix.startsWith(mark))) return true
  }
  const perhaps = words.some((it) => it.value === undefined && /^(-|$)/.test(it.prefix))
  const among = (one: Answer, other: Answer): Answer => one === true || other === true || one || other
  const written = words.flatMap((it) => (it.value?.startsWith('-') ? [it.value] : []))
  const found = written.some((it) => it === option || it.startsWith(`${option}=`))
  if (found) return true
  if (option.startsWith('--')) return among(longOption(option.slice(2), table, written), perhaps && 'unknown')
  if (!CLUSTER.test(option) || ONE_DASH.has(program)) return perhaps && 'unknown'
  const answers = option
    .slice(1)
    .split('')
    .map((it) => among(letterOption(it, table, written), perhaps && 'unknown'))
  return answers.every((it) => it === true) ? true : answers.every((it) => it !== false) && 'unknown'
}

function longOption(name: string, table: Readonly<Record<string, string>>, written: readonly string[]): Answer {
  const letters = table[name]
  let answer: Answer = false
  for (const it of written) {
    if (it.startsWith('--')) {
      const given = it.slice(2).replace(/=.*$/s, '')
      if (given !== '' && name.startsWith(given)) answer = 'unknown'
    } else if (CLUSTER.test(it)) {
      if (letters !== undefined) {
        if ([...letters].some((letter) => it.includes(letter))) return true
      } else if (it.toLowerCase().includes(name[0]!.toLowerCase())) answer = 'unknown'
    }
  }
  return answer
}

function letterOption(letter: string, table: Readonly<Record<string, string>>, written: readonly string[]): Answer {
  const same = Object.entries(table).find(([, letters]) => letters.includes(letter))
  const letters = same?.[1] ?? letter
  let answer: Answer = false
  for (const it of written) {
    if (it.startsWith('--')) {
      const given = it.slice(2).replace(/=.*$/s, '')
      if (
        same !== undefined
          ? given !== '' && same[0].startsWith(given)
          : given[0]?.toLowerCase() === letter.toLowerCase()
      ) {
        if (same !== undefined) return true
        answer = 'unknown'
      }
      continue
    }
    const cluster = /^-[A-Za-z0-9]*/.exec(it)![0]
    if (![...letters].some((one) => cluster.includes(one))) continue
    // Behind an option with a value the letters are the value.
    if (cluster.length <= 5 && cluster === it) return true
    answer = 'unknown'
  }
  return answer
}

// Commands that run another command: what they run, and whether that is all they do.

import type { Argument } from '../words/types.ts'
import { dynamic } from '../words/words.ts'
import { optionList, readOptions } from './options.ts'

/** Wrappers that only run another program, with the options for which this is true. */
const TRANSPARENT: Readonly<Record<string, string>> = {
  builtin: '',
  command: '-p',
  env: '-i -u: -0 --ignore-environment --unset: --null -C: --chdir:',
  exec: '',
  ionice: '-c: -n: -t',
  nice: '-n: -# --adjustment:',
  nohup: '',
  setsid: '-w -f -c --wait --fork',
  stdbuf: '-i: -o: -e: --input: --output: --error:',
  time: '-p -v -l',
  timeout: '-k: -s: -v --kill-after: --signal: --preserve-status --foreground --verbose',
  xargs:
    '-0rtx -n: -P: -L: -I: -d: -s: -i? -l? -e? -E: --null --no-run-if-empty --max-args: --max-procs: --delimiter: --verbose --exit --replace? --max-lines? --max-chars: --eof?',
}

/**
 * Options with which xargs appends what it reads as further words, and does nothing else. The others decide together
 * where those words go (`-I`, `--replace`, and `-n` and `-L`, which cancel them), and versions differ.
 */
const APPENDING = new Set(
  '-0 -r -t -x -n -P --null --no-run-if-empty --max-args --max-procs --verbose --exit'.split(' '),
)

/** Shells whose `-c` text is read as this analysis reads it. */
export const PLAIN_SHELLS: ReadonlySet<string> = new Set(['sh', 'bash', 'dash', 'ash'])
const OTHER_SHELLS: ReadonlySet<string> = new Set([
  'zsh',
  'ksh',
  'mksh',
  'rbash',
  'yash',
  'fish',
  'csh',
  'tcsh',
  'su',
  'runuser',
])

export const isShell = (name: string): boolean => PLAIN_SHELLS.has(name) || OTHER_SHELLS.has(name)

/** A command that still has one of these names after `unwrap` was not understood. */
export const isWrapper = (name: string): boolean => Object.hasOwn(TRANSPARENT, name)

/**
 * Wrappers with more power or more options than can be followed. The commands in them are looked through for disasters
 * and otherwise asked about. The value is the list of options before the inner program that take a value.
 */
export const OPAQUE: Readonly<Record<string, string>> = {
  at: '-f-q-t',
  batch: '',
  bwrap: '',
  busybox: '',
  bunx: '',
  caffeinate: '-t-w',
  chronic: '',
  chroot: '',
  chrt: '',
  cpulimit: '-l-p',
  'dbus-run-session': '',
  doas: '-u-C',
  dotenv: '-e',
  entr: '',
  expect: '',
  faketime: '',
  fakeroot: '',
  firejail: '',
  flock: '-w-E',
  gdb: '',
  gosu: '',
  hyperfine: '',
  'ld.so': '',
  ltrace: '-e-o-p',
  nsenter: '-t',
  npx: '-p',
  numactl: '',
  parallel: '-j-I',
  perf: '',
  pkexec: '',
  prlimit: '',
  proot: '',
  proxychains: '-f',
  rlwrap: '',
  runcon: '',
  screen: '',
  script: '',
  setarch: '',
  setpriv: '',
  sg: '',
  ssh: '-b-c-D-E-e-F-i-I-J-L-l-m-O-o-p-Q-R-S-W-w',
  sshpass: '-p-f-e',
  strace: '-e-o-p',
  sudo: '-u-g-h-p-C-r-t-T-U-D-R',
  'systemd-run': '-p-u',
  taskset: '',
  tini: '',
  tmux: '',
  torsocks: '',
  toybox: '',
  unbuffer: '',
  unshare: '',
  valgrind: '',
  watch: '-n',
  winpty: '',
  'xvfb-run': '-s-n',
}

export interface Unwrapped {
  readonly words: readonly Argument[]
  /** Index of the inner program in the words as written. */
  readonly start: number
  readonly via: readonly string[]
  /** `NAME=value` arguments of `env`. */
  readonly assignments: readonly Argument[]
  /** Folder of `env -C`. */
  readonly directory?: Argument
  /** Why the words of the inner program are not certain. */
  readonly unsure?: string
}

export const programNameOf = (words: readonly Argument[]): string | undefined => {
  const value = words[0]?.value
  if (value === undefined) return undefined
  if (!value.startsWith('/')) return value
  // Programs of the system may be called by their place; any other place is another program.
  return (
    /^(?:\/(?:usr\/)?(?:local\/)?s?bin|\/opt\/homebrew\/bin)\/([^/]+)$/.exec(
      value.replace(/\/(?:\.?\/)+/g, '/'),
    )?.[1] ?? value
  )
}

/** Takes the transparent wrappers off. A wrapper that is not understood stays, as a program like any other. */
export function unwrap(written: readonly Argument[]): Unwrapped {
  let words = written
  let start = 0
  const via: string[] = []
  const assignments: Argument[] = []
  let directory: Argument | undefined
  let unsure: string | undefined
  for (;;) {
    const name = programNameOf(words)
    const list = name !== undefined && Object.hasOwn(TRANSPARENT, name) ? TRANSPARENT[name] : undefined
    if (name === undefined || list === undefined) break
    const call = readOptions(words.slice(1), parsed(list), { permute: false })
    if ('problem' in call) break
    let inner = call.operands
    if (name === 'env') {
      if (inner[0]?.value === '-') inner = inner.slice(1)
      const end = inner.findIndex((it) => !/^[A-Za-z_]\w*=/.test(it.prefix))
      const own = inner.slice(0, end < 0 ? undefined : end)
      // An argument that only the shell knows could be another assignment.
      if (end < 0 || inner[end]!.value === undefined) break
      assignments.push(...own)
      inner = inner.slice(end)
      directory = call.options.findLast((it) => it.name === '-C' || it.name === '--chdir')?.value ?? directory
    } else if (name === 'timeout') {
      if (!/^\d+(\.\d+)?[smhd]?$/.test(inner[0]?.value ?? '')) break
      inner = inner.slice(1)
    }
    if (inner.length === 0 || inner[0]!.splits) break
    start += words.length - inner.length
    if (name === 'xargs') {
      const appends = call.options.every((it) => APPENDING.has(it.name))
      if (!appends) unsure = 'Where xargs puts what it reads depends on its options.'
      inner = [...(appends ? inner : inner.map(anyText)), dynamic('…', '', true)]
    }
    words = inner
    via.push(name)
  }
  return {
    words,
    start,
    via,
    assignments,
    ...(directory === undefined ? {} : { directory }),
    ...(unsure === undefined ? {} : { unsure }),
  }
}

const lists = new Map<string, ReturnType<typeof optionList>>()
const parsed = (text: string): ReturnType<typeof optionList> => {
  const known = lists.get(text) ?? optionList(text)
  lists.set(text, known)
  return known
}

/** A word in which xargs may replace a part. The program itself is kept, for rules that name it. */
const anyText = (word: Argument, index: number): Argument => (index === 0 ? word : dynamic(word.text, '', true))

export interface Inner {
  /** The text of a script, if it is known. */
  readonly script?: string
  readonly words?: readonly Argument[]
  readonly label: string
  /** It runs in the shell itself and may change it. */
  readonly same?: true
  /** Why the analysis does not answer for it. */
  readonly unsure?: string
}

/** The commands that a command runs besides itself: the text of `sh -c` and `eval`, the command of `find -exec`. */
export function innerOf(words: readonly Argument[]): readonly Inner[] {
  const name = programNameOf(words)
  const args = words.slice(1)
  if (name === undefined) return []
  if (isShell(name)) return shellScript(name, args)
  if (name === 'eval')
    return [{ ...joined(args), label: 'eval', same: true, unsure: 'The text is put together and run.' }]
  if (name === 'trap')
    return [{ ...joined(args.slice(0, 1)), label: 'trap', same: true, unsure: 'It runs at another time.' }]
  if (name === 'ssh')
    return [
      { ...joined(afterOptions(args, OPAQUE.ssh!).slice(1)), label: 'ssh', unsure: 'It runs on another machine.' },
    ]
  if (name === 'watch' || name === 'parallel')
    return [{ ...joined(afterOptions(args, OPAQUE[name]!)), label: name, unsure: 'It runs again and again.' }]
  if (name === 'find') return findCommands(args)
  return []
}

/** Index of the first argument behind the options of an opaque wrapper. */
export function afterOptions(args: readonly Argument[], withValue: string): readonly Argument[] {
  const names = withValue.split(/(?=-)/)
  for (let index = 0; index < args.length; index += 1) {
    const text = args[index]!.value ?? args[index]!.prefix
    if (text === '--') return args.slice(index + 1)
    if (!text.startsWith('-')) return args.slice(index)
    if (names.includes(text)) index += 1
  }
  return []
}

function joined(args: readonly Argument[]): { script?: string } {
  if (args.length === 0 || args.some((it) => it.value === undefined)) return {}
  return { script: args.map((it) => it.value).join(' ') }
}

function shellScript(name: string, args: readonly Argument[]): readonly Inner[] {
  let runs = false
  let unsure = PLAIN_SHELLS.has(name) ? undefined : 'This shell reads the text in its own way.'
  for (let index = 0; index < args.length; index += 1) {
    const text = args[index]!.value
    if (text === undefined) return []
    if (/^[-+]/.test(text) && text.length > 1) {
      if (text.startsWith('-') && !text.startsWith('--') && text.includes('c')) runs = true
      if (text.endsWith('o')) {
        index += 1
        if (!/^(pipefail|errexit|nounset|posix)$/.test(args[index]?.value ?? ''))
          unsure = 'An option of the shell is not known.'
      }
      if (!/^-[ceulo]+$/.test(text)) unsure = 'An option of the shell is not known.'
      continue
    }
    return runs ? [{ script: text, label: `${name} -c`, ...(unsure === undefined ? {} : { unsure }) }] : []
  }
  return []
}

function findCommands(args: readonly Argument[]): readonly Inner[] {
  const inner: Inner[] = []
  const safe = findsRegularFiles(args)
  for (let index = 0; index < args.length; index += 1) {
    const action = args[index]!.value
    if (action === undefined || !/^-(exec|execdir|ok|okdir)$/.test(action)) continue
    const end = args.findIndex(
      (it, at) => at > index && (it.value === ';' || (it.value === '+' && args[at - 1]!.value === '{}')),
    )
    const words = args.slice(index + 1, end < 0 ? undefined : end).map((it): Argument => {
      if (!(it.value ?? it.prefix).includes('{}')) return it
      const whole = it.value === '{}' && safe !== undefined && action === '-exec'
      return whole ? { text: it.text, prefix: safe, splits: false, found: true } : dynamic(it.text)
    })
    // `find -execdir` takes a program from the folder of the file if PATH says so.
    inner.push({
      words,
      label: `find ${action}`,
      ...(action === '-exec' ? {} : { unsure: 'It runs in the folders that are found.' }),
    })
    if (end < 0) break
    index = end
  }
  return inner
}

/** Names of text files that hold no secrets by their kind. */
const SOURCES =
  /^[\w*.-]*\.(ts|tsx|mts|cts|js|jsx|mjs|cjs|vue|svelte|py|rs|go|java|kt|scala|c|h|cc|cpp|hpp|cs|rb|php|swift|ex|exs|erl|hs|ml|lua|sh|sql|graphql|proto|css|scss|less|html|md|mdx|rst|txt|csv|log|lock)$/i

/**
 * With `-type f` and no links followed, what `find` meets are regular files below its starting folders, by exact name.
 * A name pattern with an extension says which ones. Returns what each path begins with.
 */
function findsRegularFiles(args: readonly Argument[]): string | undefined {
  const texts = args.map((it) => it.value)
  if (texts.includes(undefined) || texts.includes('--')) return undefined
  const first = texts.findIndex((it) => /^[-(!]/.test(it!))
  const tests = texts.slice(first < 0 ? texts.length : first)
  if (texts.some((it) => ['-L', '-H', '-follow', '-o', '-or', ',', '(', '!', '-not', '-files0-from'].includes(it!)))
    return undefined
  const type = tests.indexOf('-type')
  const name = tests.findIndex((it) => it === '-name' || it === '-iname')
  const exec = tests.findIndex((it) => it!.startsWith('-exec'))
  if (type < 0 || name < 0 || tests[type + 1] !== 'f' || type > exec || name > exec) return undefined
  if (!SOURCES.test(tests[name + 1] ?? '')) return undefined
  const starts = texts.slice(0, first < 0 ? texts.length : first)
  return starts[0] ?? '.'
}

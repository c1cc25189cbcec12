// Checks one simple command: its variables, its redirections, its options and the files that it opens.
import { existsSync } from 'node:fs'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { checkPathAgain, type PathCheck } from '../paths/check-path.ts'
import { isSafeAssignment, secretIn, shows } from '../programs/environment.ts'
import { readGit } from '../programs/git.ts'
import { rowOf } from '../programs/lookup.ts'
import { type GivenOption, readOptions } from '../programs/options.ts'
import { VERSIONS } from '../programs/read-only.ts'
import { chosenToolchain, holdsCredentials, riskyRepository } from '../programs/repository.ts'
import { PLAIN_SHELLS, programNameOf } from '../programs/wrappers.ts'
import { type Look, pathOptions } from '../walk/analyse.ts'
import type { AnalyseOptions, Argument, Reason, Redirected, SimpleCommand } from '../words/types.ts'
import { problemInTree, type Reach } from './tree.ts'

export interface SimpleOptions extends AnalyseOptions {
  readonly look: Look
  /** The folders in which programs are looked up, as in `PATH`. */
  readonly searchPath: string
  /** Writing files inside the roots needs no question, as long as they are not dangerous. */
  readonly allowEdits: boolean
  /** Some command of the line writes a file, such as one that says what a search leaves out. */
  readonly writes: boolean
}

const BUILTINS = new Set(
  'cd echo printf test [ [[ : true false pwd dirs times jobs wait umask ulimit exit return break continue set read unset type command'.split(
    ' ',
  ),
)

const reason = (code: Reason['code'], message: string, text: string): Reason => ({
  decision: 'ask',
  code,
  message,
  text,
})

/** Objections to the assignments and redirections of a command; they apply to any command. */
export function checkSurroundings(command: SimpleCommand, options: SimpleOptions): readonly Reason[] {
  const reasons: Reason[] = []
  for (const it of command.assignments) {
    // `IFS= read` splits the one line that it reads.
    if (it.name === 'IFS' && it.value?.value !== undefined && programNameOf(command.words) === 'read') continue
    if (!isSafeAssignment(it, command.words.length === 0))
      reasons.push(reason('assignment', `Setting ${it.name} may change which programs run and what they do.`, it.text))
  }
  for (const it of command.redirections) {
    const problem = redirectionProblem(it, command, options)
    if (problem !== undefined) reasons.push(reason('redirection', problem, it.text))
  }
  return reasons
}

/** Why the command itself is more than reading, or nothing. */
export function checkProgram(command: SimpleCommand, options: SimpleOptions): readonly Reason[] {
  const { words, text, directories } = command
  const secret = onlyPresence(text) ? undefined : secretIn(text)
  if (secret !== undefined) return [reason('secret', shows(secret), text)]
  if (words.length === 0) return []
  const elsewhere = directories.find((it) => !check(it, it, 'read', options).inside)
  if (elsewhere !== undefined)
    return [reason('directory', `It would run in ${elsewhere}, outside the allowed folders.`, text)]
  const name = programNameOf(words)
  if (name === undefined) return [reason('dynamic', 'The program is known only when the shell runs.', text)]
  const args = words.slice(1)

  // Wrappers are looked up too.
  const outer = command.written
    .slice(0, command.start)
    .flatMap((it) => (/^[a-z]+$/.test(it.value ?? '') ? it.value! : []))
  for (const program of [...outer, ...(words[0]!.value === name && !BUILTINS.has(name) ? [name] : [])]) {
    const shadow = shadowing(program, directories, options)
    if (shadow !== undefined)
      return [
        reason('shadowed', `${program} would be ${shadow}, which can be changed from inside the workspace.`, text),
      ]
  }
  if (command.script !== undefined && PLAIN_SHELLS.has(name)) return []

  const onlyVersion = VERSIONS.some(
    ([names, forms]) =>
      args.length === 1 && names.split(' ').includes(name) && forms.split(' ').includes(args[0]!.value ?? ''),
  )
  if (onlyVersion) {
    const chosen = directories
      .map((it) => chosenToolchain(check(it, it, 'read', options).real, isTopOf(options)))
      .find((it) => it !== undefined)
    return chosen === undefined ? [] : [reason('shadowed', chosen, text)]
  }
  if (name === 'git') return checkGit(command, options)

  const known = rowOf(name)
  if (known === undefined)
    return [reason('not read-only', `${name} is not on the list of commands that only read.`, text)]
  if (known.operands === 'anything' && known.raw === undefined) return []

  let operands: readonly Argument[]
  let paths: readonly Argument[] = []
  let given: readonly GivenOption[] = []
  if (known.raw !== undefined) {
    const result = known.raw(args)
    if (typeof result === 'string') return [reason('option', `${name}: ${result}`, text)]
    operands = result
  } else {
    const call = readOptions(args, known.list)
    if ('problem' in call) return [reason(call.dynamic ? 'dynamic' : 'option', `${name}: ${call.problem}`, text)]
    given = call.options
    const result = known.check?.(call)
    if (typeof result === 'string') return [reason('option', `${name}: ${result}`, text)]
    operands = call.operands
    paths = call.paths
  }
  if (known.operands === 'none' && operands.length > 0)
    return [reason('option', `${name} does more than read when it is given ${operands[0]!.text}.`, text)]
  if (known.most !== undefined && operands.length > known.most)
    return [reason('option', `${name} writes to ${operands[known.most]!.text}.`, text)]
  if (known.operands === 'text' || known.operands === 'anything' || known.operands === 'none') {
    const split = operands.find((it) => it.splits)
    return split !== undefined && known.operands !== 'anything' && known.raw === undefined
      ? [reason('dynamic', `${split.text} may become options of ${name}.`, text)]
      : filesReasons(paths, 'names', command, options)
  }

  const has = (list: string | undefined): boolean =>
    list === '*' || (list?.split(' ') ?? []).some((name) => given.some((it) => it.name === name))
  const files = known.operands === 'pattern and files' && !has(known.pattern) ? operands.slice(1) : operands
  const [pattern] = operands
  if (files !== operands && pattern?.splits)
    return [reason('dynamic', `${pattern.text} may become options or files of ${name}.`, text)]
  const reasons = [
    ...filesReasons(files, known.operands === 'names' ? 'names' : 'contents', command, options),
    ...filesReasons(paths, 'contents', command, options),
  ]
  if (reasons.length > 0 || !(has(known.recursive) || has(known.follows)) || has('--files --type-list')) return reasons
  const everything = known.everything === undefined || has(known.everything) || includes(given)
  const reach = {
    links: has(known.follows),
    hidden: everything,
    ignored: everything || options.writes,
    ...narrowed(given),
  }
  const places = files.length > 0 ? files.flatMap((it) => it.value ?? []) : ['.']
  for (const directory of directories) {
    for (const place of places) {
      const where = pathOptions(directory, 'read', options)
      const problem = problemInTree(resolve(directory, place), reach, where, options.look)
      if (problem !== undefined) return [reason('path', problem, text)]
    }
  }
  return []
}

/** A glob of rg brings hidden and ignored files back, unless it excludes. */
const includes = (given: readonly GivenOption[]): boolean =>
  given.some(({ name, value }) => /^(-g|--glob|--iglob)$/.test(name) && !value?.prefix.startsWith('!'))

/** The exclusions of grep: other files than those with an ending, and folders of a name. */
function narrowed(given: readonly GivenOption[]): Pick<Reach, 'endings' | 'without'> {
  const valuesOf = (option: string) => given.flatMap(({ name, value }) => (name === option ? [value?.value ?? ''] : []))
  const endings = valuesOf('--include').map((it) => /^\*(\.[\w.]+)$/.exec(it)?.[1])
  const known = endings.filter((it) => it !== undefined)
  return {
    ...(known.length > 0 && known.length === endings.length ? { endings: known } : {}),
    without: new Set(valuesOf('--exclude-dir').filter((it) => /^[\w.-]+$/.test(it))),
  }
}

/**
 * Whether a test only looks whether variables are empty. What compares, matches or opens a value shows it bit by bit in
 * its exit status; and a value without quotes may become operators of `test`, which prints what it does not understand.
 */
const onlyPresence = (text: string): boolean =>
  /^(test|\[)\s+(!\s+)?-[nz]\s+"\$(\w+|\{\w+(:?[-+]\w*)?\})"(\s+\])?$/.test(text) ||
  /^\[\[(\s+(&&|\|\||!)|\s+-[nz]\s+("?)\$(\w+|\{\w+(:?[-+]\w*)?\})\3)+\s+\]\]$/.test(text)

/** Whether a folder is a root, by its real path. */
function isTopOf(options: SimpleOptions): (folder: string) => boolean {
  const tops = new Set(options.roots.map((it) => check(it, it, 'read', options).real))
  return (folder) => tops.has(folder)
}

function checkGit(command: SimpleCommand, options: SimpleOptions): readonly Reason[] {
  const { text, words } = command
  const call = readGit(words.slice(1))
  if ('problem' in call)
    return [reason(/^(The option|Which option)/.test(call.problem) ? 'option' : 'not read-only', call.problem, text)]
  let { directories } = command
  for (const folder of call.folders) {
    const problem = fileProblem(folder, 'names', directories, options)
    if (problem !== undefined) return [reason('path', problem, text)]
    directories = directories.map((it) => resolve(it, folder.value!))
  }
  if (directories.length === 0) return [reason('directory', 'In which folder git would run is not known.', text)]
  for (const directory of directories) {
    const { inside, real } = check(directory, directory, 'read', options)
    if (!inside) return [reason('path', `${directory} is outside the allowed folders.`, text)]
    // Git sees the real folder, whatever link led there.
    const risky = riskyRepository(real, isTopOf(options), options.look.budget)
    if (risky !== undefined) return [reason('path', risky, text)]
    if (call.showsRemotes && holdsCredentials(real, isTopOf(options)))
      return [reason('secret', 'The settings of the repository hold a password or a token.', text)]
  }
  // A revision looks like a path inside; `git diff /etc/passwd x` compares files that git does not hold.
  for (const it of [...call.operands, ...call.paths]) {
    const problem = fileProblem(it, 'names', directories, options)
    if (problem !== undefined) return [reason(it.value === undefined ? 'dynamic' : 'path', problem, text)]
    const held = /^[^:]*:(?!\/)(.+)$/.exec(it.value!)?.[1]
    for (const path of [it.value!, held]) {
      const secret =
        path === undefined ? undefined : fileProblem({ ...it, value: path }, 'contents', directories, options)
      if (secret !== undefined) return [reason('path', secret, text)]
    }
  }
  return []
}

function filesReasons(
  files: readonly Argument[],
  use: 'contents' | 'names',
  command: SimpleCommand,
  options: SimpleOptions,
): readonly Reason[] {
  return files.flatMap((file) => {
    const problem = fileProblem(file, use, command.directories, options)
    if (problem === undefined) return []
    return [reason(file.value === undefined ? 'dynamic' : 'path', problem, command.text)]
  })
}

const STREAMS = new Set(['-', '/dev/null', '/dev/stdin', '/dev/stdout', '/dev/stderr'])

function fileProblem(
  file: Argument,
  use: 'contents' | 'names',
  directories: readonly string[],
  options: SimpleOptions,
): string | undefined {
  if (file.found) return undefined
  if (file.value === undefined) return `Which file ${file.text} names is known only when the shell runs.`
  if (STREAMS.has(file.value)) return undefined
  const places = file.value.startsWith('/') ? directories.slice(0, 1) : directories
  if (directories.length === 0 && !file.value.startsWith('/'))
    return `${file.text} depends on a folder that is not known.`
  for (const directory of places.length > 0 ? places : ['/']) {
    const { inside, message, dangerous, real } = check(file.value, directory, 'read', options)
    if (!inside) return message
    if (dangerous !== undefined && use === 'contents') return `${real}: ${dangerous.why}`
  }
  return undefined
}

function check(path: string, cwd: string, access: 'read' | 'write', options: SimpleOptions): PathCheck {
  const { budget, seen, checked } = options.look
  const key = `${access}\0${cwd}\0${path}`
  const known = checked.get(key)
  if (known !== undefined) return known
  budget.spend('paths')
  const answer = checkPathAgain(path, pathOptions(cwd, access, options), seen)
  checked.set(key, answer)
  return answer
}

function redirectionProblem(
  redirected: Redirected,
  command: SimpleCommand,
  options: SimpleOptions,
): string | undefined {
  const { operator, targets, text } = redirected
  if (operator.startsWith('<<')) return undefined
  if (targets.length !== 1) return `${text} does not name one file.`
  const [target] = targets
  if (target?.value === undefined || target.splits) return `Which file ${text} opens is known only when the shell runs.`
  const { value } = target
  if (/^\/dev\/(tcp|udp)\//.test(value)) return `${text} opens a connection to another machine.`
  if (operator === '>&' || operator === '<&') {
    if (/^(\d{1,3}-?|-)$/.test(value)) return undefined
    if (operator === '<&') return `${text} is not a descriptor.`
  }
  if (STREAMS.has(value) && value !== '-') return undefined
  if (operator === '<') return fileProblem(target, 'contents', command.directories, options)
  if (!options.allowEdits) return `It writes to ${value}.`
  if (command.directories.length === 0) return `It writes to ${value} in a folder that is not known.`
  for (const directory of command.directories) {
    const { inside, message, dangerous, real } = check(value, directory, 'write', options)
    if (!inside) return message
    if (dangerous !== undefined) return `${real}: ${dangerous.why}`
  }
  return undefined
}

/**
 * A program of that name in a folder of the search path that lies in the workspace, or that depends on where one is.
 */
function shadowing(name: string, directories: readonly string[], options: SimpleOptions): string | undefined {
  if (name.includes('/')) return undefined
  for (const entry of options.searchPath.split(delimiter)) {
    const places = isAbsolute(entry) ? [entry] : directories.map((it) => resolve(it, entry))
    for (const place of places) {
      const file = join(place, name)
      if (!existsSync(file)) continue
      // The program may be a link that leads into the workspace.
      return [place, file].some((it) => check(it, '/', 'write', options).inside) ? file : undefined
    }
  }
  return undefined
}

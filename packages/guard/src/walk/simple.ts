// One simple command of a script: its words, variables and redirections, the command that it wraps, and its effects on the shell.
import type { Assignment, Command as CommandTree, Redirection } from 'unbash'
import { evaluates } from '../programs/evaluated.ts'
import { innerOf, unwrap } from '../programs/wrappers.ts'
import type { Argument, Assigned, Redirected, SimpleCommand } from '../words/types.ts'
import type { Scope, WordContext } from '../words/units.ts'
import { dynamic, expandValue, expandWord, literal, visitParts } from '../words/words.ts'
import { contextOf, onlyInBash, type WorkingPlace } from './place.ts'
import { bind, both, changeDirectory, forgetAll, type WalkOutcome } from './scope.ts'

/** How many levels of nested substitutions and scripts are followed. */
export const DEEPEST = 10

/** Builtins after which no variable is known. */
const CHANGES_VARIABLES = new Set(
  'read mapfile readarray getopts export declare typeset local readonly unset eval source . let set wait select shift exec'.split(
    ' ',
  ),
)
/** Builtins after which the folder is not known. */
const CHANGES_DIRECTORY = new Set(['pushd', 'popd', 'eval', 'source', '.', 'chdir', 'z', 'j'])

/** `printf` sets a variable with `-v`, and with `%n` in its format. */
export const changesVariables = (name: string, args: readonly string[]): boolean =>
  CHANGES_VARIABLES.has(name) ||
  (name === 'printf' && args.some((it) => it.startsWith('-') || /%[^%a-zA-Z]*n/.test(it)))

export function simple(place: WorkingPlace, node: CommandTree, scope: Scope): WalkOutcome {
  const context = contextOf(place, scope)
  const words: Argument[] = []
  // The shell makes one word of what stands together; this parser begins a new one at a process substitution.
  const parts = [...node.prefix, ...(node.name === undefined ? [] : [node.name]), ...node.suffix]
  const unclear = parts.some((it, index) => {
    const before = parts[index - 1]
    if (before === undefined) return false
    const end = before.type === 'HereDoc' ? (before.delimiter?.end ?? before.end) : before.end
    const gap = place.source.slice(end, it.pos)
    return (gap === '' && it.type === 'Word') || !/^(?:[ \t]|\\\n)*$/.test(gap)
  })
  if (unclear)
    context.unknown({
      kind: 'word',
      text: place.source.slice(node.pos, node.end),
      why: 'Where a word ends is not clear.',
    })
  if (node.name !== undefined) words.push(...expandWord(node.name, context))
  for (const it of node.args) {
    if (it.type === 'Word') words.push(...expandWord(it, context))
    else {
      assignmentValue(it, context)
      words.push(dynamic(it.text, `${it.name}=`))
    }
  }
  const assignments: Assigned[] = []
  let next = scope
  for (const it of node.prefix) {
    if (it.type !== 'Assignment') continue
    // Each one sees what those before it have set.
    const value = assignmentValue(it, contextOf(place, next))
    const known = it.append || it.index !== undefined ? undefined : value
    assignments.push({ name: it.name, value: known, text: it.text })
    next = bind(next, it.name, known ?? null)
  }
  return emit(place, scope, node, words, assignments, node.redirects)
}

function assignmentValue(assignment: Assignment, context: WordContext): Argument | undefined {
  if (assignment.index !== undefined) {
    visitParts(assignment.index.parts, context)
    context.unknown({ kind: 'array', text: assignment.text, why: 'An array index is evaluated and can run commands.' })
  }
  if (assignment.append || assignment.value.type !== 'Word') context.bashOnly(assignment.text)
  if (assignment.value.type === 'Word') return expandValue(assignment.value, context)
  for (const it of assignment.value.elements) {
    expandWord(it, context)
    if (it.text.startsWith('['))
      context.unknown({
        kind: 'array',
        text: assignment.text,
        why: 'An array index is evaluated and can run commands.',
      })
  }
  return undefined
}

function redirection(place: WorkingPlace, node: Redirection, scope: Scope): Redirected {
  const context = contextOf(place, scope)
  const text = place.source.slice(node.pos, node.end)
  if (node.descriptor?.type === 'FileDescriptorVariable')
    context.unknown({ kind: 'redirection', text, why: 'The redirection sets a variable.' })
  if (node.type === 'HereDoc') {
    visitParts(node.body.parts, context)
    if (node.closing === undefined)
      context.unknown({ kind: 'here-document', text, why: 'The here-document does not end.' })
    return { operator: node.operator, text, targets: [] }
  }
  if (node.target === undefined) {
    context.unknown({ kind: 'redirection', text, why: 'The redirection has no target.' })
    return { operator: node.operator, text, targets: [] }
  }
  if (node.operator.startsWith('&>') || node.type === 'HereString') onlyInBash(place, text)
  if (node.type === 'HereString') {
    expandValue(node.target, context)
    return { operator: node.operator, text, targets: [] }
  }
  const targets = expandWord(node.target, context)
  // Bash expands the word of `>&` a second time when it turns out to be the name of a file, and `>&-x` is two words.
  if (/^[<>]&$/.test(node.operator) && !/^(\d{1,3}-?|-|[A-Za-z_./][\w./+-]*)$/.test(node.target.text))
    context.unknown({ kind: 'redirection', text, why: 'What the redirection names is not clear.' })
  return { operator: node.operator, text, targets }
}

export function emit(
  place: WorkingPlace,
  scope: Scope,
  node: { readonly pos: number; readonly end: number },
  written: readonly Argument[],
  assignments: readonly Assigned[],
  redirects: readonly Redirection[],
): WalkOutcome {
  // Whether a redirection sees the assignments of its own command depends on the shell.
  const unsure = assignments.reduce((known, { name }) => bind(known, name, null), scope)
  const redirections = redirects.map((it) => redirection(place, it, unsure))
  const text = place.source.slice(node.pos, node.end)
  const outcome = emitWords(place, scope, text, written, assignments, redirections)
  if (written.length > 0) return outcome
  let next = scope
  for (const { name, value } of assignments) next = bind(next, name, value ?? null)
  return both(next)
}

function emitWords(
  place: WorkingPlace,
  scope: Scope,
  text: string,
  written: readonly Argument[],
  assignments: readonly Assigned[],
  redirections: readonly Redirected[],
): WalkOutcome {
  const { walk, via } = place
  const { words, start, via: wrappers, assignments: own, directory, unsure } = unwrap(written)
  if (unsure !== undefined) walk.unknown.push({ kind: 'wrapper', text, why: unsure })
  const inEnv = own.map((it): Assigned => {
    const name = it.prefix.slice(0, it.prefix.indexOf('='))
    const value = it.value?.slice(name.length + 1)
    return { name, value: value === undefined || it.splits ? undefined : literal(value), text: it.text }
  })
  const moved = directory === undefined ? scope : (changeDirectory(scope, [literal('cd'), directory]).success ?? scope)
  const inner = innerOf(words)
  const [only] = inner
  const emitted: SimpleCommand = {
    text,
    words,
    written,
    start,
    assignments: [...assignments, ...inEnv],
    redirections,
    via: [...via, ...wrappers],
    piped: place.piped || wrappers.includes('xargs'),
    directories: moved.directories,
    ...(only?.script === undefined ? {} : { script: only.script }),
  }
  scope.budget.spend('commands')
  const evaluated = evaluates(words[0]?.value ?? '', words.slice(1))
  if (evaluated !== undefined) walk.unknown.push({ kind: 'evaluated', text, why: evaluated })
  walk.simple.push(emitted)

  for (const it of inner) {
    const deeper = { ...place, via: [...emitted.via, it.label] }
    if (it.unsure !== undefined) walk.unknown.push({ kind: it.label, text, why: it.unsure })
    // Another shell has the environment of this one and none of its plain variables.
    const fresh: Scope = {
      variables: new Map(moved.variables.has('HOME') ? [['HOME', null]] : []),
      directories: moved.directories,
      budget: scope.budget,
    }
    const apart = it.same ? { ...forgetAll(moved), directories: [] } : fresh
    if (it.script !== undefined && it.script.trim() !== '') {
      if (deeper.via.length > DEEPEST)
        walk.unknown.push({ kind: 'depth', text, why: 'Commands are nested too deeply.' })
      else
        walk.parseAndEnter(
          { ...deeper, shell: it.same ? place.shell : it.label === 'bash -c' ? 'bash' : 'sh' },
          it.script,
          apart,
        )
    }
    if (it.words !== undefined && it.words.length > 0) emitWords(deeper, moved, text, it.words, [], [])
  }
  return effectOf(words, wrappers, scope)
}

/** The effects of builtins on the shell. */
function effectOf(words: readonly Argument[], wrappers: readonly string[], scope: Scope): WalkOutcome {
  const name = words[0]?.value
  if (wrappers.some((it) => it !== 'command' && it !== 'builtin')) return both(scope)
  if (name === undefined) return both(words.length === 0 ? scope : { ...forgetAll(scope), directories: [] })
  if (name === 'cd') return changeDirectory(scope, words)
  if (name === 'exit' || name === 'return') return { success: undefined, failure: undefined }
  let next = scope
  const args = words.slice(1).map((it) => it.value ?? '%n')
  if (changesVariables(name, args)) next = forgetAll(next)
  if (CHANGES_DIRECTORY.has(name)) next = { ...next, directories: [] }
  return both(next)
}

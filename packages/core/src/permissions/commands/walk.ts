// Walks the tree of a parsed script and lists every simple command in it, with what is known where it runs.
import type {
  Assignment,
  CommandNode,
  Command as CommandTree,
  ParsedScript,
  PipelineNode,
  Redirection,
  Statement,
  SyntaxNode,
  TestExpression,
} from 'unbash'
import { isPlainName } from './names.ts'
import { type Parser, uncovered } from './parser.ts'
import { after, bind, both, changeDirectory, forgetAll, merge, type Outcome } from './scope.ts'
import type { Argument, Assigned, Construct, Redirected, Shell, SimpleCommand } from './types.ts'
import type { Scope, WordContext } from './units.ts'
import { dynamic, expandValue, expandWord, literal, visitParts } from './words.ts'
import { innerOf, unwrap } from './wrappers.ts'

const DEEPEST = 10
const MOST_COMMANDS = 2_000
const MOST_TURNS = 300

/** Builtins after which no variable is known. */
const CHANGES_VARIABLES = new Set(
  'read mapfile readarray getopts export declare typeset local readonly unset eval source . let set wait select shift exec'.split(
    ' ',
  ),
)
/** Builtins after which the folder is not known. */
const CHANGES_DIRECTORY = new Set(['pushd', 'popd', 'eval', 'source', '.', 'chdir', 'z', 'j'])

export interface Walk {
  readonly parser: Parser
  readonly home: string
  readonly interactive: boolean
  readonly mayRead: (folder: string) => boolean
  readonly simple: SimpleCommand[]
  readonly unknown: Construct[]
}

/** `printf` sets a variable with `-v`, and with `%n` in its format. */
const changesVariables = (name: string, args: readonly string[]): boolean =>
  CHANGES_VARIABLES.has(name) ||
  (name === 'printf' && args.some((it) => it.startsWith('-') || /%[^%a-zA-Z]*n/.test(it)))

interface Place {
  readonly walk: Walk
  readonly source: string
  readonly via: readonly string[]
  readonly shell: Shell
  readonly piped: boolean
}

export function walkScript(
  walk: Walk,
  source: string,
  scope: Scope,
  shell: Shell,
  via: readonly string[] = [],
): Outcome {
  return script({ walk, source, via, shell, piped: false }, walk.parser.parse(source), scope, 0, source.length)
}

function script(place: Place, tree: ParsedScript, scope: Scope, from = tree.pos, to = tree.end): Outcome {
  const { walk, via } = place
  const inner = tree.source === undefined ? place : { ...place, source: tree.source }
  const [begin, end] = tree.source === undefined ? [from, to] : [0, tree.source.length]
  if (via.length > DEEPEST) {
    walk.unknown.push({ kind: 'depth', text: via.join(' › '), why: 'Commands stand too deep inside of each other.' })
    return both(scope)
  }
  for (const it of tree.errors ?? [])
    walk.unknown.push({
      kind: 'syntax',
      text: inner.source.slice(it.pos, it.pos + 40),
      why: `The shell would not read this: ${it.message}.`,
    })
  const left = uncovered(tree, inner.source, begin, end, walk.parser)
  if (left !== undefined) walk.unknown.push({ kind: 'syntax', text: left, why: 'This part was not understood.' })
  return statements(inner, tree.commands, scope)
}

function statements(place: Place, list: readonly Statement[], scope: Scope): Outcome {
  let outcome = both(scope)
  let before = scope
  for (const it of list) {
    const result = andOr(place, it.command, before)
    outcome = it.background ? both(before) : result
    before = after(outcome, before)
  }
  return outcome
}

function andOr(place: Place, node: Statement['command'], scope: Scope): Outcome {
  if (node.type !== 'AndOr') return pipeline(place, node, scope)
  let outcome = pipeline(place, node.commands[0]!, scope)
  for (const [index, operator] of node.operators.entries()) {
    const next = node.commands[index + 1]!
    if (operator === '&&') {
      const result = pipeline(place, next, outcome.success ?? scope)
      outcome = { success: result.success, failure: merge(outcome.failure, result.failure) }
    } else {
      const result = pipeline(place, next, outcome.failure ?? scope)
      outcome = { success: merge(outcome.success, result.success), failure: result.failure }
    }
  }
  return outcome
}

function pipeline(place: Place, node: PipelineNode, scope: Scope): Outcome {
  if (node.type !== 'Pipeline') return command(place, node, scope)
  for (const it of node.operators) if (it === '|&') onlyInBash(place, it)
  let outcome = both(scope)
  for (const [index, it] of node.commands.entries())
    outcome = command(index > 0 ? { ...place, piped: true } : place, it, scope)
  // Each part of a pipeline has a shell of its own; some shells run the last part themselves.
  if (node.commands.length > 1) return both(merge(scope, after(outcome, scope))!)
  const negated = node.prefixes.filter((it) => it.type === 'Negation').length % 2 === 1
  return negated ? { success: outcome.failure, failure: outcome.success } : outcome
}

function command(place: Place, node: CommandNode | Redirection | SyntaxNode, scope: Scope): Outcome {
  const { walk } = place
  const refuse = (kind: string, why: string): void => {
    walk.unknown.push({ kind, text: place.source.slice(node.pos, node.end), why })
  }
  switch (node.type) {
    case 'Command':
      return simple(place, node, scope)
    case 'Redirected': {
      const outcome = command(place, node.command, scope)
      emit(place, scope, node, [], [], node.redirects)
      return outcome
    }
    case 'CompoundList':
      return statements(place, node.commands, scope)
    case 'BraceGroup':
      return statements(place, node.body.commands, scope)
    case 'Subshell':
      statements(place, node.body.commands, scope)
      return both(scope)
    case 'If': {
      let outcome = statements(place, node.clause.commands, scope)
      let ends = statements(place, node.then.commands, outcome.success ?? scope)
      for (const it of node.elif) {
        outcome = statements(place, it.clause.commands, outcome.failure ?? scope)
        ends = join(ends, statements(place, it.then.commands, outcome.success ?? scope))
      }
      const last = outcome.failure ?? scope
      return join(ends, node.else === undefined ? both(last) : statements(place, node.else.commands, last))
    }
    case 'For': {
      const values = node.wordlist?.flatMap((it) => expandWord(it, contextOf(place, scope)))
      const name = node.name.text
      if (!isPlainName(name)) refuse('for', 'The loop sets a variable that other programs look at.')
      const known = values !== undefined && values.length <= MOST_TURNS && values.every((it) => it.value !== undefined)
      return loop(place, [node.body], scope, (start) => {
        if (!known) return both(after(statements(place, node.body.commands, bind(start, name, null)), start))
        let current = start
        for (const value of values) {
          const result = after(statements(place, node.body.commands, bind(current, name, value)), current)
          current = merge(current, result)!
        }
        return both(current)
      })
    }
    case 'While':
      return loop(place, [node.clause, node.body], scope, (start) => {
        const outcome = statements(place, node.clause.commands, start)
        const result = statements(place, node.body.commands, outcome.success ?? start)
        return join(outcome, result)
      })
    case 'Case': {
      visitParts(node.word.parts, contextOf(place, scope))
      let result = both(scope)
      for (const item of node.items) {
        if (item.terminator === ';&' || item.terminator === ';;&') onlyInBash(place, item.terminator)
        for (const it of item.pattern) visitParts(it.parts, contextOf(place, scope))
        result = join(result, statements(place, item.body.commands, after(result, scope)))
      }
      return result
    }
    case 'TestCommand':
      onlyInBash(place, place.source.slice(node.pos, node.end))
      test(place, node.expression, scope)
      return both(scope)
    case 'Function':
      refuse('function', 'A function can take the name of a program and runs when it is called.')
      if (startsItself(place, node.name.text, node.body))
        refuse(FORK_BOMB, 'The function starts itself in the background until the machine stands still.')
      return lost(place, node.body, scope)
    case 'Coproc':
      refuse('coproc', 'A coprocess runs beside the shell.')
      return lost(place, node.body, scope)
    case 'Select':
      refuse('select', 'The loop waits for a person.')
      return lost(place, node.body, scope)
    case 'ArithmeticFor':
      refuse('arithmetic', 'Arithmetic evaluates the text of variables, and an array index in it can run commands.')
      expansionsIn(place, node, scope)
      return lost(place, node.body, scope)
    case 'ArithmeticCommand':
      refuse('arithmetic', 'Arithmetic evaluates the text of variables, and an array index in it can run commands.')
      expansionsIn(place, node, scope)
      return both(scope)
    default:
      refuse(node.type, 'The construct is not known.')
      return lost(place, node, scope)
  }
}

export const FORK_BOMB = 'fork bomb'

/** Whether a call of `name` stands in a pipeline or in the background of its own body. */
function startsItself(place: Place, name: string, body: SyntaxNode): boolean {
  let found = false
  const visit = (node: SyntaxNode, beside: boolean): void => {
    if (node.type === 'Command' && node.name?.value === name && beside) found = true
    const next =
      beside ||
      (node.type === 'Pipeline' && node.commands.length > 1) ||
      (node.type === 'Statement' && node.background === true)
    place.walk.parser.forEachChild(node, (child) => visit(child, next))
  }
  visit(body, false)
  return found
}

const join = (one: Outcome, other: Outcome): Outcome => ({
  success: merge(one.success, other.success),
  failure: merge(one.failure, other.failure),
})

/** Walks something that may run in any state. */
function lost(place: Place, node: SyntaxNode, scope: Scope): Outcome {
  const anywhere = { ...forgetAll(scope), directories: [] }
  command(place, node, anywhere)
  return both(anywhere)
}

/** Runs the body of a loop until another turn would change nothing. */
function loop(place: Place, bodies: readonly SyntaxNode[], scope: Scope, turn: (start: Scope) => Outcome): Outcome {
  const { simple, unknown } = place.walk
  let start = scope
  for (const name of bodies.flatMap((it) => [...assignedIn(place, it)]))
    start = name === '*' ? forgetAll(start) : bind(start, name, null)
  for (let count = 0; ; count += 1) {
    const [commands, constructs] = [simple.length, unknown.length]
    const outcome = turn(start)
    const end = merge(start, after(outcome, start))!
    if (end.directories.join('\0') === start.directories.join('\0')) return both(end)
    simple.length = commands
    unknown.length = constructs
    start = count < 3 ? { ...end, directories: end.directories.slice(0, 32) } : { ...forgetAll(end), directories: [] }
  }
}

function assignedIn(place: Place, node: SyntaxNode): Set<string> {
  const names = new Set<string>()
  const visit = (child: SyntaxNode): void => {
    if (child.type === 'Assignment') names.add(child.name)
    if (child.type === 'For') names.add(child.name.text)
    if (child.type === 'Command' && child.name !== undefined) {
      const name = child.name.value
      const args = child.args.map((it) => it.text)
      if (changesVariables(name, args) || name === 'builtin' || name === 'command') names.add('*')
    }
    place.walk.parser.forEachChild(child, visit)
  }
  visit(node)
  return names
}

function expansionsIn(place: Place, node: SyntaxNode, scope: Scope): void {
  place.walk.parser.forEachChild(node, (child) => {
    if (child.type === 'CommandExpansion' || child.type === 'ArithmeticCommandExpansion')
      contextOf(place, scope).script(child.script, '$(…)', child.text)
    else if (child.type !== 'CompoundList') expansionsIn(place, child, scope)
  })
}

function test(place: Place, expression: TestExpression, scope: Scope): void {
  const context = contextOf(place, scope)
  const refuse = (): void =>
    context.unknown({
      kind: 'test',
      text: place.source.slice(expression.pos, expression.end),
      why: 'The test evaluates its text, which can run commands.',
    })
  switch (expression.type) {
    case 'TestUnary':
      visitParts(expression.operand.parts, context)
      if (!/^-[abcdefghknprstuwxzGLNOS]$/.test(expression.operator)) refuse()
      break
    case 'TestBinary':
      for (const it of [expression.left, expression.right]) visitParts(it.parts, context)
      if (/^-(eq|ne|lt|le|gt|ge)$/.test(expression.operator)) {
        if (![expression.left, expression.right].every((it) => /^(-?\d+|"?\$[#?]"?|"?\$\{#\w+\}"?)$/.test(it.text)))
          refuse()
      } else if (!/^(==?|!=|<|>|=~|-nt|-ot|-ef)$/.test(expression.operator)) refuse()
      break
    case 'TestLogical':
      for (const it of expression.operands) test(place, it, scope)
      break
    case 'TestNot':
      test(place, expression.operand, scope)
      break
    case 'TestGroup':
      test(place, expression.expression, scope)
      break
  }
}

function onlyInBash({ walk, shell }: Place, text: string): void {
  if (shell === 'sh')
    walk.unknown.push({ kind: 'bash', text, why: 'Only bash reads this so; another shell may run something else.' })
}

function contextOf(place: Place, scope: Scope): WordContext {
  const { walk } = place
  return {
    scope,
    home: walk.home,
    interactive: walk.interactive,
    mayRead: walk.mayRead,
    unknown: (it) => walk.unknown.push(it),
    bashOnly: (text) => onlyInBash(place, text),
    script: (tree, label, text) => {
      if (tree === undefined)
        walk.unknown.push({ kind: 'substitution', text, why: 'The command in it was not understood.' })
      else script({ ...place, via: [...place.via, label] }, tree, scope)
    },
  }
}

function simple(place: Place, node: CommandTree, scope: Scope): Outcome {
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
  const assignments = node.prefix
    .filter((it) => it.type === 'Assignment')
    .map((it): Assigned => {
      const value = assignmentValue(it, context)
      return { name: it.name, value: it.append || it.index !== undefined ? undefined : value, text: it.text }
    })
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

function redirection(place: Place, node: Redirection, scope: Scope): Redirected {
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

function emit(
  place: Place,
  scope: Scope,
  node: { readonly pos: number; readonly end: number },
  written: readonly Argument[],
  assignments: readonly Assigned[],
  redirects: readonly Redirection[],
): Outcome {
  const redirections = redirects.map((it) => redirection(place, it, scope))
  const text = place.source.slice(node.pos, node.end)
  const outcome = emitWords(place, scope, text, written, assignments, redirections)
  if (written.length > 0) return outcome
  let next = scope
  for (const { name, value } of assignments) next = bind(next, name, value ?? null)
  return both(next)
}

function emitWords(
  place: Place,
  scope: Scope,
  text: string,
  written: readonly Argument[],
  assignments: readonly Assigned[],
  redirections: readonly Redirected[],
): Outcome {
  const { walk, via } = place
  const { words, start, via: wrappers, assignments: own, directory } = unwrap(written)
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
  if (walk.simple.length >= MOST_COMMANDS) {
    if (!walk.unknown.some((it) => it.kind === 'length'))
      walk.unknown.push({ kind: 'length', text, why: `There are more than ${MOST_COMMANDS} commands.` })
    return both(scope)
  }
  walk.simple.push(emitted)

  for (const it of inner) {
    const deeper = { ...place, via: [...emitted.via, it.label] }
    if (it.unsure !== undefined) walk.unknown.push({ kind: it.label, text, why: it.unsure })
    // Another shell has the environment of this one and none of its plain variables.
    const fresh: Scope = {
      variables: new Map(moved.variables.has('HOME') ? [['HOME', null]] : []),
      directories: moved.directories,
    }
    const apart = it.same ? { ...forgetAll(moved), directories: [] } : fresh
    if (it.script !== undefined && it.script.trim() !== '') {
      if (deeper.via.length > DEEPEST)
        walk.unknown.push({ kind: 'depth', text, why: 'Commands stand too deep inside of each other.' })
      else
        walkScript(walk, it.script, apart, it.same ? place.shell : it.label === 'bash -c' ? 'bash' : 'sh', deeper.via)
    }
    if (it.words !== undefined && it.words.length > 0) emitWords(deeper, moved, text, it.words, [], [])
  }
  return effectOf(words, wrappers, scope)
}

/** What a builtin does to the shell. */
function effectOf(words: readonly Argument[], wrappers: readonly string[], scope: Scope): Outcome {
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

// Walks the tree of a parsed script through its control flow, down to every simple command in it.
import {
  type CommandNode,
  forEachChild,
  type ParsedScript,
  type PipelineNode,
  parse,
  type Redirection,
  type Statement,
  type SyntaxNode,
  type TestExpression,
} from 'unbash'
import { isPlainName } from '../programs/environment.ts'
import { uncovered } from '../words/parser.ts'
import type { Shell } from '../words/types.ts'
import type { Scope } from '../words/units.ts'
import { dynamic, expandWord, literal, visitParts } from '../words/words.ts'
import { contextOf, onlyInBash, type Walk, type WorkingPlace } from './place.ts'
import { after, bind, both, forgetAll, merge, type WalkOutcome } from './scope.ts'
import { changesVariables, DEEPEST, emit, simple } from './simple.ts'

/** A loop over more values than this has a value that is not known. */
const MOST_TURNS = 300

/** Lists the commands of a text in `simple` of the walk, and what was not understood in `unknown`. */
export function walkScript(
  walk: Omit<Walk, 'enter' | 'parseAndEnter'>,
  source: string,
  scope: Scope,
  shell: Shell,
): void {
  const parseAndEnter = (place: WorkingPlace, text: string, start: Scope): WalkOutcome => {
    start.budget.spend('characters', text.length)
    return script({ ...place, source: text, piped: false }, parse(text), start, 0, text.length)
  }
  const whole: Walk = { ...walk, enter: script, parseAndEnter }
  parseAndEnter({ walk: whole, source, via: [], shell, piped: false }, source, scope)
}

function script(place: WorkingPlace, tree: ParsedScript, scope: Scope, from = tree.pos, to = tree.end): WalkOutcome {
  const { walk, via } = place
  const inner = tree.source === undefined ? place : { ...place, source: tree.source }
  const [begin, end] = tree.source === undefined ? [from, to] : [0, tree.source.length]
  if (via.length > DEEPEST) {
    walk.unknown.push({ kind: 'depth', text: via.join(' › '), why: 'Commands are nested too deeply.' })
    return both(scope)
  }
  for (const it of tree.errors ?? [])
    walk.unknown.push({
      kind: 'syntax',
      text: inner.source.slice(it.pos, it.pos + 40),
      why: `The shell would not read this: ${it.message}.`,
    })
  const left = uncovered(tree, inner.source, begin, end)
  if (left !== undefined) walk.unknown.push({ kind: 'syntax', text: left, why: 'This part was not understood.' })
  return statements(inner, tree.commands, scope)
}

function statements(place: WorkingPlace, list: readonly Statement[], scope: Scope): WalkOutcome {
  let outcome = both(scope)
  let before = scope
  for (const it of list) {
    const result = andOr(place, it.command, before)
    outcome = it.background ? both(before) : result
    before = after(outcome, before)
  }
  return outcome
}

function andOr(place: WorkingPlace, node: Statement['command'], scope: Scope): WalkOutcome {
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

function pipeline(place: WorkingPlace, node: PipelineNode, scope: Scope): WalkOutcome {
  if (node.type !== 'Pipeline') return command(place, node, scope)
  for (const it of node.operators) if (it === '|&') onlyInBash(place, it)
  let outcome = both(scope)
  for (const [index, it] of node.commands.entries())
    outcome = command(index > 0 ? { ...place, piped: true } : place, it, scope)
  // Each part of a pipeline runs in its own shell; some shells run the last part themselves.
  if (node.commands.length > 1) return both(merge(scope, after(outcome, scope))!)
  const negated = node.prefixes.filter((it) => it.type === 'Negation').length % 2 === 1
  return negated ? { success: outcome.failure, failure: outcome.success } : outcome
}

function command(place: WorkingPlace, node: CommandNode | Redirection | SyntaxNode, scope: Scope): WalkOutcome {
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
      for (const it of node.wordlist ?? []) walk.between.push(it.text)
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
      walk.between.push(node.word.text, ...node.items.flatMap((item) => item.pattern.map((it) => it.text)))
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
      emit(place, scope, node, [literal('[['), dynamic(place.source.slice(node.pos, node.end), '', true)], [], [])
      return both(scope)
    case 'Function':
      refuse('function', 'A function can take the name of a program and runs when it is called.')
      if (startsItself(node.name.text, node.body))
        refuse(FORK_BOMB, 'The function starts itself in the background until the machine hangs.')
      return lost(place, node.body, scope)
    case 'Coproc':
      refuse('coproc', 'A coprocess runs in parallel with the shell.')
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

/** Whether the body of `name` calls it in a pipeline or in the background. */
function startsItself(name: string, body: SyntaxNode): boolean {
  let found = false
  const visit = (node: SyntaxNode, parallel: boolean): void => {
    if (node.type === 'Command' && node.name?.value === name && parallel) found = true
    const next =
      parallel ||
      (node.type === 'Pipeline' && node.commands.length > 1) ||
      (node.type === 'Statement' && node.background === true)
    forEachChild(node, (child) => visit(child, next))
  }
  visit(body, false)
  return found
}

const join = (one: WalkOutcome, other: WalkOutcome): WalkOutcome => ({
  success: merge(one.success, other.success),
  failure: merge(one.failure, other.failure),
})

/** Walks something that may run in any state. */
function lost(place: WorkingPlace, node: SyntaxNode, scope: Scope): WalkOutcome {
  const anywhere = { ...forgetAll(scope), directories: [] }
  command(place, node, anywhere)
  return both(anywhere)
}

/** Runs the body of a loop until another turn would change nothing. */
function loop(
  place: WorkingPlace,
  bodies: readonly SyntaxNode[],
  scope: Scope,
  turn: (start: Scope) => WalkOutcome,
): WalkOutcome {
  const { simple, unknown } = place.walk
  let start = scope
  for (const name of bodies.flatMap((it) => [...assignedIn(it)]))
    start = name === '*' ? forgetAll(start) : bind(start, name, null)
  for (let count = 0; ; count += 1) {
    const [commands, constructs] = [simple.length, unknown.length]
    const outcome = turn(start)
    const end = merge(start, after(outcome, start))!
    if (end.directories.join('\0') === start.directories.join('\0')) return both(end)
    simple.length = commands
    unknown.length = constructs
    start = count < 3 ? end : { ...forgetAll(end), directories: [] }
  }
}

function assignedIn(node: SyntaxNode): Set<string> {
  const names = new Set<string>()
  const visit = (child: SyntaxNode): void => {
    if (child.type === 'Assignment') names.add(child.name)
    if (child.type === 'For') names.add(child.name.text)
    if (child.type === 'Command' && child.name !== undefined) {
      const name = child.name.value
      const args = child.args.map((it) => it.text)
      if (changesVariables(name, args) || name === 'builtin' || name === 'command') names.add('*')
    }
    forEachChild(child, visit)
  }
  visit(node)
  return names
}

function expansionsIn(place: WorkingPlace, node: SyntaxNode, scope: Scope): void {
  forEachChild(node, (child) => {
    if (child.type === 'CommandExpansion' || child.type === 'ArithmeticCommandExpansion')
      contextOf(place, scope).script(child.script, '$(…)', child.text)
    else if (child.type !== 'CompoundList') expansionsIn(place, child, scope)
  })
}

function test(place: WorkingPlace, expression: TestExpression, scope: Scope): void {
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

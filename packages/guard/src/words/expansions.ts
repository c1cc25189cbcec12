// Parameters, arithmetic and substitutions inside a word: what they may run and what can be known of their value.
import type { ArithmeticExpression, ParameterExpansionPart, Word, WordPart } from 'unbash'
import type { Unit, WordContext } from './units.ts'

const ONE_WORD: Unit = { type: 'hole', splits: false }
const WORDS: Unit = { type: 'hole', splits: true }
const DIGITS: Unit = { type: 'hole', splits: false, numeric: true }

type Expansion = Exclude<
  WordPart,
  {
    type:
      | 'Literal'
      | 'SingleQuoted'
      | 'DoubleQuoted'
      | 'AnsiCQuoted'
      | 'LocaleString'
      | 'Glob'
      | 'ExtendedGlob'
      | 'BraceExpansion'
  }
>

type Visit = (parts: readonly WordPart[] | undefined, context: WordContext) => void

export function expansionUnits(part: Expansion, quoted: boolean, context: WordContext, visit: Visit): readonly Unit[] {
  const hole = quoted ? ONE_WORD : WORDS
  switch (part.type) {
    case 'SimpleExpansion':
      return variable(part.text.slice(1), quoted, context)
    case 'ParameterExpansion':
      return parameter(part, quoted, context, visit)
    case 'CommandExpansion':
      // How backslashes and quotes count in old-style substitutions differs between shells.
      if (part.text.startsWith('`') && /[\\"]/.test(part.text))
        context.unknown({
          kind: 'backquotes',
          text: part.text,
          why: 'Shells read quotes in backquotes differently; use $(…).',
        })
      if (!part.text.startsWith('`') && !part.text.startsWith('$(')) context.bashOnly(part.text)
      context.script(part.script, '$(…)', part.text)
      return [hole]
    case 'ProcessSubstitution':
      context.bashOnly(part.text)
      context.script(part.script, `${part.operator}(…)`, part.text)
      return [part.operator === '<' ? { type: 'hole', splits: false, pipe: true } : ONE_WORD]
    case 'ArithmeticExpansion':
      if (part.text.startsWith('$[')) context.bashOnly(part.text)
      if (part.expression !== undefined) arithmetic(part.expression, context, visit)
      if (part.expression === undefined || !isConstant(part.expression)) {
        context.unknown({
          kind: 'arithmetic',
          text: part.text,
          why: 'Arithmetic evaluates the text of variables, and an array index in it can run commands.',
        })
      }
      return [hole]
    default: {
      const never: never = part
      context.unknown({ kind: 'expansion', text: (never as WordPart).text, why: 'The expansion is not known.' })
      return [WORDS]
    }
  }
}

/** `$name`: its characters where the value is known. */
function variable(name: string, quoted: boolean, context: WordContext): readonly Unit[] {
  if (name === '?' || name === '#' || name === '$') return [DIGITS]
  if (name === '@' || name === '*') return [WORDS]
  const value = knownValue(name, context)
  if (value === undefined) return [quoted ? ONE_WORD : WORDS]
  // Without quotes the value is split and its wildcards are expanded; an empty one is not a word.
  if (!quoted && !/^[^\s*?[\\]+$/.test(value)) return [WORDS]
  context.scope.budget.spend('characters', value.length)
  return [...value].map((char) => ({ type: 'char', char, quoted: true }))
}

function knownValue(name: string, { scope, home }: WordContext): string | undefined {
  const bound = scope.variables.get(name)
  if (bound !== undefined) return bound?.value
  if (name === 'HOME') return home
  if (name === 'PWD' && scope.directories.length === 1) return scope.directories[0]
  return undefined
}

const isNumber = (word: Word | undefined): boolean => word === undefined || /^ *-?\d+ *$/.test(word.text)

function parameter(part: ParameterExpansionPart, quoted: boolean, context: WordContext, visit: Visit): readonly Unit[] {
  const { prefix, index, operation, text } = part
  const refuse = (why: string): void => context.unknown({ kind: 'parameter', text, why })
  const read = (word: Word | undefined): void => visit(word?.parts, context)
  read(index)
  if (quoted && /['"\\]/.test(text)) refuse('Shells read quotes in an expansion in quotes differently.')
  if (index !== undefined || /^(Replace|CaseModification|Slice|Transform|Names)$/.test(operation?.type ?? ''))
    context.bashOnly(text)
  if (index !== undefined && !/^(\d+|@|\*)$/.test(index.text))
    refuse('An array index is evaluated and can run commands.')
  if (prefix === '!') refuse('The name of the variable comes from another variable.')

  switch (operation?.type) {
    case undefined:
      if (!/^(?:[A-Za-z_]\w*|\d+|[@*#?$!-])$/.test(part.parameter)) refuse('The parameter is not known.')
      break
    case 'Default':
      read(operation.operand)
      if (operation.operator.endsWith('=')) refuse('The expansion sets a variable.')
      break
    case 'Remove':
      read(operation.operand)
      break
    case 'Replace':
      read(operation.pattern)
      read(operation.replacement)
      break
    case 'CaseModification':
      read(operation.operand)
      break
    case 'Slice':
      read(operation.offset)
      read(operation.length)
      if (!isNumber(operation.offset) || !isNumber(operation.length))
        refuse('The position is evaluated and can run commands.')
      break
    case 'Transform':
      if (!/^[QULu]$/.test(operation.operand.text)) refuse('The transformation can run commands or is not known.')
      break
    default:
      refuse('The expansion is not known.')
  }

  if (prefix === '#') return [DIGITS]
  const several = part.parameter === '@' || part.parameter === '*' || index?.text === '@' || index?.text === '*'
  if (operation === undefined && prefix === undefined && index === undefined)
    return variable(part.parameter, quoted, context)
  return [quoted && !several ? ONE_WORD : WORDS]
}

/** Finds the scripts inside an arithmetic expression. */
export function arithmetic(expression: ArithmeticExpression, context: WordContext, visit: Visit): void {
  switch (expression.type) {
    case 'ArithmeticBinary':
      arithmetic(expression.left, context, visit)
      arithmetic(expression.right, context, visit)
      break
    case 'ArithmeticUnary':
      arithmetic(expression.operand, context, visit)
      break
    case 'ArithmeticTernary':
      for (const it of [expression.test, expression.consequent, expression.alternate]) arithmetic(it, context, visit)
      break
    case 'ArithmeticGroup':
      arithmetic(expression.expression, context, visit)
      break
    case 'ArithmeticWord':
      visit(expression.parts, context)
      break
    case 'ArithmeticCommandExpansion':
      context.script(expression.script, '$(…)', expression.text)
      break
  }
}

function isConstant(expression: ArithmeticExpression): boolean {
  switch (expression.type) {
    case 'ArithmeticBinary':
      return isConstant(expression.left) && isConstant(expression.right)
    case 'ArithmeticUnary':
      return isConstant(expression.operand)
    case 'ArithmeticTernary':
      return [expression.test, expression.consequent, expression.alternate].every(isConstant)
    case 'ArithmeticGroup':
      return isConstant(expression.expression)
    case 'ArithmeticWord':
      return /^\d+$/.test(expression.value)
    default:
      return false
  }
}

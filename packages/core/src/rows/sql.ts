// Conditions of casl as SQL: columns quoted, every value a parameter.
import { callable, checkFields, type Fields, oneOf, text } from '../checks/fields.ts'
import { OxbowError } from '../errors.ts'

export interface Sql {
  /** In parentheses. */
  readonly sql: string
  readonly params: (string | number)[]
}

export interface SqlOptions {
  /** Name or alias of the table that the columns are of. */
  readonly table?: string
  /** Default `"`, as in SQLite and PostgreSQL; MySQL has the backtick. */
  readonly quote?: '"' | '`'
  /** How the n-th parameter is written, from 1. Default: `?`. PostgreSQL: (n) => `$${n}`. */
  readonly placeholder?: (n: number) => string
}

const OPTIONS: Fields<SqlOptions> = { table: text, quote: oneOf('"', '`'), placeholder: callable }

/** A node of the tree that `rulesToAST` of `@casl/ability/extra` returns. */
interface Condition {
  readonly operator: string
  readonly value: unknown
  /** Absent in `and`, `or` and `not`. */
  readonly field?: string
}

const COMPARISONS: Readonly<Record<string, string>> = { lt: '<', lte: '<=', gt: '>', gte: '>=' }

/**
 * `null` is what no rule allows: no rows.
 *
 * @param ids columns that hold ids of the identity. These are texts: where the database has numbers, it would take
 * `007` for 7
 */
export function sqlOf(condition: Condition | null, ids: ReadonlySet<string>, options: SqlOptions = {}): Sql {
  checkFields(options, OPTIONS, (what) => new OxbowError('row_columns_invalid', `toSql(): ${what}.`))
  const { table, quote = '"', placeholder = () => '?' } = options
  const params: (string | number)[] = []
  const name = (text: string): string => quote + text.replaceAll(quote, quote + quote) + quote
  const parameter = (value: unknown): string => {
    if (typeof value !== 'string' && typeof value !== 'number') throw unknown(`a value of the type ${typeof value}`)
    return placeholder(params.push(value))
  }

  /**
   * NOT is carried down to the comparisons, where what it means for NULL can be said, and an index can still be used.
   */
  function compile({ operator, value, field }: Condition, no = false): string {
    if (operator === 'not') return compile((value as Condition[])[0]!, !no)
    if (operator === 'and' || operator === 'or') {
      const all = (value as Condition[]).map((it) => compile(it, no))
      const every = (operator === 'and') !== no
      return `(${all.length === 0 ? (every ? '1 = 1' : '1 = 0') : all.join(every ? ' AND ' : ' OR ')})`
    }
    if (field === undefined) throw unknown(operator)
    const column = (table === undefined ? '' : `${name(table)}.`) + name(field)
    // MySQL, which has the backtick, calls it CHAR. SQLite takes both.
    const text = ids.has(field) ? `CAST(${column} AS ${quote === '`' ? 'CHAR' : 'TEXT'})` : undefined
    if (operator === 'eq' || operator === 'ne') return isOneOf(column, text, [value], (operator === 'ne') !== no)
    if (operator === 'in' || operator === 'nin')
      return isOneOf(column, text, value as unknown[], (operator === 'nin') !== no)
    const sign = COMPARISONS[operator]
    if (sign === undefined) throw unknown(operator)
    const holds = `${text ?? column} ${sign} ${parameter(value)}`
    return no ? `(${column} IS NULL OR NOT ${holds})` : holds
  }

  function isOneOf(column: string, text: string | undefined, values: readonly unknown[], no: boolean): string {
    const some = values.filter((it) => it !== null)
    const orNull = some.length < values.length
    if (some.length === 0) return orNull ? `${column} IS ${no ? 'NOT ' : ''}NULL` : no ? '1 = 1' : '1 = 0'
    const isIn = (what: string): string => `${what} ${no ? 'NOT ' : ''}IN (${some.map(parameter).join(', ')})`
    // The column alone uses the index; its text selects the matching rows.
    const list = text === undefined ? isIn(column) : no ? isIn(text) : `(${isIn(column)} AND ${isIn(text)})`
    // NULL is in no list; whether that counts depends on whether NULL is asked for.
    return orNull === no ? list : `(${column} IS NULL OR ${list})`
  }

  return { sql: condition === null ? '(1 = 0)' : `(${compile(condition)})`, params }
}

const unknown = (what: string) =>
  new OxbowError('row_scope_invalid', `A condition of the data scope cannot be expressed in SQL: ${what}.`)

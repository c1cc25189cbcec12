// Row scope: which rows of a table a person may see, as a filter that a tool adds to its own query. It is made of who
// the person is and of names in the tool's code; nothing that a model wrote can reach it, except to narrow
// it.
import type { MongoQuery } from '@casl/ability'
import { DEFAULT_TENANT, grants } from '../authority.ts'
import { callable, checkFields, type Fields, listOf, text } from '../checks/fields.ts'
import { optionalPackage } from '../checks/optional-package.ts'
import { OxbowError } from '../errors.ts'
import type { DataScope, Principal } from '../events/types.ts'
import type { ToolContext } from '../tools/tool.ts'
import type { Sql, SqlOptions } from './sql.ts'

/** How a table says whose its rows are. Names of columns, as the database has them, without the table's. */
export interface RowColumns {
  /** The user whose row it is. */
  readonly owner?: string
  /** The department that it belongs to. */
  readonly department?: string
  /** The tenant of the rows; with it no scope includes rows of another tenant. */
  readonly tenant?: string
  /** Further columns that `and` and scopes of the type `conditions` may name. */
  readonly others?: readonly string[]
  /** Ids of departments that only the business system knows: below one, or those that a role was given. */
  readonly departments?: (wanted: WantedDepartments) => readonly string[] | Promise<readonly string[]>
}

export type WantedDepartments =
  | { readonly type: 'below'; readonly department: string }
  | { readonly type: 'role'; readonly role: string }

export type RowValue = string | number | null

export interface RowFilter {
  /** For rows in memory: `filter.ability.can('read', row)`. */
  readonly ability: RowAbility
  /**
   * The rows of this filter that also have these values, or one of a list; what is undefined is left out. The values
   * may come from a model: they are compared, never interpreted.
   *
   * @throws OxbowError `row_condition_invalid` for a column that was not declared, and for any other kind of value
   */
  and(values: Readonly<Record<string, RowValue | readonly RowValue[] | undefined>>): RowFilter
  /** A condition in parentheses for a WHERE, and its parameters. */
  toSql(options?: SqlOptions): Sql
}

/**
 * The part of an ability of `@casl/ability` that tools need. An interface of ours, because that package is optional.
 */
export interface RowAbility {
  can(action: 'read', row: object): boolean
  cannot(action: 'read', row: object): boolean
}

/**
 * The rows that the person for whom a tool works may see there. Scopes are joined by OR; without any, it is their own
 * rows. What a table cannot express (a department where it has no such column) gives no rows.
 *
 * @param context what the tool's `run` was given
 * @throws OxbowError `row_columns_invalid`; `row_scope_unresolved` when a scope names departments that cannot be
 * resolved
 * @example
 * const mine = await rowFilter(context, { owner: 'created_by', department: 'department', others: ['status'] })
 * const { sql, params } = mine.and({ status: input.status }).toSql()
 * database.prepare(`SELECT * FROM orders WHERE ${sql}`).all(...params)
 */
export async function rowFilter(
  context: Pick<ToolContext, 'principal' | 'permission'>,
  columns: RowColumns,
): Promise<RowFilter> {
  if (typeof context?.principal?.user !== 'string')
    throw new OxbowError(
      'row_columns_invalid',
      "rowFilter(): the first argument must be the context of the tool's run.",
    )
  const { principal, permission } = context
  checkFields(columns, COLUMNS, (what) => new OxbowError('row_columns_invalid', `rowFilter(): ${what}.`))
  const names = checkedNames(columns)
  const applying = (principal.dataScope ?? OWN).filter(
    ({ permissions }) => permission === undefined || permissions === undefined || grants(permissions, permission),
  )
  const rules: Rule[] = []
  for (const scope of applying) {
    const conditions = await conditionsOf(scope, principal, columns, names)
    if (conditions === 'all') rules.push(can())
    else if (conditions !== undefined) rules.push(can(conditions))
  }
  // Rules that forbid win over all that allow, so they are joined with AND.
  if (columns.tenant !== undefined)
    rules.push(cannot({ [columns.tenant]: { $ne: principal.tenant ?? DEFAULT_TENANT } }))

  // Loaded when it is needed: most programs have no such tools.
  const [casl, extra, { sqlOf }] = await optionalPackage(
    () => Promise.all([import('@casl/ability'), import('@casl/ability/extra'), import('./sql.ts')]),
    'rowFilter()',
    '@casl/ability@7',
  )
  const ids = idColumns(columns)
  const conditionsMatcher = casl.buildMongoQueryMatcher({}, {}, { compare, get: reading(ids) })
  const filterOf = (all: readonly Rule[]): RowFilter => {
    const ability = casl.createMongoAbility<['read', 'row' | object], MongoQuery>([...all], {
      conditionsMatcher,
      detectSubjectType: () => 'row',
    })
    return {
      ability,
      and: (values) => filterOf([...all, ...narrowing(values, names, ids)]),
      toSql: (options) => sqlOf(extra.rulesToAST(ability, 'read', 'row'), ids, options),
    }
  }
  return filterOf(rules)
}

const COLUMNS: Fields<RowColumns> = {
  owner: text,
  department: text,
  tenant: text,
  others: listOf(text),
  departments: callable,
}

type Conditions = Readonly<Record<string, unknown>>

interface Rule {
  action: 'read'
  subject: 'row'
  conditions?: MongoQuery
  inverted?: true
}

const OWN: readonly DataScope[] = [{ type: 'own' }]

const can = (conditions?: Conditions): Rule => ({
  action: 'read',
  subject: 'row',
  ...(conditions && { conditions: conditions as MongoQuery }),
})
const cannot = (conditions: Conditions): Rule => ({ ...can(conditions), inverted: true })

/** Undefined: no rows. */
async function conditionsOf(
  scope: DataScope,
  { user, department }: Principal,
  columns: RowColumns,
  names: ReadonlySet<string>,
): Promise<Conditions | 'all' | undefined> {
  const inDepartments = async (ids: () => readonly string[] | Promise<readonly string[]>) =>
    columns.department === undefined ? undefined : { [columns.department]: { $in: [...(await ids())] } }

  switch (scope.type) {
    case 'all':
      return 'all'
    case 'own':
      return columns.owner === undefined ? undefined : { [columns.owner]: user }
    case 'department':
      return department === undefined ? undefined : inDepartments(() => [department])
    case 'department_and_below': {
      if (department === undefined) return undefined
      const { departments } = scope
      return inDepartments(async () => [
        department,
        ...(departments ?? (await lookUp(columns, { type: 'below', department }, scope))),
      ])
    }
    case 'custom': {
      const { departments, role } = scope
      if (departments !== undefined) return inDepartments(() => departments)
      return role === undefined ? undefined : inDepartments(() => lookUp(columns, { type: 'role', role }, scope))
    }
    case 'conditions': {
      const named = Object.keys(scope.conditions)
      return named.length > 0 && named.every((it) => names.has(it)) ? copied(scope.conditions, columns) : undefined
    }
  }
}

async function lookUp(columns: RowColumns, wanted: WantedDepartments, { type }: DataScope): Promise<readonly string[]> {
  if (columns.departments === undefined)
    throw new OxbowError(
      'row_scope_unresolved',
      `The data scope is ${type}, and identity does not name the departments: let it, or give rowFilter() a function ` +
        '`departments` that looks them up.',
    )
  return (await columns.departments(wanted)).map(String)
}

function checkedNames({ owner, department, tenant, others = [] }: RowColumns): ReadonlySet<string> {
  const names = [owner, department, tenant, ...others].filter((it) => it !== undefined)
  // Dots would be paths into a row, and dollars operators.
  const wrong = names.find((it) => !/^[^.$\0][^.\0]*$/.test(it))
  if (wrong !== undefined)
    throw new OxbowError('row_columns_invalid', `${JSON.stringify(wrong)} is not a column name; leave the table out.`)
  if (owner === undefined && department === undefined)
    throw new OxbowError('row_columns_invalid', 'Name at least the column of the owner or of the department.')
  return new Set(names)
}

/** Columns of identity ids, which are texts even where the database has numbers. */
const idColumns = ({ owner, department, tenant }: RowColumns): ReadonlySet<string> =>
  new Set([owner, department, tenant].filter((it) => it !== undefined))

const textOf = (value: unknown): unknown =>
  typeof value === 'number' || typeof value === 'bigint' ? String(value) : value

const reading =
  (ids: ReadonlySet<string>) =>
  (row: object, column: string): unknown => {
    const value: unknown = Object.hasOwn(row, column) ? row[column as keyof typeof row] : null
    return ids.has(column) ? textOf(value) : value
  }

/** As SQL compares values of one type; values of different types are neither equal nor in any order. */
function compare(a: unknown, b: unknown): -1 | 0 | 1 {
  if (a === b) return 0
  if (typeof a !== typeof b || a === null || b === null) return Number.NaN as 0
  return (a as number) > (b as number) ? 1 : -1
}

/** A copy with ids as texts, made of plain objects: casl takes any other for a value. */
function copied(conditions: Conditions, columns: RowColumns): Conditions {
  const ids = idColumns(columns)
  const copy = (value: unknown, isId: boolean): unknown => {
    if (Array.isArray(value)) return value.map((it) => copy(it, isId))
    if (typeof value !== 'object' || value === null) return isId ? textOf(value) : value
    return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, copy(it, isId)]))
  }
  return Object.fromEntries(Object.entries(conditions).map(([column, it]) => [column, copy(it, ids.has(column))]))
}

const isValue = (it: unknown): it is RowValue => it === null || typeof it === 'string' || Number.isFinite(it)

function narrowing(
  values: Readonly<Record<string, unknown>>,
  names: ReadonlySet<string>,
  ids: ReadonlySet<string>,
): Rule[] {
  return Object.entries(values)
    .filter(([, it]) => it !== undefined)
    .map(([column, given]) => {
      if (!names.has(column))
        throw new OxbowError(
          'row_condition_invalid',
          `Unknown column ${JSON.stringify(column.slice(0, 60))}. Columns: ${[...names].join(', ')}.`,
        )
      const list: unknown[] = Array.isArray(given) ? given : [given]
      if (!list.every(isValue))
        throw new OxbowError('row_condition_invalid', `${column} must be a text, a number or null, or a list of them.`)
      return cannot({ [column]: { $nin: ids.has(column) ? list.map(textOf) : list } })
    })
}

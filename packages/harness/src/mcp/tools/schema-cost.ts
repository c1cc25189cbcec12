// How much work a schema causes when arguments are validated. References may double at every step, so that a short
// schema could keep a process busy for years: such a schema is refused before it is used.
import type { JsonSchema } from '@oxbow/core'
import { isObject } from '@oxbow/core/internal'

/** Visited places of schemas for one value. Real servers stay below 2,000. */
const MAX_COST = 20_000
/** The limit for this analysis itself. */
const MAX_STEPS = 200_000
const MAX_CHAIN = 500

type Json = Readonly<Record<string, unknown>>

interface Step {
  readonly to: object
  /** Identifies a value or a part of it; a trailing `*` means the parts that are not named in the same schema. */
  readonly part?: string
}

const SAME = ['not', 'if', 'then', 'else']
const SAME_LISTS = ['allOf', 'anyOf', 'oneOf']
const PARTS: Readonly<Record<string, string>> = {
  additionalProperties: '.*',
  unevaluatedProperties: '.*',
  items: '[*',
  unevaluatedItems: '[*',
  contains: '[*',
  propertyNames: '#',
}

/**
 * @param schemas all schemas in it: a reference may only lead to these
 * @throws Error when checking a value could take more than a bounded number of steps for each of its parts
 */
export function boundExpansion(root: JsonSchema, schemas: ReadonlySet<object>): void {
  let steps = 0
  const count = (): void => {
    if (++steps > MAX_STEPS) throw new Error(TOO_MUCH)
  }
  /** Steps for a value whose schema is not recursive; `recursive` when it is. */
  const costs = new Map<object, number | 'recursive' | 'open'>()

  const costOf = (schema: object, chain: number): number | 'recursive' => {
    const known = costs.get(schema)
    if (known === 'open') return 'recursive'
    if (known !== undefined) return known
    if (chain > MAX_CHAIN) throw new Error(`the references of the schema are chained over more than ${MAX_CHAIN} steps`)
    costs.set(schema, 'open')
    let cost: number | 'recursive' = 1
    for (const { to } of stepsOf(schema, root, schemas)) {
      count()
      const more = costOf(to, chain + 1)
      cost = cost === 'recursive' || more === 'recursive' ? 'recursive' : cost + more
    }
    if (cost !== 'recursive' && cost > MAX_COST) throw new Error(TOO_MUCH)
    costs.set(schema, cost)
    return cost
  }

  /** A recursive schema must recur in one way for each part of a value: two ways double with each level. */
  const checkRecursive = (schema: object): void => {
    const ways: { readonly part: string; readonly from: object }[] = []
    let cost = 0
    const add = (more: number): void => {
      cost += more
      count()
      if (cost > MAX_COST) throw new Error(TOO_MUCH)
    }
    const visit = (at: object, within: readonly object[]): void => {
      if (within.includes(at)) throw new Error('the schema refers to itself endlessly')
      add(1)
      for (const { to, part } of stepsOf(at, root, schemas)) {
        const more = costOf(to, 0)
        if (more !== 'recursive') add(more)
        else if (part === undefined) visit(to, [...within, at])
        else if (ways.some((it) => overlap(it, { part, from: at })))
          throw new Error('the schema refers to itself in two ways for the same part of a value')
        else ways.push({ part, from: at })
      }
    }
    visit(schema, [])
  }

  costOf(root, 0)
  for (const [schema, cost] of costs) if (cost === 'recursive') checkRecursive(schema)
}

const TOO_MUCH = 'the references of the schema make validating arguments too much work'

/** Whether both may refer to the same part. Within one schema, `*` excludes the named parts. */
function overlap(
  a: { readonly part: string; readonly from: object },
  b: { readonly part: string; readonly from: object },
): boolean {
  if (a.part === b.part) return true
  if (a.part[0] !== b.part[0] || a.from === b.from) return false
  return a.part.endsWith('*') || b.part.endsWith('*')
}

function* stepsOf(schema: object, root: JsonSchema, schemas: ReadonlySet<object>): Generator<Step> {
  const it = schema as Json
  for (const key of ['$ref', '$dynamicRef']) if (it[key] !== undefined) yield { to: targetOf(it[key], root, schemas) }
  for (const key of SAME) if (isObject(it[key])) yield { to: it[key] }
  for (const key of SAME_LISTS) for (const to of listOf(it[key])) yield { to }
  for (const to of namedIn(it.dependentSchemas)) yield { to: to[1] }
  for (const [name, to] of namedIn(it.properties)) yield { to, part: `.${name}=` }
  for (const [at, to] of listOf(it.prefixItems).entries()) yield { to, part: `[${at}` }
  for (const [key, part] of Object.entries(PARTS)) if (isObject(it[key])) yield { to: it[key], part }
}

const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
const namedIn = (value: unknown): [string, Json][] =>
  isObject(value) ? Object.entries(value).filter((it): it is [string, Json] => isObject(it[1])) : []

/** A reference is a place in the schema itself: `#`, or `#/` and its path. */
function targetOf(reference: unknown, root: JsonSchema, schemas: ReadonlySet<object>): object {
  const fault = new Error(
    `the reference ${JSON.stringify(reference)?.slice(0, 100)} leads to no schema in it (write "#/…")`,
  )
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) throw fault
  let at: unknown = root
  for (const part of reference.split('/').slice(1)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as Json)[name] : undefined
  }
  if (typeof at === 'boolean') return {}
  if (!isObject(at) || !schemas.has(at)) throw fault
  return at
}

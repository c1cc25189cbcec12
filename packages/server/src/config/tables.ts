// Tables whose names the file chooses, such as [models.NAME]. Each mistake is reported with its key in the file.

import { nearest } from '@oxbow/core/internal'
import type { z } from 'zod'
import { leaves } from './settings/schema.ts'

const SECRET_HEADER = /^(?:proxy-)?authorization$|^cookie$|key|token|secret/i

export interface TableRules {
  /** Settings whose values may be secrets, and are not repeated in messages. */
  readonly hidden: RegExp
  /** The message for an unknown key that looks like a secret. */
  readonly secret?: (key: string, at: string) => string | undefined
}

/** Reads one table; undefined when it contains mistakes, which are added to `problems`. */
export function tableReader<S extends z.ZodObject>(schema: S, rules: TableRules) {
  const allowed = new Map(leaves(schema, '').map((it) => [it.key, it.allowed]))
  const sections = [...new Set([...allowed.keys()].map((it) => it.split('.')[0]!))]
  const fieldsOf = (section: string): string[] =>
    [...allowed.keys()].flatMap((it) => (it.startsWith(`${section}.`) ? [it.slice(section.length + 1)] : []))

  const linesOf = (at: string, issue: z.core.$ZodIssue, table: unknown): string[] => {
    const path = issue.path.map(String)
    if (issue.code === 'unrecognized_keys') {
      const section = path.join('.')
      const known = section === '' ? sections : fieldsOf(section)
      return issue.keys.map((key) => {
        const whole = [at, ...path, key].join('.')
        const advice = rules.secret?.(key, at)
        if (advice !== undefined) return `${whole}: ${advice}`
        const close = nearest(key, known)
        return `${whole}: unknown setting${close === undefined ? `; allowed: ${known.join(', ')}` : `; did you mean ${close}?`}`
      })
    }
    const key = [path.join('.'), path[0] ?? ''].find((it) => allowed.has(it) || sections.includes(it)) ?? ''
    const may = allowed.get(key) ?? (key === '' ? 'a table' : `a table with ${fieldsOf(key).join(', ')}`)
    const value = path.reduce<unknown>((it, part) => (it as Record<string, unknown> | undefined)?.[part], table)
    const where = [at, ...path].join('.')
    if (value === undefined) return [`${where}: missing; allowed: ${may}`]
    const got = rules.hidden.test(path.join('.')) ? 'a value that is not shown' : JSON.stringify(value).slice(0, 100)
    return [`${where}: got ${got}; allowed: ${may}`]
  }

  return (at: string, table: unknown, problems: string[]): z.output<S> | undefined => {
    const parsed = schema.safeParse(table)
    if (parsed.success) return parsed.data
    problems.push(...new Set(parsed.error.issues.flatMap((issue) => linesOf(at, issue, table))))
    return undefined
  }
}

/** Secrets that are written into the file instead of a variable. `tables` are as in the file, before substitution. */
export function literalKeys(section: string, tables: unknown): string[] {
  if (typeof tables !== 'object' || tables === null) return []
  return Object.entries(tables).flatMap(([name, table]) =>
    Object.entries((table as { headers?: object } | null)?.headers ?? {}).flatMap(([header, value]) =>
      SECRET_HEADER.test(header) && typeof value === 'string' && !value.includes('${')
        ? [
            `${section}.${name}.headers.${header}: keys are not allowed in the file; write it as "\${VARIABLE}" and set the variable`,
          ]
        : [],
    ),
  )
}

// Models as the rest of the service sees them; each mistake is told with its key in the file.
import { nearest } from '@oxbow/core'
import type { ModelDefinition, ModelsConfig } from '@oxbow/models'
import type { z } from 'zod'
import { modelSettings } from './models-settings.ts'
import { leaves } from './schema.ts'

const NAME = /^[A-Za-z0-9_.-]{1,64}$/
const ALLOWED = new Map(leaves(modelSettings, '').map(({ key, allowed }) => [key, allowed]))
const SECTIONS = [...new Set([...ALLOWED.keys()].map((it) => it.split('.')[0]!))]
const SECRET_KEY = /^(?:api[-_]?)?(?:key|token|secret)$|^(?:api|access|auth)[-_]?(?:key|token)$/i
const SECRET_HEADER = /^(?:proxy-)?authorization$|^cookie$|key|token|secret/i
/** What may hold a secret is not repeated. */
const HIDDEN = /^(?:keyVariable|headers|baseUrl)\b/

/** From the settings `models` and `model`. Undefined when something in them is wrong; then `problems` tells what. */
export async function modelsConfig(
  given: unknown,
  standard: unknown,
  problems: string[],
): Promise<ModelsConfig | undefined> {
  const fallback = typeof standard === 'string' ? { default: standard } : {}
  // What is no table the schema has told already.
  if (typeof given !== 'object' || given === null) return fallback
  const before = problems.length
  const { aliases: givenAliases = {}, ...tables } = given as Readonly<Record<string, unknown>>
  const models: Record<string, ModelDefinition> = {}
  for (const [name, table] of Object.entries(tables)) {
    const definition = definitionOf(name, table, problems)
    if (definition !== undefined) models[name] = definition
  }
  const aliases = aliasesOf(givenAliases, problems)
  if (problems.length > before) return undefined
  const config = { models, aliases, ...fallback }
  const { modelProblems } = await import('@oxbow/models')
  problems.push(...modelProblems(config))
  return problems.length > before ? undefined : config
}

function definitionOf(name: string, table: unknown, problems: string[]): ModelDefinition | undefined {
  const at = `models.${name}`
  if (!NAME.test(name))
    problems.push(`models: ${JSON.stringify(name)} is no name; allowed: 1 to 64 of the characters A-Z a-z 0-9 _ . -`)
  const parsed = modelSettings.safeParse(table)
  if (!parsed.success) {
    const lines = parsed.error.issues.flatMap((issue) => linesOf(at, issue, table))
    problems.push(...new Set(lines))
    return undefined
  }
  const { timeouts, fallbacks, ...rest } = parsed.data
  return {
    ...rest,
    ...(timeouts !== undefined && {
      timeouts: {
        ...(timeouts.firstByte !== undefined && { firstByteMs: timeouts.firstByte }),
        ...(timeouts.idle !== undefined && { idleMs: timeouts.idle }),
        ...(timeouts.total !== undefined && { totalMs: timeouts.total }),
      },
    }),
    ...(fallbacks !== undefined && {
      fallbacks: fallbacks.map((it) => (typeof it === 'string' ? { model: it } : it)),
    }),
  } as ModelDefinition
}

function linesOf(at: string, issue: z.core.$ZodIssue, table: unknown): string[] {
  const path = issue.path.map(String)
  if (issue.code === 'unrecognized_keys') {
    const section = path.join('.')
    const known = [...ALLOWED.keys()].flatMap((it) =>
      section === '' ? [it.split('.')[0]!] : it.startsWith(`${section}.`) ? [it.slice(section.length + 1)] : [],
    )
    return issue.keys.map((key) => {
      const whole = [at, ...path, key].join('.')
      if (SECRET_KEY.test(key))
        return `${whole}: a key does not stand in the file; name the environment variable that holds it: ${at}.keyVariable`
      const close = nearest(key, known)
      return `${whole}: there is no such setting${close === undefined ? `; there are ${[...new Set(known)].join(', ')}` : `; did you mean ${close}?`}`
    })
  }
  const key = [path.join('.'), path[0] ?? ''].find((it) => ALLOWED.has(it) || SECTIONS.includes(it)) ?? ''
  const allowed = ALLOWED.get(key) ?? (key === '' ? 'a table' : `a table with ${fieldsOf(key).join(', ')}`)
  const value = path.reduce<unknown>((it, part) => (it as Record<string, unknown> | undefined)?.[part], table)
  const where = [at, ...path].join('.')
  if (value === undefined) return [`${where}: missing; allowed: ${allowed}`]
  const got = HIDDEN.test(path.join('.')) ? 'a value that is not shown' : JSON.stringify(value).slice(0, 100)
  return [`${where}: got ${got}; allowed: ${allowed}`]
}

const fieldsOf = (section: string): string[] =>
  [...ALLOWED.keys()].flatMap((it) => (it.startsWith(`${section}.`) ? [it.slice(section.length + 1)] : []))

function aliasesOf(given: unknown, problems: string[]): Record<string, string> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    problems.push('models.aliases: allowed: a table such as { default = "main", fast = "small" }')
    return {}
  }
  const entries = Object.entries(given)
  for (const [alias, name] of entries)
    if (typeof name !== 'string')
      problems.push(`models.aliases.${alias}: got ${JSON.stringify(name)}; allowed: the name of a model`)
  return Object.fromEntries(entries) as Record<string, string>
}

/** Keys that were written into the file: there is a variable for each. `models` as it stands there, nothing replaced yet. */
export function literalKeys(models: unknown): string[] {
  if (typeof models !== 'object' || models === null) return []
  return Object.entries(models).flatMap(([name, table]) =>
    Object.entries((table as { headers?: object } | null)?.headers ?? {}).flatMap(([header, value]) =>
      SECRET_HEADER.test(header) && typeof value === 'string' && !value.includes('${')
        ? [
            `models.${name}.headers.${header}: a key does not stand in the file; write it as "\${VARIABLE}" and set the variable`,
          ]
        : [],
    ),
  )
}

// The sources of settings, each flattened to `key → value`. An unknown key is a problem, reported with a suggestion.

import { nearest } from '@oxbow/core/internal'
import type { SettingKind } from './settings/kinds.ts'
import { SETTINGS } from './settings/schema.ts'
import { literalKeys } from './tables.ts'

export interface GivenSettings {
  readonly value: unknown
  /** For error messages. */
  readonly source: string
  /** False when the value may be a secret. */
  readonly shown: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

const KEYS = new Set(SETTINGS.map((it) => it.key))
const SECRETS = new Set(SETTINGS.filter((it) => it.kind === 'secret').map((it) => it.key))
const SECTIONS = new Set(
  SETTINGS.flatMap(({ key }) =>
    key
      .split('.')
      .slice(0, -1)
      .map((_, i, parts) => parts.slice(0, i + 1).join('.')),
  ),
)

const SECRET_NAME = /key|token|secret/i

/** Nested or dotted keys; undefined values are ignored. */
export function fromObject(
  data: Readonly<Record<string, unknown>>,
  source: string,
  problems: string[],
): Map<string, GivenSettings> {
  const found = new Map<string, GivenSettings>()
  const walk = (object: Readonly<Record<string, unknown>>, prefix: string): void => {
    for (const [name, value] of Object.entries(object)) {
      const key = `${prefix}${name}`
      if (value === undefined) continue
      if (KEYS.has(key)) found.set(key, { value, source, shown: !SECRETS.has(key) })
      else if (!SECTIONS.has(key))
        problems.push(
          SECRET_NAME.test(name)
            ? `${key}: unknown setting (in ${source}); set provider keys in the environment, such as OPENAI_API_KEY`
            : `${key}: unknown setting (in ${source})${suggest(key, [...KEYS, ...SECTIONS])}`,
        )
      else if (typeof value === 'object' && value !== null && !Array.isArray(value))
        walk(value as Record<string, unknown>, `${key}.`)
      else
        problems.push(
          `${key}: is a section, not a value (in ${source}); its settings are ${[...KEYS].filter((it) => it.startsWith(`${key}.`)).join(', ')}`,
        )
    }
  }
  walk(data, '')
  return found
}

/** A TOML document, with each `${VARIABLE}` in its strings substituted. */
export function fromToml(
  data: Readonly<Record<string, unknown>>,
  path: string,
  environment: Environment,
  problems: string[],
): Map<string, GivenSettings> {
  const found = fromObject(data, path, problems)
  for (const section of ['models', 'mcp']) problems.push(...literalKeys(section, found.get(section)?.value))
  return substituted(found, environment, problems)
}

/** Substitutes `${VARIABLE}` in all strings; `$${` stays as `${`. */
function substituted(
  found: Map<string, GivenSettings>,
  environment: Environment,
  problems: string[],
): Map<string, GivenSettings> {
  for (const [key, given] of found) {
    // A secret in its own variable is used as it is.
    if (SECRETS.has(key) && given.source.startsWith('the variable')) continue
    let isSubstituted = false
    let isMissing = false
    const replaced = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(replaced)
      if (isTable(value)) return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, replaced(it)]))
      if (typeof value !== 'string' || !value.includes('${')) return value
      return value.replace(/(\$?)\$\{([^}]*)\}/g, (whole, dollar: string, name: string) => {
        if (dollar !== '') return whole.slice(1)
        isSubstituted = true
        const replacement = environment[name]
        isMissing ||= replacement === undefined
        if (replacement === undefined)
          problems.push(
            `${key}: ${given.source} refers to \${${name}}, ${name === '' ? 'which has no name' : `but the environment variable ${name} is not set`}`,
          )
        return replacement ?? ''
      })
    }
    const value = replaced(given.value)
    // Each mistake is reported once: the incomplete string is not validated as well.
    if (isMissing) found.delete(key)
    else found.set(key, { value, source: given.source, shown: given.shown && !isSubstituted })
  }
  return found
}

// Dates are objects too.
const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !(value instanceof Date)

const SECTION_VARIABLE = /^OXBOW_(SERVER|STORE|AGENT|LOG|IDENTITY|TASKS|AGENT_PROTOCOL)_/

/**
 * Reads `OXBOW_…` variables. An unknown variable in one of our sections is a problem; others may belong to other
 * programs.
 */
export function fromEnvironment(environment: Environment, problems: string[]): Map<string, GivenSettings> {
  const found = new Map<string, GivenSettings>()
  for (const { key, variable, kind } of SETTINGS) {
    const text = environment[variable]
    // Compose files and shells set a variable to the empty string where they mean to leave it unset.
    if (text === undefined || text === '') continue
    found.set(key, { value: parsedAs(text, kind), source: `the variable ${variable}`, shown: kind !== 'secret' })
  }
  const variables = [...SETTINGS.map((it) => it.variable), 'OXBOW_CONFIG', 'OXBOW_PROFILE']
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('OXBOW_') || variables.includes(name)) continue
    // A variable two letters away from one of ours is a mistake, not another program's variable.
    if (SECTION_VARIABLE.test(name) || nearest(name, variables, 2) !== undefined)
      problems.push(`${name}: unknown variable${suggest(name, variables)}`)
  }
  return substituted(found, environment, problems)
}

/** Converts a variable's text to its kind; a text that does not fit is returned unchanged and fails validation. */
function parsedAs(text: string, kind: SettingKind): unknown {
  switch (kind) {
    case 'number':
      return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text
    case 'list':
      return text
        .split(',')
        .map((it) => it.trim())
        .filter((it) => it !== '')
    case 'tables':
      try {
        return JSON.parse(text)
      } catch {
        return text
      }
    default:
      return text
  }
}

function suggest(name: string, known: readonly string[]): string {
  const close = nearest(name, known)
  return close === undefined ? '' : `; did you mean ${close}?`
}

// The places that settings come from, each flattened to `key → value`. What is no setting is a problem with a suggestion.
import { nearest } from './nearest.ts'
import { SETTINGS } from './schema.ts'

export interface Given {
  readonly value: unknown
  /** For error messages. */
  readonly source: string
  /** False when the value may be a secret. */
  readonly shown: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

const KEYS = new Set(SETTINGS.map((it) => it.key))
const SECTIONS = new Set(
  SETTINGS.flatMap(({ key }) =>
    key
      .split('.')
      .slice(0, -1)
      .map((_, i, parts) => parts.slice(0, i + 1).join('.')),
  ),
)

/** Nested or dotted keys; an undefined value counts as not given. */
export function fromObject(
  data: Readonly<Record<string, unknown>>,
  source: string,
  problems: string[],
): Map<string, Given> {
  const found = new Map<string, Given>()
  const walk = (object: Readonly<Record<string, unknown>>, prefix: string): void => {
    for (const [name, value] of Object.entries(object)) {
      const key = `${prefix}${name}`
      if (value === undefined) continue
      if (KEYS.has(key)) found.set(key, { value, source, shown: true })
      else if (!SECTIONS.has(key))
        problems.push(`${key}: there is no such setting (in ${source})${suggest(key, [...KEYS, ...SECTIONS])}`)
      else if (typeof value === 'object' && value !== null && !Array.isArray(value))
        walk(value as Record<string, unknown>, `${key}.`)
      else
        problems.push(
          `${key}: is a section, not a value (in ${source}); it has ${[...KEYS].filter((it) => it.startsWith(`${key}.`)).join(', ')}`,
        )
    }
  }
  walk(data, '')
  return found
}

/** A TOML document, with `${VARIABLE}` in its strings replaced; `$${` stands for `${`. */
export function fromToml(
  data: Readonly<Record<string, unknown>>,
  path: string,
  environment: Environment,
  problems: string[],
): Map<string, Given> {
  const found = fromObject(data, path, problems)
  for (const [key, given] of found) {
    const { value } = given
    if (typeof value !== 'string' || !value.includes('${')) continue
    let substituted = false
    const text = value.replace(/(\$?)\$\{([^}]*)\}/g, (whole, dollar: string, name: string) => {
      if (dollar !== '') return whole.slice(1)
      substituted = true
      const replacement = environment[name]
      if (replacement === undefined)
        problems.push(
          `${key}: ${path} refers to \${${name}}, and the environment has no ${name === '' ? 'variable without a name' : name}`,
        )
      return replacement ?? ''
    })
    found.set(key, { value: text, source: path, shown: !substituted })
  }
  return found
}

const SECTION_VARIABLE = /^OXBOW_(SERVER|STORE|AGENT|LOG|IDENTITY)_/

/** `OXBOW_…` variables. One in a section of ours that is no setting is a problem; others may belong to somebody else. */
export function fromEnvironment(environment: Environment, problems: string[]): Map<string, Given> {
  const found = new Map<string, Given>()
  for (const { key, variable, kind } of SETTINGS) {
    const text = environment[variable]
    // Compose files and shells set variables to nothing where they mean not to set them.
    if (text === undefined || text === '') continue
    const number = kind === 'number' && text.trim() !== '' ? Number(text) : Number.NaN
    found.set(key, { value: Number.isNaN(number) ? text : number, source: `the variable ${variable}`, shown: true })
  }
  const variables = SETTINGS.map((it) => it.variable)
  for (const name of Object.keys(environment))
    if (SECTION_VARIABLE.test(name) && !variables.includes(name))
      problems.push(`${name}: there is no such variable${suggest(name, variables)}`)
  return found
}

function suggest(name: string, known: readonly string[]): string {
  const close = nearest(name, known)
  return close === undefined ? '' : `; did you mean ${close}?`
}

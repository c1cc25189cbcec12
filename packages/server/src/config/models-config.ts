// The models configuration that the rest of the service uses. Each mistake is reported with its key in the file.
import { defined } from '@oxbow/core/internal'
import type { ModelDefinition, ModelsConfig } from '@oxbow/models'
import { modelSettings } from './settings/models-settings.ts'
import { tableReader } from './tables.ts'

const NAME = /^[A-Za-z0-9_.-]{1,64}$/
const SECRET_KEY = /^(?:api[-_]?)?(?:key|token|secret)$|^(?:api|access|auth)[-_]?(?:key|token)$/i
const read = tableReader(modelSettings, {
  hidden: /^(?:keyVariable|headers|baseUrl)\b/,
  secret: (key, at) =>
    SECRET_KEY.test(key)
      ? `keys are not allowed in the file; name the environment variable that holds the key: ${at}.keyVariable`
      : undefined,
})

/** Reads the settings `models` and `model`. Undefined when they contain mistakes, which are added to `problems`. */
export async function modelsConfig(
  given: unknown,
  standard: unknown,
  problems: string[],
): Promise<ModelsConfig | undefined> {
  const fallback = typeof standard === 'string' ? { default: standard } : {}
  // The schema has already reported a value that is not a table.
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
    problems.push(
      `models: ${JSON.stringify(name)} is not a valid name; allowed: 1 to 64 of the characters A-Z a-z 0-9 _ . -`,
    )
  const parsed = read(at, table, problems)
  if (parsed === undefined) return undefined
  const { timeouts, fallbacks, ...rest } = parsed
  return {
    ...rest,
    ...(timeouts !== undefined && {
      timeouts: {
        ...defined({ firstByteMs: timeouts.firstByte, idleMs: timeouts.idle, totalMs: timeouts.total }),
      },
    }),
    ...(fallbacks !== undefined && {
      fallbacks: fallbacks.map((it) => (typeof it === 'string' ? { model: it } : it)),
    }),
  } as ModelDefinition
}

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

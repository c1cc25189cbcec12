// The HTTP reference, from the OpenAPI document that a running service answers.
import { agent, createEngine, memory, offline } from 'oxbow'
import { createLogger, createService, loadConfig } from 'oxbow/service'

interface Schema {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly description?: string
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly $ref?: string
}

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly parameters?: readonly {
    name: string
    in: string
    required?: boolean
    schema: Schema
    description?: string
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> }
  readonly responses: Readonly<
    Record<string, { description: string; content?: Readonly<Record<string, { schema: Schema }>> }>
  >
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** The document of a service with the settings of the profile `local`. */
export async function openApiDocument(): Promise<OpenApi> {
  const config = await loadConfig({ environment: {}, overrides: { server: { port: 0 }, log: { level: 'error' } } })
  const engine = createEngine({
    backend: memory(),
    agents: [agent({ name: 'helper', model: offline(), instructions: 'Help.' })],
  })
  const service = createService({ engine, config, log: createLogger(config.log) })
  const { url } = await service.listen()
  try {
    return (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi
  } finally {
    await service.close()
  }
}

/** @returns one Markdown page with every operation: its parameters, its body, its answers */
export function httpPage({ paths }: OpenApi): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => section(method.toUpperCase(), path, operation)),
  )
  if (operations.length === 0) throw new Error('the OpenAPI document has no operations')
  return `# HTTP API

<!-- Written by "npm run docs" from the OpenAPI document of the service. -->

Every endpoint of the service, from the document that it serves at \`/openapi.json\`. How to use them:
[the HTTP service](http.md), [tasks](tasks.md), [Agent Protocol](agent-protocol.md).

${operations.join('\n')}`
}

function section(method: string, path: string, operation: Operation): string {
  const { operationId, summary = '', parameters = [], requestBody, responses } = operation
  const parts = [
    `## ${method} ${path.replaceAll('{', '&#123;').replaceAll('}', '&#125;')} {#${operationId}}`,
    escaped(summary),
  ]
  if (parameters.length > 0)
    parts.push(
      table(
        ['parameter', 'in', 'type', ''],
        parameters.map((it) => [
          `\`${it.name}${it.required ? '' : '?'}\``,
          it.in,
          typeOf(it.schema),
          it.description ?? it.schema.description ?? '',
        ]),
      ),
    )
  for (const [type, { schema }] of Object.entries(requestBody?.content ?? {}))
    parts.push(`**Body** (\`${type}\`)`, fields(schema))
  parts.push(
    table(
      ['status', 'content', ''],
      Object.entries(responses).map(([status, { description, content = {} }]) => [
        status,
        Object.entries(content)
          .map(
            ([type, { schema }]) => `\`${type}\` ${schema.$ref === undefined ? typeOf(schema) : '[error](errors.md)'}`,
          )
          .join(' '),
        description,
      ]),
    ),
  )
  return `${parts.filter((it) => it !== '').join('\n\n')}\n`
}

function fields(schema: Schema): string {
  const { properties = {}, required = [] } = schema
  const rows = Object.entries(properties).map(([name, it]) => [
    `\`${name}${required.includes(name) ? '' : '?'}\``,
    typeOf(it),
    it.description ?? '',
  ])
  return rows.length === 0 ? typeOf(schema) : table(['field', 'type', ''], rows)
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows.map((row) => row.map(cell))].map((row) => `| ${row.join(' | ')} |`).join('\n')

const cell = (text: string): string => escaped(text).replaceAll('|', '\\|').replaceAll('\n', ' ')

const escaped = (text: string): string => text.replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;')

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum !== undefined) return schema.enum.map((it) => `\`${String(it)}\``).join(' ')
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives !== undefined) return [...new Set(alternatives.map(typeOf))].join(' or ')
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {})}`
  if (schema.properties !== undefined) return `\`{${Object.keys(schema.properties).join(', ')}}\``
  return String(schema.type ?? 'any')
}

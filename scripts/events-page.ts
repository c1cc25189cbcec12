// docs/reference/events.md, from the JSON Schema of the events.

interface Property {
  readonly type?: string | readonly string[]
  readonly const?: string
  readonly enum?: readonly string[]
  readonly description?: string
  readonly items?: Property
  readonly properties?: Readonly<Record<string, Property>>
  readonly anyOf?: readonly Property[]
  readonly oneOf?: readonly Property[]
}

interface EventSchema extends Property {
  readonly required?: readonly string[]
}

export function eventsPage(schema: object): string {
  const { oneOf = [], anyOf = [] } = schema as { oneOf?: EventSchema[]; anyOf?: EventSchema[] }
  const events = [...oneOf, ...anyOf]
  if (events.length === 0) throw new Error('the JSON Schema of the events has no alternatives')
  const sections = events.map(section)
  return `# Events

<!-- Written by "npm run generate" from packages/core/src/events/schema.ts. Do not edit. -->

A session is a journal of these events. Everything else is derived from it: the conversation, the state of a turn, the
frames of every protocol. Each stored event has \`seq\` (1, 2, 3 … without gaps) and \`at\` (milliseconds since 1970). The
same definition as JSON Schema: [schema/events.json](schema/events.json).

${sections.join('\n')}`
}

function section(event: EventSchema): string {
  const { properties = {}, required = [], description = '' } = event
  const rows = Object.entries(properties)
    .filter(([name]) => name !== 'type' && name !== 'seq' && name !== 'at')
    .map(([name, it]) => {
      const optional = required.includes(name) ? '' : '?'
      return `| \`${name}${optional}\` | ${typeOf(it)} | ${it.description ?? ''} |`
    })
  const table = rows.length === 0 ? '' : `\n| field | type | |\n|---|---|---|\n${rows.join('\n')}\n`
  return `## ${properties.type?.const ?? ''}\n\n${description}\n${table}`
}

function typeOf(it: Property): string {
  if (it.enum !== undefined) return it.enum.map((value) => `\`${value}\``).join(' ')
  const alternatives = it.anyOf ?? it.oneOf
  if (alternatives !== undefined)
    return alternatives.map((part) => part.properties?.type?.const ?? typeOf(part)).join(' or ')
  if (it.type === 'array') return `list of ${typeOf(it.items ?? {})}`
  if (it.type === 'object' && it.properties !== undefined) return `\`{${Object.keys(it.properties).join(', ')}}\``
  return String(it.type ?? 'any')
}

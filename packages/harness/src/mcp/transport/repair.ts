// Server answers, repaired to fit the protocol before the library validates them: its schemas accept a whole list or
// none of it, and real servers write `null` for "none", omit schemas, and list nameless entries. One bad entry costs
// that entry.

type Json = Readonly<Record<string, unknown>>

export interface Unusable {
  /** The server's name for it; without one, its place in the list. */
  readonly name: string
  readonly reason: string
}

export interface Repaired {
  readonly result: Json
  readonly unusable: readonly Unusable[]
}

const MAX_TEXT = 20_000

export const isJsonObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The result of a request, as close to the original as the protocol allows. Valid parts are unchanged.
 *
 * @param method of the answered request
 * @example repaired('tools/list', { tools: [{ name: 'look', inputSchema: null }], nextCursor: null })
 */
export function repaired(method: string, result: unknown): Repaired {
  if (!isJsonObject(result)) return { result: result as Json, unusable: [] }
  const given = withoutNulls(result)
  switch (method) {
    case 'tools/list':
      return list(given, 'tools', toolOf)
    case 'resources/list':
      return list(given, 'resources', (it) => withText(it, 'uri', { name: it.uri }))
    case 'resources/templates/list':
      return list(given, 'resourceTemplates', (it) => withText(it, 'uriTemplate', { name: it.uriTemplate }))
    case 'prompts/list':
      return list(given, 'prompts', promptOf)
    case 'resources/read':
      return list(given, 'contents', contentsOf)
    case 'prompts/get':
      return list(given, 'messages', messageOf)
    case 'tools/call':
      return whole(callOf(given))
    case 'initialize':
    case 'server/discover':
      return whole(greetingOf(given))
    default:
      return { result, unusable: [] }
  }
}

const whole = (result: Json): Repaired => ({ result, unusable: [] })

const withoutNulls = (value: Json): Json =>
  Object.values(value).includes(null)
    ? Object.fromEntries(Object.entries(value).filter(([, it]) => it !== null))
    : value

/** @param entryOf returns the reason as text when the entry cannot be used */
function list(result: Json, key: string, entryOf: (entry: Json) => Json | string): Repaired {
  const given = result[key]
  // The library refuses anything but a list.
  if (given !== undefined && !Array.isArray(given)) return whole(result)
  const entries: Json[] = []
  const unusable: Unusable[] = []
  for (const [at, entry] of (given ?? []).entries()) {
    const made = isJsonObject(entry) ? entryOf(withoutNulls(entry)) : 'it is not an object'
    if (typeof made !== 'string') entries.push(made)
    else {
      const name = isJsonObject(entry) && isText(entry.name) ? entry.name : `entry ${at + 1} of ${key}`
      unusable.push({ name, reason: made })
    }
  }
  return { result: { ...result, [key]: entries }, unusable }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''

function withText(entry: Json, key: string, defaults: Json = {}): Json | string {
  const { annotations, icons, ...rest } = entry
  if (!isText(entry[key])) return `it has no ${key}`
  return { ...defaults, ...onlyTexts(rest, ['name', 'title', 'description', 'mimeType']) }
}

/** Without those of these fields that are not text. */
const onlyTexts = (entry: Json, keys: readonly string[]): Json =>
  Object.fromEntries(Object.entries(entry).filter(([key, it]) => !keys.includes(key) || typeof it === 'string'))

const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']

/** The used fields of a tool. Results are not validated with its output schema, which could keep the process busy. */
function toolOf({ name, description, inputSchema, annotations, execution }: Json): Json | string {
  if (!isText(name)) return 'it has no name'
  const schema = schemaOf(inputSchema)
  if (typeof schema === 'string') return schema
  const hints = isJsonObject(annotations)
    ? Object.fromEntries(
        Object.entries(annotations).filter(([key, it]) => HINTS.includes(key) && typeof it === 'boolean'),
      )
    : {}
  if (isJsonObject(execution) && execution.taskSupport === 'required')
    return 'it runs only as a task, which is not supported'
  return {
    name,
    inputSchema: schema,
    ...(typeof description === 'string' && { description }),
    annotations: hints,
  }
}

/** Arguments are always an object, so a schema may omit that; a text is the reason why it cannot be used. */
function schemaOf(value: unknown): Json | string {
  if (value === undefined || value === null || value === true) return { type: 'object' }
  if (!isJsonObject(value)) return 'its input schema is not an object'
  const { $schema, ...schema } = withoutNulls(value)
  const { type = 'object', required, properties } = schema
  const allows = type === 'object' || (Array.isArray(type) && type.includes('object'))
  if (!allows) return `its input schema is for ${JSON.stringify(type)}, but arguments are an object`
  if (properties !== undefined && !isJsonObject(properties))
    return 'its input schema has properties that are not an object'
  if (required !== undefined && !(Array.isArray(required) && required.every((it) => typeof it === 'string')))
    return 'its input schema has a "required" that is not a list of names'
  return { ...schema, type: 'object', ...(typeof $schema === 'string' && { $schema }) }
}

function promptOf(entry: Json): Json | string {
  const { arguments: given, ...rest } = entry
  const prompt = withText(rest, 'name')
  if (typeof prompt === 'string' || !Array.isArray(given)) return prompt
  const usable = given.filter(isJsonObject).filter((it) => isText(it.name))
  return { ...prompt, arguments: usable.map((it) => onlyTexts(withoutNulls(it), ['title', 'description'])) }
}

function contentsOf(entry: Json): Json | string {
  const contents = withText(entry, 'uri')
  if (typeof contents === 'string') return contents
  return typeof entry.text === 'string' || typeof entry.blob === 'string' ? contents : 'it has neither text nor blob'
}

function messageOf(entry: Json): Json | string {
  const { role, content } = entry
  if (role !== 'user' && role !== 'assistant') return 'its role is neither user nor assistant'
  return { role, content: blockOf(typeof content === 'string' ? { type: 'text', text: content } : content) }
}

function callOf(result: Json): Json {
  const { content, structuredContent, ...rest } = result
  // A task or a question is not content.
  if (content === undefined && structuredContent === undefined)
    return rest.isError === undefined ? result : { ...rest, content: [] }
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content : []
  const extra = structuredContent === undefined || isJsonObject(structuredContent) ? [] : [asText(structuredContent)]
  return {
    ...rest,
    content: [...blocks.map(blockOf), ...extra],
    ...(isJsonObject(structuredContent) && { structuredContent }),
  }
}

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['data', 'mimeType'],
  audio: ['data', 'mimeType'],
  resource_link: ['uri', 'name'],
}

/** A block of an unknown kind, or without required fields, is shown as written. */
function blockOf(block: unknown): Json {
  if (!isJsonObject(block)) return asText(block)
  const { annotations, icons, ...given } = withoutNulls(block)
  const { type, resource } = given
  if (type === 'resource' && isJsonObject(resource)) {
    const contents = contentsOf(withoutNulls(resource))
    return typeof contents === 'string' ? asText(block) : { ...given, resource: contents }
  }
  const fields = typeof type === 'string' && Object.hasOwn(FIELDS, type) ? FIELDS[type]! : undefined
  if (fields === undefined || !fields.every((it) => typeof given[it] === 'string')) return asText(block)
  return onlyTexts(given, ['title', 'description', 'mimeType'])
}

const asText = (value: unknown): Json => ({
  type: 'text',
  text: (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).slice(0, MAX_TEXT),
})

/** What a server reports about itself when the connection opens. */
function greetingOf(result: Json): Json {
  const { capabilities, serverInfo, instructions, ...rest } = result
  const own = isJsonObject(serverInfo) ? withoutNulls(serverInfo) : {}
  const info = { name: isText(own.name) ? own.name : 'unnamed', version: isText(own.version) ? own.version : 'unknown' }
  const known = isJsonObject(capabilities)
    ? Object.fromEntries(
        Object.entries(capabilities).flatMap(([key, it]) =>
          isJsonObject(it) ? [[key, withoutNulls(it)]] : it === true ? [[key, {}]] : [],
        ),
      )
    : {}
  return { ...rest, capabilities: known, ...(serverInfo !== undefined && { serverInfo: info }) }
}

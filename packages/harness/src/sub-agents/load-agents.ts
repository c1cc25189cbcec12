// Agents declared in Markdown: front matter holds their settings, the text below it is their instructions.
import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { text as wholeText } from 'node:stream/consumers'
import {
  type Agent,
  type AgentDefinition,
  agent,
  type Capability,
  type Middleware,
  type Model,
  OxbowError,
  type Tool,
} from '@oxbow/core'
import { defined, MODES, nearest } from '@oxbow/core/internal'
import type { SubAgent } from './sub-agent.ts'

export interface LoadAgentsOptions {
  /** By the alias that files use; `default` is for files without a model. */
  readonly models: Readonly<Record<string, Model>>
  /** The tools that files may name. */
  readonly tools?: readonly Tool[]
  /** Files may also name their tools; the agent then also has their prompt, hooks and review. */
  readonly capabilities?: readonly Capability[]
  /** Of all these agents. */
  readonly middleware?: readonly Middleware[]
}

const KEYS = ['name', 'description', 'tools', 'model', 'mode', 'maxSteps', 'allow', 'ask', 'deny']
const FRONT_MATTER = /^---[ \t]*\r?\n([\s\S]*?)^---[ \t]*(?:\r?\n|$)/m
const MAX_BYTES = 256 * 1024

/**
 * Reads every `*.md` of a folder as an agent. Required: `name`, `description`, and instructions below the front matter.
 * Optional: `tools` (a list of names), `model` (an alias), `mode`, `maxSteps`, and the rules `allow`, `ask`, `deny`.
 *
 * @example
 * const readers = await loadAgents('agents', { models: { default: model }, tools: [readFile, grep] })
 * @throws OxbowError `agent_file_invalid`, naming file and line: unknown keys, tools, models or modes, or two of one
 * name
 */
export async function loadAgents(folder: string, options: LoadAgentsOptions): Promise<SubAgent[]> {
  const names = await readdir(folder).catch((error: Error) => {
    throw new OxbowError('agent_file_invalid', `The folder of agents ${folder} cannot be read: ${error.message}`)
  })
  const found: SubAgent[] = []
  // Loaded for agents in Markdown only.
  const yaml = await import('yaml')
  for (const name of names.filter((it) => it.endsWith('.md')).sort()) {
    const path = join(folder, name)
    const read = agentOf(path, await textIn(path), options, yaml)
    const other = found.find((it) => it.agent.name === read.agent.name)
    if (other !== undefined)
      throw new OxbowError(
        'agent_file_invalid',
        `two agents are named ${read.agent.name}: ${other.from} and ${read.from}. Rename one.`,
      )
    found.push(read)
  }
  return found
}

/** Reads at most the allowed length. A pipe, which may never end, is refused. */
async function textIn(path: string): Promise<string> {
  const fault = (what: string) => new OxbowError('agent_file_invalid', `${path}: ${what}`)
  const unreadable = (error: Error) => fault(`it cannot be read: ${error.message}`)
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: Error) => {
    throw unreadable(error)
  })
  try {
    if (!(await file.stat()).isFile()) throw fault('it is not a file')
    return await wholeText(file.createReadStream({ end: MAX_BYTES, autoClose: false }))
  } catch (error) {
    throw error instanceof OxbowError ? error : unreadable(error as Error)
  } finally {
    await file.close()
  }
}

function agentOf(
  path: string,
  text: string,
  options: LoadAgentsOptions,
  { isMap, isScalar, LineCounter, parseDocument }: typeof import('yaml'),
): SubAgent {
  const { models, capabilities = [], middleware = [] } = options
  const tools = [...(options.tools ?? []), ...capabilities.flatMap((it) => it.tools ?? [])]
  const fault = (line: number, what: string) => new OxbowError('agent_file_invalid', `${path}:${line}: ${what}`)
  if (Buffer.byteLength(text) > MAX_BYTES) throw fault(1, `it is longer than ${MAX_BYTES} bytes`)
  const clean = text.replace(/^\uFEFF/, '')
  const matter = FRONT_MATTER.exec(clean)
  if (matter === null || matter.index !== 0)
    throw fault(1, 'it must begin with front matter: a line of ---, keys such as name and description, a line of ---')
  const lines = new LineCounter()
  const yaml = parseDocument(matter[1]!, { lineCounter: lines, schema: 'core', uniqueKeys: true, prettyErrors: false })
  /** The front matter begins in the second line of the file. */
  const lineAt = (offset: number | undefined): number => (offset === undefined ? 1 : lines.linePos(offset).line + 1)
  const [problem] = [...yaml.errors, ...yaml.warnings]
  if (problem !== undefined) throw fault(lineAt(problem.pos[0]), problem.message)
  if (!isMap(yaml.contents)) throw fault(2, 'the front matter must be keys and values')

  const lineOf = new Map<string, number>()
  for (const { key } of yaml.contents.items) {
    const name = isScalar(key) ? String(key.value) : ''
    const line = isScalar(key) ? lineAt(key.range?.[0]) : 2
    if (!KEYS.includes(name)) throw fault(line, `unknown key ${JSON.stringify(name)}${guess(name, KEYS)}`)
    lineOf.set(name, line)
  }
  let values: Record<string, unknown>
  try {
    values = yaml.toJS({ maxAliasCount: 0 }) as Record<string, unknown>
  } catch (error) {
    throw fault(2, `write values out, without YAML's aliases: ${(error as Error).message}`)
  }
  const lineFor = (key: string): number => lineOf.get(key) ?? 1

  const textOf = (key: string): string | undefined => {
    const value = values[key]
    if (value === undefined || (typeof value === 'string' && value.trim() !== '')) return value as string | undefined
    throw fault(lineFor(key), `${key} must be a text`)
  }
  const listOf = (key: string): string[] => {
    const value = values[key] ?? []
    if (Array.isArray(value) && value.every((it) => typeof it === 'string')) return value
    throw fault(lineFor(key), `${key} must be a list of texts`)
  }
  const need = (key: string): string => {
    const value = textOf(key)
    if (value === undefined) throw fault(lineFor(key), `${key} is missing`)
    return value
  }

  const name = need('name')
  const description = need('description')
  const instructions = clean.slice(matter[0].length).trim()
  if (instructions === '')
    throw fault(clean.slice(0, matter[0].length).split('\n').length, 'instructions are missing below the front matter')
  const alias = textOf('model') ?? 'default'
  const model = Object.hasOwn(models, alias) ? models[alias] : undefined
  if (model === undefined)
    throw fault(lineFor('model'), `unknown model ${JSON.stringify(alias)}${guess(alias, Object.keys(models))}`)
  const used = listOf('tools').map((it): Tool => {
    const known = tools.find((tool) => tool.name === it)
    if (known === undefined)
      throw fault(
        lineFor('tools'),
        `unknown tool ${JSON.stringify(it)}${guess(
          it,
          tools.map((tool) => tool.name),
        )}`,
      )
    return known
  })
  const mode = textOf('mode') as AgentDefinition['mode']
  if (mode !== undefined && !MODES.includes(mode))
    throw fault(lineFor('mode'), `unknown mode ${JSON.stringify(mode)}${guess(mode, MODES)}`)
  const { maxSteps } = values
  if (maxSteps !== undefined && !(Number.isInteger(maxSteps) && (maxSteps as number) > 0))
    throw fault(lineFor('maxSteps'), 'maxSteps must be a whole number above 0')

  const definition: AgentDefinition = {
    name,
    model,
    instructions,
    tools: used.filter((it) => options.tools?.includes(it)),
    capabilities: capabilities.flatMap((it) => narrowed(it, used)),
    middleware,
    allow: listOf('allow'),
    ask: listOf('ask'),
    deny: listOf('deny'),
    ...defined({ mode }),
    ...(maxSteps !== undefined && { limits: { maxSteps: maxSteps as number } }),
  }
  return { description, agent: defineAgent(definition, (what) => fault(lineFor('name'), what)), from: path }
}

/** The capability parts that belong to an agent's tools. */
function narrowed({ name, tools = [], prompt = [], middleware = [], review }: Capability, used: Tool[]): Capability[] {
  const own = tools.filter((it) => used.includes(it))
  return own.length === 0 ? [] : [{ name, tools: own, prompt, middleware, ...(review && { review }) }]
}

function defineAgent(definition: AgentDefinition, fault: (what: string) => OxbowError): Agent {
  try {
    return agent(definition)
  } catch (error) {
    throw error instanceof OxbowError ? fault(error.message) : error
  }
}

function guess(given: string, known: readonly string[]): string {
  const near = nearest(given, known)
  const all = known.length === 0 ? 'none are known' : `known: ${known.join(', ')}`
  return near === undefined ? `; ${all}` : `: did you mean ${near}? (${all})`
}

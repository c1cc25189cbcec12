// From a ModelRequest to the JSON text of a request in Anthropic's messages format.
import type { Message, ModelRequest, ToolSpec } from '@oxbow/core'
import { repairHistory } from '../history/repair-history.ts'
import { inputSchema, offerable } from '../requests/dialect.ts'
import { perObject, sortedByName, wireJson, wireToolName } from '../requests/write.ts'
import { type AnthropicContent, contentOf, type Replay } from './content.ts'
import { answerTool, nativeSchema } from './output.ts'
import { type AnthropicQuirks, refusesSampling } from './quirks.ts'

export interface Written {
  readonly body: string
  /** The tool whose call is the answer. */
  readonly answerTool?: string
}

export interface AnthropicWriterOptions {
  /** The provider's name for the model. */
  readonly model: string
  /** The id that signs its messages. */
  readonly id: string
  readonly promptCache: boolean
  readonly quirks: AnthropicQuirks
}

const DEFAULT_MAX_TOKENS = 32_000

/**
 * Makes the function that serialises requests for one model. The text of each message is cached by message object, so
 * that a long history costs a join and not a serialisation.
 */
export function messagesRequestWriter(options: AnthropicWriterOptions): (request: ModelRequest) => Written {
  const { model, id, promptCache, quirks } = options
  const replay: Replay = { model: id, unsigned: quirks.unsignedThinking === true }
  const contentWithThinking = perObject((message: Message) => contentOf(message, replay))
  const contentWithout = perObject((message: Message) => contentOf(message, undefined))
  const toolText = perObject((tool: ToolSpec) =>
    // The format requires the type, even for tools without parameters.
    wireJson({
      name: wireToolName(tool.name),
      description: tool.description,
      input_schema: inputSchema(tool),
    }),
  )
  // A tool's schema has no such limits, so the answer's schema is sent unchanged.
  const answerText = ({ name, description, input }: ToolSpec) =>
    wireJson({ name, description, input_schema: { type: 'object', ...input } })
  const schemaOf = perObject(nativeSchema)
  const mark = promptCache ? marked : (text: string) => text

  return (request) => {
    const { tools: furtherTools, thinking: wanted, ...further } = request.options ?? {}
    const { messages } = repairHistory(request.messages, { userFirst: true })
    let thinking = wanted as Thinking | undefined
    let groups = groupsOf(messages, thinking?.type === 'disabled' ? contentWithout : contentWithThinking)
    // With a thinking budget, the API requires that the calls being answered begin with this model's thinking. After
    // calls by another model this request omits thinking.
    if (thinking?.type === 'enabled' && endsWithForeignCalls(groups)) {
      thinking = { type: 'disabled' }
      groups = groupsOf(messages, contentWithout)
    }

    const output = outputOf(request, quirks, schemaOf)
    const answer = output?.tool
    const head = wireJson({ model, stream: true, ...further, ...settingsOf(request, options, thinking, output) })
    const tools = [...offerable(sortedByName(request.tools), id).map(toolText), ...(answer ? [answerText(answer)] : [])]
    if (tools.length > 0) tools.push(mark(tools.pop()!))
    if (Array.isArray(furtherTools)) tools.push(...furtherTools.map(wireJson))
    const parts = [head.slice(0, -1)]
    // Calls in the history require tools in the request, even in a last step that offers none.
    if (tools.length === 0 && groups.some((group) => group.hasResults)) {
      tools.push(...toolsOf(messages).map(toolText))
      parts.push('"tool_choice":{"type":"none"}')
    }
    if (tools.length > 0) parts.push(`"tools":[${tools.join(',')}]`)
    if (request.system.trim() !== '') {
      parts.push(`"system":[${mark(wireJson({ type: 'text', text: request.system }))}]`)
    }
    // The last two: the newest is written to the cache; the one before was already, and is still found later.
    const users = groups.filter((group) => group.role === 'user').slice(-2)
    const texts = groups.map((group) => {
      const content = group.texts.join(',')
      return `{"role":"${group.role}","content":[${users.includes(group) ? mark(content) : content}]}`
    })
    return {
      body: `${parts.join(',')},"messages":[${texts.join(',')}]}`,
      ...(answer ? { answerTool: answer.name } : {}),
    }
  }
}

interface Thinking {
  readonly type?: unknown
}

interface Group {
  readonly role: 'user' | 'assistant'
  readonly texts: string[]
  readonly startsWithThinking: boolean
  hasResults: boolean
}

/** Roles alternate: adjacent messages of one role become one message. */
function groupsOf(messages: readonly Message[], contentOf: (message: Message) => AnthropicContent): Group[] {
  const groups: Group[] = []
  for (const message of messages) {
    const { text, startsWithThinking } = contentOf(message)
    if (text === '') continue
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    let group = groups.at(-1)
    if (group?.role !== role) {
      group = { role, texts: [], startsWithThinking, hasResults: false }
      groups.push(group)
    }
    group.texts.push(text)
    if (message.role === 'tool') group.hasResults = true
  }
  return groups
}

/** Declarations of the tools that were called. */
function toolsOf(messages: readonly Message[]): readonly ToolSpec[] {
  const calls = messages.flatMap(({ blocks }) => blocks.filter((block) => block.type === 'call'))
  const names = new Set(calls.map((call) => wireToolName(call.tool)))
  return sortedByName([...names].map((name) => ({ name, description: 'Not offered now.', input: {} })))
}

const endsWithForeignCalls = (groups: readonly Group[]): boolean =>
  groups.at(-1)?.hasResults === true && groups.at(-2)?.startsWithThinking === false

/**
 * Puts the cache mark into the last block of serialised blocks. That block is never reasoning, which cannot be marked.
 */
const marked = (blocks: string): string => `${blocks.slice(0, -1)},"cache_control":{"type":"ephemeral"}}`

interface Output {
  /** The schema in the API's subset, or the tool that replaces it. */
  readonly schema?: object
  readonly tool?: ToolSpec
}

function outputOf(
  { output, tools }: ModelRequest,
  quirks: AnthropicQuirks,
  schemaOf: (schema: Readonly<Record<string, unknown>>) => object | undefined,
): Output | undefined {
  if (output === undefined) return undefined
  const schema = quirks.output === 'tool' ? undefined : schemaOf(output.schema)
  return schema === undefined ? { tool: answerTool(output, tools) } : { schema }
}

function settingsOf(
  request: ModelRequest,
  { model, quirks }: AnthropicWriterOptions,
  thinking: Thinking | undefined,
  output: Output | undefined,
): Record<string, unknown> {
  const { options = {}, temperature, maxOutputTokens } = request
  const thinks = thinking?.type === 'enabled' || thinking?.type === 'adaptive'
  const toolChoice = toolChoiceOf(request, output, thinks || refusesSampling(model))
  return {
    max_tokens: maxOutputTokens ?? options.max_tokens ?? quirks.maxTokens ?? DEFAULT_MAX_TOKENS,
    ...(thinking === undefined ? {} : { thinking }),
    // With thinking only the default temperature is accepted.
    ...(temperature === undefined || thinks || refusesSampling(model) ? {} : { temperature }),
    ...(toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...(output?.schema === undefined
      ? {}
      : {
          output_config: {
            ...(options.output_config as object),
            format: { type: 'json_schema', schema: output.schema },
          },
        }),
  }
}

function toolChoiceOf(
  { toolChoice, tools }: ModelRequest,
  output: Output | undefined,
  refusesForce: boolean,
): object | undefined {
  if (typeof toolChoice === 'object' && tools.length > 0) return { type: 'tool', name: wireToolName(toolChoice.tool) }
  if (output?.tool && toolChoice !== 'required') {
    if (refusesForce) return { type: 'auto' }
    return tools.length === 0 || toolChoice === 'none' ? { type: 'tool', name: output.tool.name } : { type: 'any' }
  }
  if (toolChoice === undefined || (tools.length === 0 && !output?.tool)) return undefined
  return { type: toolChoice === 'required' ? 'any' : toolChoice }
}

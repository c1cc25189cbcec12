// The driver for Anthropic's messages format, streamed.
import type { Model } from '@oxbow/core'
import { fieldsOf, flag } from '@oxbow/core/internal'
import { namingTools } from '../failures/tool-errors.ts'
import { offerable } from '../requests/dialect.ts'
import { sortedByName } from '../requests/write.ts'
import { type DriverOptions, endpointOf, type Format, withOptions } from '../wire/endpoint.ts'
import { exchange } from '../wire/exchange.ts'
import { ANTHROPIC_QUIRKS, type AnthropicQuirks } from './quirks.ts'
import { assembleMessage } from './reply.ts'
import { messagesRequestWriter } from './request.ts'

export interface AnthropicOptions extends DriverOptions {
  /** Marks tools, system and the newest messages for the provider's prompt cache. Default true. */
  readonly promptCache?: boolean
  readonly quirks?: AnthropicQuirks
}

const format: Format = {
  of: 'anthropic()',
  name: "Anthropic's messages",
  path: '/messages',
  headers: (apiKey): Record<string, string> => ({
    'anthropic-version': '2023-06-01',
    ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
  }),
}

/**
 * A model behind an endpoint that speaks Anthropic's messages. Set thinking with `options.thinking` and beta features
 * with the header `anthropic-beta`. Throws an `OxbowError` with code `model_config` when the address or the key is
 * invalid; `generate` rejects with a `ModelError` like that of `openaiChat`.
 *
 * @example
 * const model = anthropic({
 *   provider: 'anthropic',
 *   model: 'claude-sonnet-5',
 *   baseUrl: 'https://api.anthropic.com/v1',
 *   apiKey,
 *   options: { thinking: { type: 'adaptive' } },
 * })
 */
export function anthropic(options: AnthropicOptions): Model {
  const endpoint = endpointOf(options, format, { promptCache: flag, quirks: fieldsOf(ANTHROPIC_QUIRKS) })
  const { provider, model, promptCache = true, quirks = {} } = options
  const id = options.id ?? `${provider}:${model}`
  const writeRequest = messagesRequestWriter({ model, id, promptCache, quirks })
  return {
    id,
    checkTools: (tools) => void offerable(tools, id),
    generate: async (request, { signal, onDelta }) => {
      const { body, answerTool } = writeRequest(withOptions(request, options.options))
      const { calls: maxCalls } = endpoint.limits
      const assembler = assembleMessage({ request, model, answerTool, onDelta, maxCalls })
      return namingTools(exchange(endpoint, body, assembler, signal), offerable(sortedByName(request.tools), id))
    },
  }
}

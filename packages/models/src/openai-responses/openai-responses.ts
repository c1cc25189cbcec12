// The driver for OpenAI's responses format, streamed.
import type { Model } from '@oxbow/core'
import { flag } from '@oxbow/core/internal'
import { namingTools } from '../failures/tool-errors.ts'
import { offerable } from '../requests/dialect.ts'
import { sortedByName } from '../requests/write.ts'
import { bearer, type DriverOptions, endpointOf, type Format, withOptions } from '../wire/endpoint.ts'
import { exchange } from '../wire/exchange.ts'
import { assembleResponse } from './reply.ts'
import { responsesRequestWriter } from './request.ts'

export interface OpenAiResponsesOptions extends DriverOptions {
  /**
   * Whether the model reasons: its encrypted reasoning is then requested, and sent back in the next request. A model
   * that does not reason refuses that option. Default: by its name, false for `gpt-3…`, `gpt-4…` and chat models.
   */
  readonly reasoning?: boolean
}

const format: Format = { of: 'openaiResponses()', name: "OpenAI's responses", path: '/responses', headers: bearer }

/**
 * A model behind OpenAI's responses endpoint, or Azure's at `https://RESOURCE.openai.azure.com/openai/v1`. The provider
 * stores nothing. Throws an `OxbowError` with code `model_config` when the address or the key is invalid; `generate`
 * rejects with a `ModelError` like that of `openaiChat`.
 *
 * @example
 * const model = openaiResponses({ provider: 'openai', model: 'gpt-5', baseUrl: 'https://api.openai.com/v1', apiKey })
 */
export function openaiResponses(options: OpenAiResponsesOptions): Model {
  const endpoint = endpointOf(options, format, { reasoning: flag })
  const { provider, model, reasoning = !/^(gpt-[34]|chatgpt|gpt-[\d.]+-chat)/.test(model) } = options
  const id = options.id ?? `${provider}:${model}`
  const writeRequest = responsesRequestWriter({ model, id, reasoning })
  return {
    id,
    checkTools: (tools) => void offerable(tools, id),
    generate: async (request, { signal, onDelta }) => {
      const { calls: maxCalls } = endpoint.limits
      const assembler = assembleResponse({ request, model, onDelta, maxCalls })
      const answer = exchange(endpoint, writeRequest(withOptions(request, options.options)), assembler, signal)
      return namingTools(answer, offerable(sortedByName(request.tools), id))
    },
  }
}

// The driver for the format that most providers speak: OpenAI chat completions, streamed.
import type { Model } from '@oxbow/core'
import { fieldsOf } from '@oxbow/core/internal'
import { namingTools } from '../failures/tool-errors.ts'
import { offerable } from '../requests/dialect.ts'
import { sortedByName } from '../requests/write.ts'
import { bearer, type DriverOptions, endpointOf, type Format, withOptions } from '../wire/endpoint.ts'
import { exchange } from '../wire/exchange.ts'
import { CHAT_QUIRKS, type Quirks } from './quirks.ts'
import { assembleReply } from './reply.ts'
import { chatRequestWriter } from './request.ts'

export interface OpenAiChatOptions extends DriverOptions {
  readonly quirks?: Quirks
}

const format: Format = {
  of: 'openaiChat()',
  name: "OpenAI's chat completions",
  path: '/chat/completions',
  headers: bearer,
}

/**
 * A model behind an OpenAI-compatible chat-completions endpoint. Throws an `OxbowError` with code `model_config` when
 * the address or the key is invalid.
 *
 * `generate` rejects with a `ModelError` only: `auth`, `rate_limited` (with `retryAfterMs` where the provider sends
 * it), `overloaded`, `context_overflow`, `invalid_request`, `provider_error`, `stream_cut`, `first_byte_timeout`,
 * `idle_timeout`, `total_timeout` and `cancelled`. From the first fragment on its `partial` holds the partial answer.
 *
 * @example
 * const model = openaiChat({ provider: 'openai', model: 'gpt-5', baseUrl: 'https://api.openai.com/v1', apiKey })
 * const reply = await model.generate(request, { signal, onDelta: (delta) => console.log(delta) })
 */
export function openaiChat(options: OpenAiChatOptions): Model {
  const endpoint = endpointOf(options, format, { quirks: fieldsOf(CHAT_QUIRKS) })
  const { provider, model, quirks = {} } = options
  const { calls } = endpoint.limits
  const id = options.id ?? `${provider}:${model}`
  const writeRequest = chatRequestWriter(model, quirks, id)
  return {
    id,
    checkTools: (tools) => void offerable(tools, id),
    generate: async (request, { signal, onDelta }) =>
      namingTools(
        exchange(
          endpoint,
          writeRequest(withOptions(request, options.options)),
          assembleReply(request, model, quirks, onDelta, calls),
          signal,
        ),
        offerable(sortedByName(request.tools), id),
      ),
  }
}

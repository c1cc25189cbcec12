// Each provider reports a conversation that is too long differently. The texts are real, from provider documentation
// and public reports; similar messages must not trigger compaction.
import { expect, test } from 'vitest'
import { httpError } from './provider-errors.ts'

const context = {
  provider: 'test',
  model: 'm',
  baseUrl: 'http://localhost/v1',
  path: '/chat/completions',
  format: 'chat',
  scrub: (it: string) => it,
}
const codeOf = (status: number, body: unknown): string =>
  httpError(context, { status, header: () => undefined }, typeof body === 'string' ? body : JSON.stringify(body)).code
const said = (message: string, code?: string) => ({ error: { message, ...(code !== undefined && { code }) } })
const anthropicSaid = (message: string, type = 'invalid_request_error') => ({
  type: 'error',
  error: { type, message },
})

test.each<[string, number, unknown]>([
  [
    'OpenAI chat',
    400,
    said(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 128017 tokens. Please reduce the length of the messages.",
      'context_length_exceeded',
    ),
  ],
  [
    'OpenAI chat, with the answer',
    400,
    said(
      "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; 5 for the completion). Please reduce your prompt; or completion length.",
    ),
  ],
  [
    'OpenAI responses',
    400,
    said(
      'Your input exceeds the context window of this model. Please adjust your input and try again.',
      'context_length_exceeded',
    ),
  ],
  [
    'Azure',
    400,
    said(
      "This model's maximum context length is 16384 tokens. However, you requested 17000 tokens",
      'context_length_exceeded',
    ),
  ],
  ['Anthropic', 400, anthropicSaid('prompt is too long: 213462 tokens > 200000 maximum')],
  [
    'Anthropic, with the answer',
    400,
    anthropicSaid(
      'input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    ),
  ],
  ['Anthropic, bytes', 413, anthropicSaid('Request exceeds the maximum size', 'request_too_large')],
  ['Bedrock', 400, { message: 'Input is too long for requested model.' }],
  [
    'Bedrock, Llama',
    400,
    { message: "This model's maximum context length is 8192 tokens. Please reduce the length of the prompt" },
  ],
  ['Google', 400, said('The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).')],
  ['Vertex', 400, said('The input token count (1300000) exceeds the maximum number of tokens allowed (1048576).')],
  [
    'DeepSeek',
    400,
    said(
      "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
      'invalid_request_error',
    ),
  ],
  ['DashScope', 400, said('Range of input length should be [1, 983616]', 'invalid_parameter_error')],
  [
    'DashScope, behind others',
    400,
    said('<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]'),
  ],
  [
    'Moonshot',
    400,
    said(
      'Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)',
      'invalid_request_error',
    ),
  ],
  ['Zhipu', 400, said('Prompt 超长', '1261')],
  ['Z.ai', 400, said('Prompt exceeds max length', '1261')],
  ['Z.ai, as a reason', 400, said('model_context_window_exceeded')],
  ['MiniMax', 400, said('invalid params, context window exceeds limit (2013)')],
  ['Ark', 400, said('Total tokens of image and text exceed max message tokens. Request id: 021')],
  ['Ark, Doubao', 400, said('Input length 140000 exceeds the maximum length 131072')],
  ['Qianfan', 400, said('the max input characters is 24000, prompt tokens too long', '336007')],
  [
    'SiliconFlow',
    400,
    { code: 20015, message: 'length of prompt_tokens (70000) must be less than max_seq_len (32768).' },
  ],
  [
    'OpenRouter',
    400,
    said(
      "This endpoint's maximum context length is 131072 tokens. However, you requested about 132463 tokens (1463 of text input, 131000 in the output). Please reduce the length of either one",
    ),
  ],
  ['OpenRouter, Poolside', 400, said('Input length 140000 exceeds the maximum allowed input length of 131072 tokens.')],
  ['Groq', 400, said('Please reduce the length of the messages or completion.', 'context_length_exceeded')],
  ['Groq, bytes', 413, said('Request Entity Too Large', 'request_too_large')],
  [
    'Mistral',
    400,
    {
      object: 'error',
      message: 'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_error',
    },
  ],
  [
    'xAI',
    400,
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
  ],
  ['Together', 422, said("The input (210000 tokens) is longer than the model's context length (200000 tokens).")],
  [
    'Together, both',
    422,
    said(
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 32000 `inputs` tokens and 1000 `max_new_tokens`',
    ),
  ],
  ['Fireworks', 400, said('The prompt is too long: 140000, model maximum context length: 131071')],
  ['Cohere', 400, { message: 'too many tokens: total number of tokens in the prompt cannot exceed 4081' }],
  [
    'GitHub Copilot',
    400,
    said('prompt token count of 135000 exceeds the limit of 128000', 'model_max_prompt_tokens_exceeded'),
  ],
  [
    'vLLM',
    400,
    {
      object: 'error',
      message:
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
      code: 400,
    },
  ],
  [
    'vLLM, prompt',
    400,
    {
      object: 'error',
      message:
        'The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.',
      code: 400,
    },
  ],
  [
    'SGLang',
    400,
    {
      object: 'error',
      message: "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
      code: 400,
    },
  ],
  [
    'llama.cpp',
    400,
    {
      error: {
        code: 400,
        message: 'the request exceeds the available context size, try increasing it',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 9000,
        n_ctx: 4096,
      },
    },
  ],
  [
    'LM Studio',
    400,
    {
      error:
        'The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input',
    },
  ],
  [
    'LM Studio, cut',
    400,
    {
      error:
        'Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.',
    },
  ],
  ['Ollama', 400, { error: 'prompt too long; exceeded max context length by 904 tokens' }],
  ['LiteLLM', 400, said('litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException')],
  [
    'Cerebras',
    400,
    said(
      'Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192',
      'context_length_exceeded',
    ),
  ],
])('%s reports a conversation that is too long', (_, status, body) => {
  expect(codeOf(status, body)).toBe('context_overflow')
})

test.each<[string, number, unknown, string]>([
  [
    'an answer longer than the model gives',
    400,
    said(
      'max_tokens is too large: 200000. This model supports at most 16384 completion tokens, whereas you provided 200000.',
      'invalid_value',
    ),
    'invalid_request',
  ],
  [
    'Anthropic, an answer that is too long',
    400,
    anthropicSaid('max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude'),
    'invalid_request',
  ],
  ['DashScope, an answer that is too long', 400, said('Range of max_tokens should be [1, 8192]'), 'invalid_request'],
  [
    'tokens per minute',
    429,
    said(
      'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 42000. The input or output tokens must be reduced in order to run successfully.',
      'rate_limit_exceeded',
    ),
    'rate_limited',
  ],
  [
    'Bedrock, too many tokens in a minute',
    429,
    { message: 'Too many tokens, please wait before trying again.' },
    'rate_limited',
  ],
  [
    'Anthropic, tokens per minute',
    429,
    anthropicSaid(
      'This request would exceed your organization’s rate limit of 30,000 input tokens per minute.',
      'rate_limit_error',
    ),
    'rate_limited',
  ],
  [
    'too many messages',
    400,
    said(
      "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 3000 instead.",
      'array_above_max_length',
    ),
    'invalid_request',
  ],
  [
    'a name that is too long',
    400,
    said(
      "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
      'string_above_max_length',
    ),
    'invalid_request',
  ],
  [
    'an id that is too long',
    400,
    said(
      "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64, but got a string with length 80 instead.",
    ),
    'invalid_request',
  ],
  [
    'an image that is too large',
    400,
    anthropicSaid(
      'messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes',
    ),
    'invalid_request',
  ],
  ['too many images', 400, anthropicSaid('too many images and documents: 101 + 0 > 100'), 'invalid_request'],
  [
    'too many tools',
    400,
    said(
      "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
    ),
    'invalid_request',
  ],
  ['an option that is too large', 400, said('context_management: unknown field'), 'invalid_request'],
  [
    'a thinking budget',
    400,
    anthropicSaid('`max_tokens` must be greater than `thinking.budget_tokens`.'),
    'invalid_request',
  ],
  [
    'a spent quota',
    429,
    said('You exceeded your current quota, please check your plan and billing details.', 'insufficient_quota'),
    'rate_limited',
  ],
  ['a refused key', 401, said('Your token limit was exceeded'), 'auth'],
  ['a server’s own fault', 500, said('context deadline exceeded'), 'provider_error'],
  ['a deadline at a gateway', 408, said('context deadline exceeded'), 'provider_error'],
  [
    'a credit limit',
    402,
    said(
      'This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 1234.',
    ),
    'invalid_request',
  ],
])('%s is something else', (_, status, body, code) => {
  expect(codeOf(status, body)).toBe(code)
})

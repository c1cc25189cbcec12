// Row by row: the request that a provider receives, and an answer as the provider sends it.
import type { Message, ModelReply, ModelRequest } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { bedrockEvents, candidate, googleEvents } from '../ai-sdk/ai-sdk.fixture.ts'
import { ask, calls, frame, namedEvents, sse, text, thinking } from '../asking.fixture.ts'
import { resolveModel } from '../index.ts'
import { service } from '../service.fixture.ts'
import { providers } from './providers.ts'

interface Preset {
  readonly model: string
  readonly environment: Readonly<Record<string, string>>
  readonly url: string
  /** The header with the key; undefined for none. */
  readonly key?: readonly [header: string, value: string | RegExp]
  /** Fields of the body that this provider requires. */
  readonly body: object
  readonly absent?: readonly string[]
  readonly stream: string | Buffer
  readonly thinking?: string
  readonly usage?: { readonly input: number; readonly output: number }
}

const weather = { name: 'weather', description: 'Tells the weather.', input: { type: 'object' } }
const asked: Partial<ModelRequest> = {
  system: 'Be brief.',
  tools: [weather],
  toolChoice: 'required',
  output: { name: 'place', schema: { type: 'object' } },
  temperature: 0.5,
  maxOutputTokens: 99,
  options: { seed: 7 },
}

const usage = (extra: object = {}) => ({ prompt_tokens: 20, completion_tokens: 8, total_tokens: 28, ...extra })
const last = (figures: object = usage()) => ({ object: 'chat.completion.chunk', choices: [], usage: figures })
const call = { index: 0, id: 'c', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' } }
const called = (extra: object = {}) => frame({ tool_calls: [call], ...extra }, 'tool_calls')
const events = (list: readonly object[]): string => namedEvents(list as { type: string }[])
const plain = sse([frame({ role: 'assistant', content: 'Hello' }), called(), last()])
/** With reasoning in a field of its own. */
const reasoned = (field = 'reasoning_content') =>
  sse([frame({ role: 'assistant', content: '', [field]: 'hm' }), frame({ content: 'Hello' }), called(), last()])
const tagged = sse([
  frame({ content: '<think>h' }),
  frame({ content: 'm</think>' }),
  frame({ content: 'Hello' }),
  called(),
  last(),
])

const schema = { response_format: { type: 'json_schema', json_schema: { name: 'place' } } }
const object = { response_format: { type: 'json_object' } }
const bearer = (key: string): readonly [string, string] => ['authorization', `Bearer ${key}`]
const chat = { temperature: 0.5, max_tokens: 99, seed: 7, stream: true, stream_options: { include_usage: true } }

const presets: Readonly<Record<string, Preset>> = {
  openai: {
    model: 'gpt-4.1',
    environment: { OPENAI_API_KEY: 'k-openai' },
    url: 'https://api.openai.com/v1/chat/completions',
    key: bearer('k-openai'),
    body: { ...schema, max_completion_tokens: 99, tool_choice: 'required', seed: 7, temperature: 0.5 },
    absent: ['max_tokens'],
    stream: plain,
  },
  anthropic: {
    model: 'claude-sonnet-4-5',
    environment: { ANTHROPIC_API_KEY: 'k-anthropic' },
    url: 'https://api.anthropic.com/v1/messages',
    key: ['x-api-key', 'k-anthropic'],
    body: { model: 'claude-sonnet-4-5', max_tokens: 99, temperature: 0.5, tool_choice: { type: 'any' }, seed: 7 },
    stream: events([
      { type: 'message_start', message: { model: 'm', usage: { input_tokens: 20, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'tool_use', id: 't', name: 'weather', input: {} },
      },
      { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"city":"Bern"}' } },
      { type: 'content_block_stop', index: 1 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 8 } },
      { type: 'message_stop' },
    ]),
  },
  dashscope: {
    model: 'qwen-plus',
    environment: { DASHSCOPE_API_KEY: 'k-dashscope' },
    url: 'https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions',
    key: bearer('k-dashscope'),
    body: { ...chat, ...object, tool_choice: 'required' },
    stream: reasoned(),
    thinking: 'hm',
  },
  deepseek: {
    model: 'deepseek-chat',
    environment: { DEEPSEEK_API_KEY: 'k-deepseek' },
    url: 'https://api.deepseek.com/v1/chat/completions',
    key: bearer('k-deepseek'),
    body: { ...chat, ...object, tool_choice: 'required' },
    stream: sse([
      frame({ role: 'assistant', content: null, reasoning_content: 'hm' }),
      frame({ content: 'Hello', reasoning_content: null }),
      { ...called(), usage: usage({ prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 16 }) },
    ]),
    thinking: 'hm',
    usage: { input: 16, output: 8 },
  },
  moonshot: {
    model: 'kimi-k2.5',
    environment: { MOONSHOT_API_KEY: 'k-moonshot' },
    url: 'https://api.moonshot.cn/v1/chat/completions',
    key: bearer('k-moonshot'),
    body: { ...chat, ...object, tool_choice: 'auto' },
    // The usage is inside the choice.
    stream: sse([
      frame({ role: 'assistant', content: '', reasoning_content: 'hm' }),
      frame({ content: 'Hello' }),
      { choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: 'tool_calls', usage: usage() }] },
    ]),
    thinking: 'hm',
  },
  zhipu: {
    model: 'glm-4.6',
    environment: { ZHIPU_API_KEY: 'k.zhipu' },
    url: 'https://open.bigmodel.cn/api/paas/v4/chat/completions',
    key: bearer('k.zhipu'),
    body: { ...chat, ...object, tool_choice: 'auto' },
    stream: reasoned(),
    thinking: 'hm',
  },
  minimax: {
    model: 'MiniMax-M2',
    environment: { MINIMAX_API_KEY: 'k-minimax' },
    url: 'https://api.minimax.io/v1/chat/completions',
    key: bearer('k-minimax'),
    body: { ...chat, ...object, tool_choice: 'auto' },
    stream: sse([
      { choices: [{ index: 0, delta: null }] },
      frame({ role: '', content: '<think>hm</think>Hello' }),
      called(),
      {
        object: 'chat.completion',
        choices: [
          { index: 0, finish_reason: 'tool_calls', message: { content: '<think>hm</think>Hello', tool_calls: [call] } },
        ],
        usage: usage(),
        base_resp: { status_code: 0, status_msg: '' },
      },
    ]),
    thinking: 'hm',
  },
  siliconflow: {
    model: 'Qwen/Qwen3-32B',
    environment: { SILICONFLOW_API_KEY: 'k-silicon' },
    url: 'https://api.siliconflow.cn/v1/chat/completions',
    key: bearer('k-silicon'),
    body: { ...chat, ...object },
    // Growing usage in every frame.
    stream: sse([
      {
        ...frame({ role: 'assistant', content: null, reasoning_content: 'hm' }),
        usage: usage({ completion_tokens: 1 }),
      },
      { ...frame({ content: 'Hello' }), usage: usage({ completion_tokens: 4 }) },
      { ...called(), usage: usage() },
    ]),
    thinking: 'hm',
  },
  ark: {
    model: 'doubao-seed-1-6-250615',
    environment: { ARK_API_KEY: 'k-ark' },
    url: 'https://ark.cn-beijing.volces.com/api/v3/chat/completions',
    key: bearer('k-ark'),
    body: { ...chat, ...object },
    stream: sse([
      { ...frame({ role: 'assistant', content: '', reasoning_content: 'hm' }), usage: null },
      { ...frame({ content: 'Hello' }), usage: null },
      { ...called(), usage: null },
      last(),
    ]),
    thinking: 'hm',
  },
  openrouter: {
    model: 'anthropic/claude-sonnet-4.5',
    environment: { OPENROUTER_API_KEY: 'k-router' },
    url: 'https://openrouter.ai/api/v1/chat/completions',
    key: bearer('k-router'),
    body: { ...chat, ...schema },
    stream: `: OPENROUTER PROCESSING\n\n${reasoned('reasoning')}`,
    thinking: 'hm',
  },
  groq: {
    model: 'openai/gpt-oss-120b',
    environment: { GROQ_API_KEY: 'k-groq' },
    url: 'https://api.groq.com/openai/v1/chat/completions',
    key: bearer('k-groq'),
    body: { ...chat, ...object },
    stream: sse([
      frame({ role: 'assistant', reasoning: 'hm' }),
      frame({ content: 'Hello' }),
      { ...called(), x_groq: { id: 'r', usage: usage() } },
    ]),
    thinking: 'hm',
  },
  mistral: {
    model: 'magistral-medium-latest',
    environment: { MISTRAL_API_KEY: 'k-mistral' },
    url: 'https://api.mistral.ai/v1/chat/completions',
    key: bearer('k-mistral'),
    body: { ...schema, max_tokens: 99, temperature: 0.5 },
    absent: ['stream_options'],
    stream: sse([
      frame({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] }),
      frame({ content: 'Hello' }),
      { ...called(), usage: usage() },
    ]),
    thinking: 'hm',
  },
  xai: {
    model: 'grok-4',
    environment: { XAI_API_KEY: 'k-xai' },
    url: 'https://api.x.ai/v1/chat/completions',
    key: bearer('k-xai'),
    body: { ...chat, ...schema },
    // Reasoning is counted outside the completion.
    stream: sse([
      frame({ role: 'assistant', reasoning_content: 'hm' }),
      frame({ content: 'Hello' }),
      called(),
      last({
        prompt_tokens: 20,
        completion_tokens: 5,
        total_tokens: 28,
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
    ]),
    thinking: 'hm',
  },
  together: {
    model: 'moonshotai/Kimi-K2-Instruct',
    environment: { TOGETHER_API_KEY: 'k-together' },
    url: 'https://api.together.xyz/v1/chat/completions',
    key: bearer('k-together'),
    body: { ...chat, ...schema },
    stream: sse([frame({ content: 'Hello', tool_calls: [] }), { ...called(), usage: usage() }]),
  },
  fireworks: {
    model: 'accounts/fireworks/models/glm-5',
    environment: { FIREWORKS_API_KEY: 'k-fire' },
    url: 'https://api.fireworks.ai/inference/v1/chat/completions',
    key: bearer('k-fire'),
    body: { ...chat, ...schema },
    stream: reasoned(),
    thinking: 'hm',
  },
  'openai-responses': responses(
    { OPENAI_API_KEY: 'k-openai' },
    'https://api.openai.com/v1/responses',
    bearer('k-openai'),
  ),
  azure: {
    model: 'my-gpt',
    environment: { AZURE_OPENAI_API_KEY: 'k-azure', AZURE_RESOURCE_NAME: 'acme' },
    url: 'https://acme.openai.azure.com/openai/v1/chat/completions',
    key: ['api-key', 'k-azure'],
    body: { ...schema, model: 'my-gpt', max_completion_tokens: 99 },
    // A first frame without a choice holds the content filter's result for the question.
    stream: sse([
      { choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }], model: '' },
      { ...frame({ role: 'assistant', content: 'Hello' }), obfuscation: 'x' },
      called(),
      last(),
    ]),
  },
  'azure-responses': responses(
    { AZURE_OPENAI_API_KEY: 'k-azure', AZURE_RESOURCE_NAME: 'acme' },
    'https://acme.openai.azure.com/openai/v1/responses',
    ['api-key', 'k-azure'],
  ),
  google: {
    model: 'gemini-3-pro-preview',
    environment: { GEMINI_API_KEY: 'k-google' },
    url: 'https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse',
    key: ['x-goog-api-key', 'k-google'],
    body: { generationConfig: { maxOutputTokens: 99, temperature: 0.5, seed: 7 } },
    stream: googleEvents([
      candidate([{ text: 'hm', thought: true }]),
      candidate([{ text: 'Hello' }]),
      candidate([{ functionCall: { name: 'weather', args: { city: 'Bern' } } }], 'STOP'),
    ]),
    thinking: 'hm',
    usage: { input: 7, output: 3 },
  },
  bedrock: {
    model: 'us.anthropic.claude-sonnet-4-5-v1:0',
    environment: { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'k-secret', AWS_REGION: 'eu-central-1' },
    url: 'https://bedrock-runtime.eu-central-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-v1%3A0/converse-stream',
    key: ['authorization', /^AWS4-HMAC-SHA256 Credential=AKIA\/\d+\/eu-central-1\/bedrock/],
    body: { inferenceConfig: { maxTokens: 99, temperature: 0.5 } },
    stream: bedrockEvents([
      ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hello' } }],
      ['contentBlockStop', { contentBlockIndex: 0 }],
      ['contentBlockStart', { contentBlockIndex: 1, start: { toolUse: { toolUseId: 't', name: 'weather' } } }],
      ['contentBlockDelta', { contentBlockIndex: 1, delta: { toolUse: { input: '{"city":"Bern"}' } } }],
      ['contentBlockStop', { contentBlockIndex: 1 }],
      ['messageStop', { stopReason: 'tool_use' }],
      ['metadata', { usage: { inputTokens: 20, outputTokens: 8, totalTokens: 28 } }],
    ]),
  },
  vllm: local('http://localhost:8000/v1', reasoned('reasoning'), 'hm'),
  lmstudio: local('http://localhost:1234/v1', tagged, 'hm'),
  llamacpp: local('http://localhost:8080/v1', reasoned(), 'hm'),
  // Old versions send calls without an index, and arguments as an object.
  ollama: local(
    'http://localhost:11434/v1',
    sse([
      frame({ role: 'assistant', content: 'Hello' }),
      frame({ tool_calls: [{ function: { name: 'weather', arguments: { city: 'Bern' } } }] }, 'stop'),
      last(),
    ]),
  ),
}

function local(baseUrl: string, stream: string, thinking?: string): Preset {
  const url = `${baseUrl}/chat/completions`
  return {
    model: 'qwen3:8b',
    environment: {},
    url,
    body: { ...chat, ...schema },
    stream,
    ...(thinking ? { thinking } : {}),
  }
}

function responses(environment: Record<string, string>, url: string, key: Preset['key']): Preset {
  const answered = { id: 'r', model: 'gpt-4.1', status: 'completed', usage: { input_tokens: 20, output_tokens: 8 } }
  const item = { type: 'function_call', id: 'f', call_id: 'c', name: 'weather', arguments: '{"city":"Bern"}' }
  return {
    model: 'gpt-4.1',
    environment,
    url,
    ...(key ? { key } : {}),
    body: { model: 'gpt-4.1', max_output_tokens: 99, temperature: 0.5, seed: 7, tool_choice: 'required', store: false },
    stream: events([
      { type: 'response.created', response: { ...answered, status: 'in_progress', usage: null } },
      { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'm', content: [] } },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'm', delta: 'Hello' },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { type: 'message', id: 'm', content: [{ type: 'output_text', text: 'Hello' }] },
      },
      { type: 'response.output_item.added', output_index: 1, item: { ...item, arguments: '' } },
      { type: 'response.function_call_arguments.delta', output_index: 1, item_id: 'f', delta: '{"city":"Bern"}' },
      { type: 'response.output_item.done', output_index: 1, item },
      { type: 'response.completed', response: answered },
    ]),
  }
}

/** A local server in place of the provider that records the request. */
async function at({ environment, model, stream }: Preset, provider: string, request: Partial<ModelRequest> = asked) {
  const server = await service(() => ({ body: stream, headers: { 'content-type': 'text/event-stream' } }))
  const urls: string[] = []
  const fetchHere: typeof fetch = (input, init) => {
    urls.push(String(input))
    return fetch(server.url, init)
  }
  const { reply } = await ask(resolveModel(`${provider}:${model}`, environment, { fetch: fetchHere }), request)
  return { reply, urls, request: server.requests[0]! }
}

test('every provider has a row in this test', () => {
  expect(Object.keys(presets).sort()).toEqual(Object.keys(providers).sort())
})

describe.each(Object.entries(presets))('%s', (provider, preset) => {
  test('receives the request at its address, with its key, in its form', async () => {
    const { urls, request } = await at(preset, provider)
    expect(urls).toEqual([preset.url])
    const keys = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'].filter(
      (it) => request.headers[it] !== undefined,
    )
    expect(keys).toEqual(preset.key ? [preset.key[0]] : [])
    if (preset.key) expect(request.headers[preset.key[0]]).toMatch(preset.key[1])
    expect(request.body).toMatchObject(preset.body)
    for (const field of preset.absent ?? []) expect(request.body).not.toHaveProperty(field)
    expect(JSON.stringify(request.body)).toContain('Be brief.')
  })

  test('has its answer read', async () => {
    const { output: _, ...request } = asked
    const { reply } = await at(preset, provider, request)
    expect(view(reply)).toEqual({
      text: 'Hello',
      thinking: preset.thinking ?? '',
      calls: [['weather', { city: 'Bern' }]],
      reason: 'calls',
      usage: { input: 20, output: 8, ...preset.usage, estimated: false },
    })
  })
})

const view = (reply: ModelReply) => ({
  text: text(reply),
  thinking: thinking(reply),
  calls: calls(reply).map(([tool, json]) => [tool, JSON.parse(json)]),
  reason: reply.finishReason,
  usage: {
    input: reply.usage.inputTokens,
    output: reply.usage.outputTokens,
    estimated: reply.usage.estimated,
  },
})

describe('Azure', () => {
  test('deployments with their own path and a version work too', async () => {
    const environment = {
      AZURE_API_KEY: 'k-azure',
      AZURE_BASE_URL: 'https://acme.openai.azure.com/openai/deployments/{model}?api-version=2024-10-21',
    }
    const { urls, request } = await at({ ...presets.azure!, environment }, 'azure')
    expect(urls).toEqual([
      'https://acme.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21',
    ])
    expect(request.headers).toMatchObject({ 'api-key': 'k-azure' })
  })
})

describe('which reasoning is sent back', () => {
  const history: Message[] = [
    { id: 'u1', role: 'user', blocks: [{ type: 'text', text: 'hi' }] },
    {
      id: 'a1',
      role: 'assistant',
      blocks: [
        { type: 'thinking', text: 'first' },
        { type: 'call', callId: 'c1', tool: 'weather', arguments: '{}' },
      ],
    },
    {
      id: 't1',
      role: 'tool',
      blocks: [{ type: 'result', callId: 'c1', tool: 'weather', status: 'success', content: [] }],
    },
    {
      id: 'a2',
      role: 'assistant',
      blocks: [
        { type: 'thinking', text: 'second' },
        { type: 'text', text: 'Sunny.' },
      ],
    },
    { id: 'u2', role: 'user', blocks: [{ type: 'text', text: 'thanks' }] },
    { id: 'a3', role: 'assistant', blocks: [{ type: 'text', text: 'Of another model.' }] },
    { id: 'u3', role: 'user', blocks: [{ type: 'text', text: 'on' }] },
  ]
  const sent = async (name: string) => {
    const [provider = '', ...model] = name.split(':')
    const { request } = await at({ ...presets[provider]!, model: model.join(':') }, provider, {
      messages: history,
      tools: [weather],
    })
    const assistant = request.body.messages.filter((it: { role: string }) => it.role === 'assistant')
    return assistant.map((it: { reasoning_content?: string }) => it.reasoning_content)
  }
  const [none, some, all] = [
    [undefined, undefined, undefined],
    ['first', undefined, undefined],
    ['first', 'second', ''],
  ]

  test.each([
    ['openai:gpt-5', none],
    ['dashscope:qwen3-max', none],
    ['dashscope:deepseek-r1', none],
    ['dashscope:deepseek-v3.2', all],
    ['ark:doubao-seed-1-6-250615', none],
    ['ark:deepseek-r1-250528', none],
    ['ark:deepseek-v3-250324', none],
    ['ark:deepseek-v3-2-251201', all],
    ['siliconflow:deepseek-ai/DeepSeek-V3', none],
    ['siliconflow:zai-org/glm-4-9b-chat', none],
    ['siliconflow:deepseek-ai/DeepSeek-R1', none],
    ['siliconflow:deepseek-ai/DeepSeek-V3.2', all],
    ['together:deepseek-ai/DeepSeek-R1-0528', none],
    ['fireworks:accounts/fireworks/models/deepseek-v3p2', all],
    ['deepseek:deepseek-chat', all],
    ['deepseek:deepseek-reasoner', all],
    ['deepseek:deepseek-v4-pro', all],
    ['moonshot:kimi-k2-turbo-preview', some],
    ['moonshot:kimi-k2-thinking', all],
    ['moonshot:kimi-k2.5', all],
    ['moonshot:kimi-k3', all],
    ['zhipu:glm-4-plus', none],
    ['zhipu:glm-4.6', all],
    ['zhipu:glm-5', all],
    ['vllm:qwen3', none],
  ])('%s', async (name, expected) => {
    expect(await sent(name)).toEqual(expected)
  })

  test('MiniMax gets it in tags before the text, unchanged', async () => {
    const { request } = await at(presets.minimax!, 'minimax', { messages: history, tools: [weather] })
    const assistant = request.body.messages.filter((it: { role: string }) => it.role === 'assistant')
    expect(assistant.map((it: { content: string }) => it.content)).toEqual([
      '<think>\nfirst\n</think>\n\n',
      '<think>\nsecond\n</think>\n\nSunny.',
      'Of another model.',
    ])
  })
})

describe('where `auto` is the only tool choice', () => {
  test.each([
    ['required', 'auto'],
    [{ tool: 'weather' }, 'auto'],
    ['auto', 'auto'],
  ] as const)('%j is sent as auto', async (toolChoice, expected) => {
    const { request } = await at(presets.zhipu!, 'zhipu', { tools: [weather], toolChoice })
    expect(request.body).toMatchObject({ tool_choice: expected, tools: [{}] })
  })

  test('with `none` the tools are omitted', async () => {
    const { request } = await at(presets.zhipu!, 'zhipu', { tools: [weather], toolChoice: 'none' })
    expect(request.body).not.toHaveProperty('tools')
    expect(request.body).not.toHaveProperty('tool_choice')
  })
})

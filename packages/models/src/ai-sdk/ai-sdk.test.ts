// The adapter over real HTTP: what it sends, and how it reports an incomplete answer.
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { memory } from '@oxbow/backends'
import { agent, createEngine, type Message, tool } from '@oxbow/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { ask, askInVain, request, userMessage } from '../asking.fixture.ts'
import { resolveModel } from '../index.ts'
import {
  bedrockAt,
  bedrockEvents,
  candidate,
  googleAt,
  googleEvents,
  nobody,
  type Played,
  play,
} from './ai-sdk.fixture.ts'
import { type AiSdkOptions, aiSdk } from './ai-sdk.ts'

const answer = (text = 'ok'): Played => ({ body: [googleEvents([candidate([{ text }], 'STOP')])] })
const gemini = (server: { readonly url: string }, options: AiSdkOptions = {}) =>
  aiSdk(googleAt(server)('gemini-3-pro-preview'), { secrets: ['google-secret'], ...options })
const claude = (server: { readonly url: string }, options: AiSdkOptions = {}) =>
  aiSdk(bedrockAt(server)('us.anthropic.claude-sonnet-4-5-v1:0'), { secrets: ['bedrock-secret'], ...options })

const weather = {
  name: 'weather',
  description: 'Tells the weather.',
  input: { type: 'object', properties: { city: { type: 'string' } } },
}

describe('the request', () => {
  test('the id is provider:model unless another is given', async () => {
    const server = await play()
    expect(gemini(server).id).toBe('google:gemini-3-pro-preview')
    expect(claude(server).id).toBe('amazon-bedrock:us.anthropic.claude-sonnet-4-5-v1:0')
    expect(gemini(server, { id: 'mine:x' }).id).toBe('mine:x')
  })

  test('a model of another specification is refused with what to do', () => {
    const old = { specificationVersion: 'v2', provider: 'p', modelId: 'm' } as unknown as LanguageModelV4
    expect(() => aiSdk(old)).toThrow(
      expect.objectContaining({ code: 'model_config', message: expect.stringMatching(/v4; got "v2"/) }),
    )
  })

  test('holds system, tools, tool choice, temperature, output limit and SDK options', async () => {
    const server = await play(answer())
    await ask(gemini(server), {
      system: 'Be brief.',
      tools: [weather, { ...weather, name: 'area' }],
      toolChoice: { tool: 'weather' },
      temperature: 0.5,
      maxOutputTokens: 99,
      options: { topP: 0.9, providerOptions: { google: { thinkingConfig: { thinkingLevel: 'low' } } } },
    })
    expect(server.requests[0]).toMatchObject({
      path: '/models/gemini-3-pro-preview:streamGenerateContent?alt=sse',
      headers: { 'x-goog-api-key': 'google-secret' },
      body: {
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
        generationConfig: {
          temperature: 0.5,
          maxOutputTokens: 99,
          topP: 0.9,
          thinkingConfig: { thinkingLevel: 'low' },
        },
        toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['weather'] } },
      },
    })
    const [{ functionDeclarations: declared }] = server.requests[0]!.body.tools
    expect(declared.map((it: { name: string }) => it.name)).toEqual(['area', 'weather'])
    expect(declared[1]).toMatchObject({ description: 'Tells the weather.' })
    expect(JSON.stringify(declared[1])).toContain('"city"')
  })

  test('merges the model’s options with those of one request, which win', async () => {
    const server = await play(answer(), answer())
    const model = gemini(server, { options: { topP: 0.9, seed: 1 } })
    await ask(model)
    await ask(model, { options: { seed: 2 } })
    expect(server.requests.map(({ body }) => body.generationConfig)).toMatchObject([
      { topP: 0.9, seed: 1 },
      { topP: 0.9, seed: 2 },
    ])
  })

  test.each([
    ['auto', 'AUTO'],
    ['none', 'NONE'],
    ['required', 'ANY'],
  ] as const)('sends the tool choice %s', async (toolChoice, mode) => {
    const server = await play(answer())
    await ask(gemini(server), { tools: [weather], toolChoice })
    expect(server.requests[0]?.body.toolConfig.functionCallingConfig.mode).toBe(mode)
  })

  test('H4: holds a schema for the answer', async () => {
    const server = await play(answer('{"city":"Bern"}'))
    await ask(gemini(server), { output: { name: 'place', schema: weather.input } })
    const { generationConfig } = server.requests[0]!.body
    expect(generationConfig.responseMimeType).toBe('application/json')
    expect(JSON.stringify(generationConfig)).toContain('"city"')
  })

  test('images and files are sent as data, in results too; a URL that is not fetched is named', async () => {
    const image = { type: 'data', mediaType: 'image/png', data: 'aGk=', name: 'a.png' } as const
    const server = await play(answer())
    await ask(gemini(server), {
      tools: [weather],
      messages: [
        {
          id: 'u',
          role: 'user',
          blocks: [
            { type: 'text', text: 'Look.' },
            image,
            { type: 'data', mediaType: 'image/png', url: 'http://10.0.0.1/b.png', name: 'b.png' },
            { type: 'data', mediaType: 'video/mp4', url: 'https://www.youtube.com/watch?v=abc' },
          ],
        },
        { id: 'a', role: 'assistant', blocks: [{ type: 'call', callId: 'c1', tool: 'weather', arguments: '{}' }] },
        {
          id: 't',
          role: 'tool',
          blocks: [
            {
              type: 'result',
              callId: 'c1',
              tool: 'weather',
              status: 'success',
              content: [{ type: 'text', text: 'map' }, image],
            },
          ],
        },
      ],
    })
    const [user, , results] = server.requests[0]!.body.contents
    expect(user.parts).toEqual([
      { text: 'Look.' },
      { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
      { text: '[file b.png image/png http://10.0.0.1/b.png]' },
      { fileData: { mimeType: 'video/mp4', fileUri: 'https://www.youtube.com/watch?v=abc' } },
    ])
    expect(JSON.stringify(results)).toContain('"data":"aGk="')
  })

  test('the history is repaired first: it begins with a user, and each call has a result', async () => {
    const server = await play({ body: [bedrockEvents([['messageStop', { stopReason: 'end_turn' }]])] })
    await ask(claude(server), {
      tools: [weather],
      messages: [
        {
          id: 'a',
          role: 'assistant',
          blocks: [
            { type: 'call', callId: 'c1', tool: 'weather', arguments: '{"city":"Bern \ud83d"}' },
            { type: 'call', callId: 'c2', tool: 'weather', arguments: 'broken' },
          ],
        },
        {
          id: 't',
          role: 'tool',
          blocks: [{ type: 'result', callId: 'c1', tool: 'weather', status: 'error', content: [] }],
        },
        userMessage('and \ud83d?'),
      ],
    })
    const { messages } = server.requests[0]!.body
    expect(messages.map((it: { role: string }) => it.role)).toEqual(['user', 'assistant', 'user'])
    expect(messages[1].content).toMatchObject([
      { toolUse: { toolUseId: 'c1', name: 'weather', input: { city: 'Bern \ufffd' } } },
      { toolUse: { toolUseId: 'c2', name: 'weather', input: {} } },
    ])
    expect(messages[2].content).toMatchObject([
      { toolResult: { toolUseId: 'c1', content: [{ text: '(error, no output)' }] } },
      {
        toolResult: {
          toolUseId: 'c2',
          content: [{ text: expect.stringContaining('outcome of this call is unknown') }],
        },
      },
      { text: 'and \ufffd?' },
      { cachePoint: { type: 'default' } },
    ])
    expect(server.requests[0]?.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/)
  })
})

describe('provider metadata', () => {
  const thought = 'dGhvdWdodA=='
  const parts = [
    { text: 'hm', thought: true, thoughtSignature: 'cmVhc29u' },
    { text: 'Look ' },
    { text: 'here', thoughtSignature: 'dGV4dA==' },
    { functionCall: { name: 'weather', args: { city: 'Bern' } }, thoughtSignature: thought },
    { inlineData: { mimeType: 'image/png', data: 'aGk=' }, thoughtSignature: 'ZmlsZQ==' },
    { text: '', thoughtSignature: 'ZW1wdHk=' },
  ]
  const back = async (message: Partial<Message> = {}) => {
    const server = await play({ body: [googleEvents([candidate(parts), candidate([], 'STOP')])] }, answer())
    const model = gemini(server)
    const { reply } = await ask(model, { tools: [weather] })
    await ask(model, {
      tools: [weather],
      messages: [
        userMessage('hi'),
        { id: 'a', role: 'assistant', blocks: reply.blocks, ...message },
        userMessage('on'),
      ],
    })
    return { reply, sent: server.requests[1]?.body.contents[1].parts }
  }

  test('thought signatures of reasoning, text, calls and files return to their places', async () => {
    const { sent, reply } = await back({ model: 'google:gemini-3-pro-preview' })
    expect(reply.blocks).toContainEqual({ type: 'data', mediaType: 'image/png', data: 'aGk=' })
    const id = sent[2].functionCall.id
    expect(sent).toEqual([
      { text: 'hm', thought: true, thoughtSignature: 'cmVhc29u' },
      { text: 'Look here', thoughtSignature: 'dGV4dA==' },
      { functionCall: { id, name: 'weather', args: { city: 'Bern' } }, thoughtSignature: thought },
      { inlineData: { mimeType: 'image/png', data: 'aGk=' }, thoughtSignature: 'ZmlsZQ==' },
      { text: '', thoughtSignature: 'ZW1wdHk=' },
    ])
  })

  test('signatures and reasoning are not sent to another model', async () => {
    const { sent } = await back({ model: 'google:gemini-2.5-pro' })
    expect(JSON.stringify(sent)).not.toMatch(/dGhvdWdodA|cmVhc29u|dGV4dA|ZmlsZQ|ZW1wdHk|"hm"/)
    expect(sent).toContainEqual({ text: 'Look here' })
  })

  test('a signature from elsewhere is omitted', async () => {
    const server = await play(answer())
    const foreign: Message = {
      id: 'a',
      role: 'assistant',
      blocks: [
        { type: 'thinking', text: 'hm', signature: 'c2lnbmVk' },
        { type: 'text', text: 'a' },
        { type: 'thinking', text: 'cut off' },
      ],
    }
    await ask(gemini(server), { messages: [userMessage('hi'), foreign, userMessage('on')] })
    expect(server.requests[0]?.body.contents[1].parts).toEqual([{ text: 'hm', thought: true }, { text: 'a' }])
  })

  test('over two turns of an engine a call’s signature is sent back with its result', async () => {
    const call = { functionCall: { name: 'weather', args: { city: 'Bern' } }, thoughtSignature: thought }
    const server = await play(
      { body: [googleEvents([candidate([call], 'STOP')])] },
      answer('It is sunny.'),
      answer('You are welcome.'),
    )
    const tells = tool({
      name: 'weather',
      description: 'Tells the weather.',
      effects: ['read'],
      input: z.object({ city: z.string() }),
      run: ({ city }) => `sunny in ${city}`,
    })
    const helper = agent({ name: 'helper', model: gemini(server), instructions: 'Help.', tools: [tells] })
    const engine = createEngine({ backend: memory(), agents: [helper] })
    await engine.start()
    onTestFinished(() => engine.stop())
    const session = engine.session({ user: 'ann', session: 's' })
    expect((await session.run('Weather in Bern?')).text).toBe('It is sunny.')
    expect((await session.run('Thanks.')).text).toBe('You are welcome.')
    for (const { body } of server.requests.slice(1)) {
      const { functionCall, thoughtSignature } = body.contents[1].parts[0]
      expect({ ...functionCall, thoughtSignature }).toMatchObject({ name: 'weather', thoughtSignature: thought })
      const { functionResponse } = body.contents[2].parts[0]
      expect(functionResponse).toMatchObject({ id: functionCall.id, response: { content: 'sunny in Bern' } })
    }
  })
})

describe('failed answers', () => {
  const googleError = (code: number, status: string, message: string, details: object[] = []): Played => ({
    status: code,
    headers: { 'content-type': 'application/json' },
    body: [Buffer.from(JSON.stringify({ error: { code, message, status, details } }))],
  })
  const billing = 'You exceeded your current quota, please check your plan and billing details.'

  test.each<[string, Played, object]>([
    [
      'a wrong key',
      googleError(400, 'INVALID_ARGUMENT', 'API key google-secret not valid.', [{ reason: 'API_KEY_INVALID' }]),
      { code: 'auth', retryable: false },
    ],
    [
      'a rate limit with the time to wait',
      googleError(429, 'RESOURCE_EXHAUSTED', billing, [{ '@type': 'google.rpc.RetryInfo', retryDelay: '34.5s' }]),
      { code: 'rate_limited', retryable: true, retryAfterMs: 34_500, status: 429 },
    ],
    ['an empty account', googleError(429, 'RESOURCE_EXHAUSTED', billing), { code: 'rate_limited', retryable: false }],
    [
      'a time to wait in a header',
      { ...googleError(429, 'RESOURCE_EXHAUSTED', 'slow'), headers: { 'retry-after': '7' } },
      { code: 'rate_limited', retryAfterMs: 7_000 },
    ],
    ['overload', googleError(503, 'UNAVAILABLE', 'The model is overloaded.'), { code: 'overloaded', retryable: true }],
    [
      'a conversation that is too long',
      googleError(
        400,
        'INVALID_ARGUMENT',
        'The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).',
      ),
      { code: 'context_overflow', retryable: false },
    ],
    [
      'an unknown model',
      googleError(404, 'NOT_FOUND', 'models/x is not found'),
      { code: 'invalid_request', message: expect.stringMatching(/has no model gemini-3-pro-preview at http:\/\/127/) },
    ],
    [
      'a page',
      { status: 502, body: [Buffer.from('<html>bad gateway</html>')] },
      { code: 'provider_error', retryable: true },
    ],
  ])('Gemini: %s', async (_, played, expected) => {
    const { error } = await askInVain(gemini(await play(played)))
    expect(error).toMatchObject({ partial: undefined, ...expected })
    expect(JSON.stringify([error.message, error.details, error.cause])).not.toMatch(/google-secret|"hi"/)
  })

  test.each<[string, Played, object]>([
    [
      'a conversation that is too long',
      { status: 400, body: [Buffer.from('{"message":"Input is too long for requested model."}')] },
      { code: 'context_overflow' },
    ],
    [
      'no access',
      { status: 403, body: [Buffer.from('{"message":"no access with bedrock-secret"}')] },
      { code: 'auth', retryable: false },
    ],
    [
      'throttling in the middle of a stream',
      { body: [bedrockEvents([['throttlingException', { message: 'slow down' }]], 'exception')] },
      { code: 'rate_limited', retryable: true },
    ],
    [
      'overload in the middle of a stream',
      { body: [bedrockEvents([['serviceUnavailableException', { message: 'later' }]], 'exception')] },
      { code: 'overloaded', retryable: true },
    ],
    [
      'a model failure in the middle of a stream',
      { body: [bedrockEvents([['modelStreamErrorException', { message: 'broke' }]], 'exception')] },
      { code: 'provider_error', retryable: true },
    ],
  ])('Bedrock: %s', async (_, played, expected) => {
    const { error } = await askInVain(claude(await play(played)))
    expect(error).toMatchObject(expected)
    expect(JSON.stringify([error.message, error.details])).not.toContain('bedrock-secret')
  })

  test('the partial answer is kept when an error follows', async () => {
    const one = googleEvents([candidate([{ text: 'one' }])])
    const wrong = googleEvents([{ error: { code: 503, message: 'busy', status: 'UNAVAILABLE' } }])
    const { error } = await askInVain(gemini(await play({ body: [one, wrong] })))
    expect(error).toMatchObject({ code: 'overloaded', partial: { blocks: [{ type: 'text', text: 'one' }] } })
  })

  test('a frame of broken JSON is an error with the partial answer', async () => {
    const one = googleEvents([candidate([{ text: 'one' }])])
    const { error } = await askInVain(gemini(await play({ body: [one, Buffer.from('data: {"candi\n\n'), one] })))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true, partial: { blocks: [{ text: 'one' }] } })
  })

  test.each([
    ['SAFETY', 'filtered'],
    ['MAX_TOKENS', 'length'],
    ['SOMETHING_NEW', 'length'],
  ])('the finish reason %s maps to %s', async (reason, finishReason) => {
    const { reply } = await ask(gemini(await play({ body: [googleEvents([candidate([{ text: 'a' }], reason)])] })))
    expect(reply.finishReason).toBe(finishReason)
  })

  test('B1: provider-specific reasons are mapped: Bedrock’s window and Claude’s pause are `length`', async () => {
    for (const stopReason of ['model_context_window_exceeded', 'pause_turn', 'something_new']) {
      const events = bedrockEvents([
        ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'a' } }],
        ['messageStop', { stopReason }],
      ])
      expect((await ask(claude(await play({ body: [events] })))).reply.finishReason).toBe('length')
    }
  })

  test('B1: figures that Gemini gives in an earlier event only count', async () => {
    const { usageMetadata, ...rest } = candidate([{ text: 'b' }], 'STOP') as { usageMetadata: object }
    const { reply } = await ask(gemini(await play({ body: [googleEvents([candidate([{ text: 'a' }]), rest])] })))
    expect(reply.usage).toMatchObject({ inputTokens: 7, outputTokens: 3, estimated: false })
    const last = { usageMetadata }
    const behind = [candidate([{ text: 'a' }], 'STOP'), last]
    expect((await ask(gemini(await play({ body: [googleEvents(behind)] })))).reply.usage.inputTokens).toBe(7)
  })

  test.each(['OTHER', 'MALFORMED_RESPONSE'])('B1: the reason %s is a failed answer', async (reason) => {
    const body = [googleEvents([candidate([{ text: 'a' }], reason)])]
    expect((await askInVain(gemini(await play({ body })))).error).toMatchObject({
      code: 'provider_error',
      retryable: true,
    })
  })

  test('a call that the provider could not parse is a retryable error', async () => {
    const body = [googleEvents([candidate([{ text: 'a' }], 'MALFORMED_FUNCTION_CALL')])]
    const { error } = await askInVain(gemini(await play({ body })))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true, partial: { blocks: [{ text: 'a' }] } })
  })

  test('an answer of only the provider’s own tools is an error that names them', async () => {
    const parts = [
      { executableCode: { language: 'PYTHON', code: '1' } },
      { codeExecutionResult: { outcome: 'OUTCOME_OK' } },
    ]
    const { error } = await askInVain(gemini(await play({ body: [googleEvents([candidate(parts, 'STOP')])] })))
    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('code_execution') })
  })

  test('a refused connection is an error', async () => {
    const { error } = await askInVain(gemini({ url: await nobody() }))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    expect(error.message).toMatch(/Could not reach google at http:\/\/127\.0\.0\.1:.*ECONNREFUSED/)
  })

  test('by name: redirects are not followed, and errors show neither half of a key pair', async () => {
    const away = { status: 307, headers: { location: 'http://evil.example/' }, body: [] }
    const environment = { GEMINI_API_KEY: 'google-secret', GOOGLE_BASE_URL: (await play(away)).url }
    const { error } = await askInVain(resolveModel('google:gemini-3-pro-preview', environment))
    expect(error).toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/^google redirects http:\/\/127.*evil/),
    })

    const told = { status: 500, body: [Buffer.from('{"message":"AKIAEXAMPLE with bedrock-secret failed"}')] }
    const pair = { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'bedrock-secret', AWS_REGION: 'us-east-1' }
    const model = resolveModel('bedrock:amazon.nova', { ...pair, BEDROCK_BASE_URL: (await play(told)).url })
    const failed = await askInVain(model)
    expect(failed.error).toMatchObject({ code: 'provider_error', retryable: true })
    expect(JSON.stringify([failed.error.message, failed.error.details])).not.toMatch(/bedrock-secret|AKIAEXAMPLE/)
  })

  test('an answer above the size limit is an error', async () => {
    const call = { functionCall: { name: 'weather', args: {} } }
    const many = () => play({ body: [googleEvents([candidate([call, call, call], 'STOP')])] })
    const calls = await askInVain(gemini(await many(), { limits: { calls: 2 } }))
    expect(calls.error).toMatchObject({ code: 'provider_error', message: expect.stringContaining('limits.calls') })
    const text = await askInVain(gemini(await play(answer('x'.repeat(200))), { limits: { answerBytes: 100 } }))
    expect(text.error).toMatchObject({ code: 'provider_error', message: expect.stringContaining('answerBytes') })
  })

  test('an internal error of a package is reported without its message', async () => {
    const broken = { ...googleAt({ url: 'http://127.0.0.1:1' })('m'), specificationVersion: 'v4' as const }
    const model = aiSdk({
      ...broken,
      provider: 'p.x',
      modelId: 'm',
      supportedUrls: {},
      doStream: () => Promise.reject(new RangeError('the conversation: hi')),
    })
    const { error } = await askInVain(model)
    expect(error).toMatchObject({
      code: 'provider_error',
      retryable: false,
      message: 'The package of p failed (RangeError).',
    })
  })
})

describe('waiting', () => {
  const one = googleEvents([candidate([{ text: 'one' }])])

  test('silence before the first part is a first_byte_timeout', async () => {
    const { error } = await askInVain(
      gemini(await play({ body: [], ending: 'silence' }), { timeouts: { firstByteMs: 30 } }),
    )
    expect(error).toMatchObject({ code: 'first_byte_timeout', retryable: true, partial: undefined })
  })

  test('silence in mid-stream is an idle_timeout with the partial answer, and closes the connection', async () => {
    const server = await play({ body: [one], ending: 'silence' })
    const { error } = await askInVain(gemini(server, { timeouts: { idleMs: 30 } }))
    expect(error).toMatchObject({ code: 'idle_timeout', partial: { blocks: [{ type: 'text', text: 'one' }] } })
    await server.left
  })

  test('cancelling rejects at once with the partial answer and closes the connection', async () => {
    const server = await play({ body: [one], ending: 'silence' })
    const controller = new AbortController()
    const reply = gemini(server).generate(request(), { signal: controller.signal, onDelta: () => controller.abort() })
    await expect(reply).rejects.toMatchObject({
      code: 'cancelled',
      partial: { blocks: [{ type: 'text', text: 'one' }], finishReason: 'cancelled', usage: { estimated: true } },
    })
    await server.left
  })

  test('a signal that has already fired sends no request', async () => {
    const server = await play(answer())
    const { error } = await askInVain(gemini(server), {}, AbortSignal.abort())
    expect(error.code).toBe('cancelled')
    expect(server.requests).toHaveLength(0)
  })
})

describe('parts of a package’s stream', () => {
  type Part = LanguageModelV4StreamPart
  const giving = (...parts: Part[]): LanguageModelV4 => ({
    specificationVersion: 'v4',
    provider: 'p.x',
    modelId: 'm',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('not streamed')),
    doStream: async () => ({ stream: ReadableStream.from(parts) as ReadableStream<Part> }),
  })
  const usage = { inputTokens: { total: 3 }, outputTokens: { total: 1 } } as (Part & { type: 'finish' })['usage']
  const whole: Part[] = [
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'whole' },
    { type: 'text-end', id: '1' },
    { type: 'finish', usage, finishReason: { unified: 'stop', raw: 'stop' } },
  ]

  test.each<[string, Part]>([
    ['an error', { type: 'error', error: new Error('late') }],
    ['text', { type: 'text-delta', id: '2', delta: ' and more' }],
    ['a call', { type: 'tool-call', toolCallId: 'c', toolName: 'f', input: '{}' }],
  ])('%s after the end changes nothing', async (_, late) => {
    const { reply } = await ask(aiSdk(giving(...whole, late)))
    expect(reply).toMatchObject({ blocks: [{ type: 'text', text: 'whole' }], finishReason: 'stop' })
  })

  test('names are kept up to 256 characters', async () => {
    const long = 'T'.repeat(100_000)
    const call: Part = { type: 'tool-call', toolCallId: 'c', toolName: long, input: '{}' }
    const about: Part = { type: 'response-metadata', modelId: long }
    const { reply } = await ask(aiSdk(giving(about, call, whole.at(-1)!)))
    expect(reply).toMatchObject({ blocks: [{ type: 'call', tool: 'T'.repeat(256) }], model: 'T'.repeat(256) })
  })
})

// The driver over real HTTP: how an answer ends, whole or not.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { gate, scriptedModel } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ask, askInVain, frame, modelAt, request, serve, sse, text } from '../asking.fixture.ts'
import { openaiChat } from '../index.ts'

test('a scripted answer arrives as fragments and as one reply', async () => {
  const server = await serve({ thinking: 'hm', text: 'hello there', calls: [{ name: 'add', arguments: { a: 1 } }] })
  const { reply, deltas } = await ask(modelAt(server))
  expect(reply).toEqual({
    blocks: [
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'hello there' },
      { type: 'call', callId: '', tool: 'add', arguments: '{"a":1}' },
    ],
    finishReason: 'calls',
    usage: {
      inputTokens: 10,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 5,
      reasoningTokens: 0,
      estimated: false,
    },
    model: 'any',
  })
  expect(deltas).toEqual([
    { type: 'thinking', block: 0, text: 'hm' },
    { type: 'text', block: 1, text: 'hello' },
    { type: 'text', block: 1, text: ' there' },
    { type: 'call', block: 2, tool: 'add' },
    { type: 'arguments', block: 2, text: '{"a":1}' },
  ])
  server.assertDrained()
})

test('the id is provider:model unless another is given', () => {
  const options = { provider: 'p', model: 'm', baseUrl: 'http://127.0.0.1/v1' }
  expect(openaiChat(options).id).toBe('p:m')
  expect(openaiChat({ ...options, id: 'mine' }).id).toBe('mine')
})

test.each([
  [{ baseUrl: 'localhost/v1' }, /base URL/],
  [{ baseUrl: 'http://user:sk-a@127.0.0.1/v1' }, /password/],
  [{ apiKey: 'sk-a\nb' }, /^The API key of p is empty or contains invalid characters/],
  [{ apiKey: '', keyVariable: 'P_API_KEY' }, /^P_API_KEY is empty or contains invalid characters/],
  [{ headers: { 'x-key': 'sk-a\nb' } }, /"x-key"/],
])('an invalid address or key is reported before any request: %j', (options, message) => {
  const make = () => openaiChat({ provider: 'p', model: 'm', baseUrl: 'http://127.0.0.1/v1', ...options })
  expect(make).toThrow(expect.objectContaining({ code: 'model_config', message: expect.stringMatching(message) }))
  expect(make).not.toThrow(/sk-a/)
})

test('the key, the content type and custom headers are sent; custom headers win', async () => {
  const server = await serve({ text: 'a' })
  await ask(modelAt(server, { headers: { 'x-title': 'oxbow', accept: 'text/plain' } }))
  expect(server.requests[0]?.headers).toMatchObject({
    authorization: 'Bearer sk-secret',
    'content-type': 'application/json',
    accept: 'text/plain',
    'x-title': 'oxbow',
  })
})

test('after `[DONE]` the connection is reused, even when the body ends late', async () => {
  const ports = new Set<number | undefined>()
  const server = createServer((incoming, response) => {
    ports.add(incoming.socket.remotePort)
    response.write(sse([frame({ content: 'a' }), frame({}, 'stop')]))
    setImmediate(() => response.end())
  })
  const url = await listening(server)
  const model = modelAt({ url })
  for (let i = 0; i < 10; i++) {
    await ask(model)
    await new Promise(setImmediate)
  }
  // The answer settles before the end of its body arrives, so another connection may be opened occasionally.
  expect(ports.size).toBeLessThan(6)
  server.closeAllConnections()
  server.close()
})

describe('cancelling', () => {
  test('rejects at once with the partial answer and closes the connection', async () => {
    const server = await serve({ text: 'one two three', silentAfterChunks: 2 })
    const controller = new AbortController()
    const model = modelAt(server)
    const deltas: string[] = []
    const answer = model.generate(request(), {
      signal: controller.signal,
      onDelta: (delta) => {
        if (delta.type === 'text') deltas.push(delta.text)
        if (deltas.length === 2) controller.abort()
      },
    })
    await expect(answer).rejects.toMatchObject({
      code: 'cancelled',
      retryable: false,
      partial: { blocks: [{ type: 'text', text: 'one two' }], finishReason: 'cancelled', usage: { estimated: true } },
    })
    await (await server.nextRequest()).waitForAbort()
    expect(deltas).toEqual(['one', ' two'])
  })

  test('works before the first byte', async () => {
    const held = gate()
    const server = await serve({ beforeHeaders: held, text: 'a' })
    const controller = new AbortController()
    const answer = askInVain(modelAt(server), {}, controller.signal)
    await held.reached
    controller.abort()
    const { error } = await answer
    expect(error).toMatchObject({ code: 'cancelled', partial: undefined })
    await (await server.nextRequest()).waitForAbort()
  })

  test('a signal that has already fired sends no request', async () => {
    const server = await serve()
    const { error } = await askInVain(modelAt(server), {}, AbortSignal.abort())
    expect(error.code).toBe('cancelled')
    expect(server.requests).toHaveLength(0)
  })

  test('does not leave a listener on the signal', async () => {
    const server = await serve({ text: 'a' }, { status: 500 })
    const { signal } = new AbortController()
    let listeners = 0
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners++
      addEventListener.apply(signal, args)
    }
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners--
      removeEventListener.apply(signal, args)
    }
    await ask(modelAt(server), {}, { signal })
    await askInVain(modelAt(server), {}, signal)
    expect(listeners).toBe(0)
  })
})

describe('clocks', () => {
  test('no response headers within the limit are a first_byte_timeout', async () => {
    const server = await serve({ beforeHeaders: gate() })
    const { error } = await askInVain(modelAt(server, { timeouts: { firstByteMs: 30 } }))
    expect(error).toMatchObject({ code: 'first_byte_timeout', retryable: true, partial: undefined })
  })

  test('headers without a body are a first_byte_timeout too', async () => {
    const server = await serve({ beforeFirstByte: gate() })
    const { error } = await askInVain(modelAt(server, { timeouts: { firstByteMs: 30 } }))
    expect(error.code).toBe('first_byte_timeout')
  })

  test('silence in mid-stream is an idle_timeout with the partial answer', async () => {
    const server = await serve({ text: 'one two', silentAfterChunks: 1 })
    const { error } = await askInVain(modelAt(server, { timeouts: { idleMs: 30 } }))
    expect(error).toMatchObject({
      code: 'idle_timeout',
      retryable: true,
      partial: { blocks: [{ type: 'text', text: 'one' }], finishReason: 'error' },
    })
    await (await server.nextRequest()).waitForAbort()
  })

  test('keep-alive comments do not count as progress', async () => {
    const comments = Array.from({ length: 1_000 }, () => Buffer.from(': keep-alive\n\n'))
    const server = await serve({
      raw: [Buffer.from(sse([frame({ content: 'one' })], '')), ...comments],
      betweenChunks: 2,
    })
    const { error } = await askInVain(modelAt(server, { timeouts: { idleMs: 60 } }))
    expect(error).toMatchObject({ code: 'idle_timeout', partial: { blocks: [{ type: 'text', text: 'one' }] } })
  })

  test('an answer that streams for longer than the idle limit is not idle', async () => {
    const server = await serve({ text: 'a b c d e f g h i j k l', betweenChunks: 60 })
    const { reply } = await ask(modelAt(server, { timeouts: { idleMs: 500, firstByteMs: 500 } }))
    expect(text(reply)).toBe('a b c d e f g h i j k l')
  })

  test('silence is noticed after progress that lasted longer than the limit', async () => {
    const server = await serve({ text: 'a b c d e f g h', betweenChunks: 80, silentAfterChunks: 8 })
    const { error } = await askInVain(modelAt(server, { timeouts: { idleMs: 500 } }))
    expect(error).toMatchObject({ code: 'idle_timeout', partial: { blocks: [{ text: 'a b c d e f g h' }] } })
  })

  test('the total limit also ends a busy answer', async () => {
    const server = await serve({ text: 'word '.repeat(1_000), betweenChunks: 2 })
    const { error } = await askInVain(modelAt(server, { timeouts: { totalMs: 60 } }))
    expect(error).toMatchObject({ code: 'total_timeout', retryable: true })
  })

  test('an error whose body never arrives is still the error of its status', async () => {
    const server = createServer((_, response) => response.writeHead(429, { 'retry-after': '7' }).flushHeaders())
    const url = await listening(server)
    const { error } = await askInVain(modelAt({ url }, { timeouts: { firstByteMs: 500 } }))
    expect(error).toMatchObject({ code: 'rate_limited', retryAfterMs: 7_000 })
    server.closeAllConnections()
    server.close()
  })

  test('silence after the finish reason is the end: the answer was whole', async () => {
    const server = await serve({ text: 'one', silentAfterChunks: 2 })
    const start = performance.now()
    const { reply } = await ask(modelAt(server, { timeouts: { idleMs: 300 } }))
    expect(performance.now() - start).toBeLessThan(2_000)
    expect(reply).toMatchObject({
      blocks: [{ type: 'text', text: 'one' }],
      finishReason: 'stop',
      usage: { estimated: true },
    })
  })

  test('does not leave a timer behind', async () => {
    const server = await serve({ text: 'a' }, { status: 500 })
    await ask(modelAt(server))
    await askInVain(modelAt(server))
    // Draining a finished stream may hold one, unreferenced, for a moment.
    expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length).toBeLessThanOrEqual(1)
  })
})

describe('streams that break', () => {
  test('a connection that is cut after some chunks is a stream_cut', async () => {
    const held = gate()
    const server = await serve({ text: 'one two three', hold: { atChunk: 2, gate: held }, cutAfterChunks: 2 })
    const seen: string[] = []
    const answer = modelAt(server).generate(request(), {
      signal: new AbortController().signal,
      onDelta: (delta) => {
        if (delta.type === 'text') seen.push(delta.text)
        if (seen.length === 2) held.open()
      },
    })
    await expect(answer).rejects.toMatchObject({
      code: 'stream_cut',
      retryable: true,
      partial: { blocks: [{ type: 'text', text: 'one two' }], finishReason: 'error' },
    })
  })

  test('a connection that is cut after the finish reason delivered the answer', async () => {
    const held = gate()
    const raw = [Buffer.from(sse([frame({ content: 'one' }, 'stop')], ''))]
    const server = await serve({ raw, hold: { atChunk: 1, gate: held }, cutAfterChunks: 1 })
    const reply = await modelAt(server).generate(request(), {
      signal: new AbortController().signal,
      onDelta: held.open,
    })
    expect(reply).toMatchObject({ blocks: [{ type: 'text', text: 'one' }], finishReason: 'stop' })
  })

  test('an empty body is a stream_cut', async () => {
    const { error } = await askInVain(modelAt(await serve({ raw: '' })))
    expect(error.code).toBe('stream_cut')
  })

  test('a frame of broken JSON is an error with the partial answer, not a lost word', async () => {
    const { error } = await askInVain(modelAt(await serve({ text: 'one two', garbageAt: 1 })))
    expect(error).toMatchObject({
      code: 'provider_error',
      retryable: true,
      partial: { blocks: [{ type: 'text', text: 'one' }] },
    })
  })

  test.each([
    [{ message: 'Upstream is busy', code: 503 }, 'overloaded'],
    [{ message: 'slow down', code: 429 }, 'rate_limited'],
    [
      { message: 'This model’s maximum context length is 8192 tokens', type: 'invalid_request_error' },
      'context_overflow',
    ],
    [{ message: 'bad tool', type: 'invalid_request_error' }, 'invalid_request'],
    [{ message: 'it broke' }, 'provider_error'],
    ['it broke', 'provider_error'],
  ])('an error object after status 200 is a typed error: %j', async (wire, code) => {
    const { error } = await askInVain(modelAt(await serve({ text: 'one', error: wire })))
    expect(error).toMatchObject({ code, partial: { blocks: [{ type: 'text', text: 'one' }] } })
  })

  test.each([
    ['error', 'provider_error'],
    ['network_error', 'provider_error'],
    ['insufficient_system_resource', 'overloaded'],
  ])('the finish reason `%s` means an incomplete answer', async (finishReason, code) => {
    const { error } = await askInVain(modelAt(await serve({ text: 'one', finishReason })))
    expect(error).toMatchObject({ code, retryable: true, partial: { blocks: [{ type: 'text', text: 'one' }] } })
  })

  test.each([
    ['inside a choice', { choices: [{ index: 0, delta: {}, error: { message: 'no', code: 503 } }] }, 'overloaded'],
    ['named by its event', 'event: error\ndata: {"message":"server overloaded"}\n\n', 'overloaded'],
    ['of a web framework', { detail: 'it broke' }, 'provider_error'],
    ['of vLLM', { object: 'error', message: 'no', code: 400 }, 'invalid_request'],
    [
      'of MiniMax',
      { choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
      'rate_limited',
    ],
    ['of DashScope', { code: 'Throttling', message: 'Too many requests', request_id: 'r' }, 'rate_limited'],
  ])('an error %s is found', async (_, wire, code) => {
    const { error } = await askInVain(modelAt(await serve({ raw: sse([wire]) })))
    expect(error.code).toBe(code)
  })

  test('DashScope’s own format is refused with the address that works', async () => {
    const native = { output: { text: 'Hel', finish_reason: 'null' }, usage: {}, request_id: 'r' }
    const { error } = await askInVain(
      modelAt(await serve({ raw: `id:1\nevent:result\ndata:${JSON.stringify(native)}\n\n` })),
    )
    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('compatible-mode/v1') })
    const whole = await askInVain(modelAt(await serve({ raw: JSON.stringify(native) })))
    expect(whole.error.code).toBe('invalid_request')
  })
})

describe('endless answers', () => {
  const limits = { answerBytes: 100_000 }
  const pieceOf = (text: string) => Buffer.from(text.repeat(1_000))
  /** Serves these pieces for as long as they are read, and reports when the client has left. */
  async function pour(pieces: Iterable<Buffer>, status = 200, headers = {}) {
    const left = Promise.withResolvers<void>()
    const server = createServer((_, response) => {
      response.writeHead(status, headers).on('close', left.resolve)
      Readable.from(pieces).on('error', left.reject).pipe(response)
    })
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return { url: await listening(server), left: left.promise }
  }
  function* endless(first: string, then: string): Generator<Buffer> {
    yield Buffer.from(first)
    for (const piece = pieceOf(then); ; ) yield piece
  }
  const word = sse([frame({ content: 'word ' })], '')

  test.each([
    ['one line', '', 'data: x'],
    ['one event', '', 'data: x\n'],
    ['signs of life', word, ': alive\n\n'],
    ['words', word, word],
    ['one document', '{"choices":', ' '],
  ])('endless %s are aborted, with the partial answer', async (_, first, then) => {
    const { url, left } = await pour(endless(first, then))
    const { error } = await askInVain(modelAt({ url }, { limits }))
    expect(error).toMatchObject({
      code: 'provider_error',
      retryable: false,
      message: expect.stringContaining('limits.answerBytes'),
    })
    if (first === word) expect(error.partial?.blocks).toMatchObject([{ type: 'text' }])
    await left
  })

  test('bytes are counted after decompression', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, ' '))
    expect(bomb.length).toBeLessThan(limits.answerBytes)
    const { url, left } = await pour([bomb], 200, { 'content-encoding': 'gzip' })
    const { error } = await askInVain(modelAt({ url }, { limits }))
    expect(error.message).toContain('more than 100000 bytes')
    await left
  })

  test('only the beginning of an error is read', async () => {
    const { url, left } = await pour(endless('', 'no '), 500)
    expect((await askInVain(modelAt({ url }))).error).toMatchObject({ code: 'provider_error', status: 500 })
    await left
  })

  test('a whole answer stays whole, whatever follows it', async () => {
    const { url, left } = await pour(endless(sse([frame({ content: 'one' }, 'stop')], ''), ': alive\n\n'))
    expect(text((await ask(modelAt({ url }, { limits }))).reply)).toBe('one')
    await left
  })
})

describe('bodies that are not a stream', () => {
  const completion = {
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'whole' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 1 },
  }

  test.each(['', '\uFEFF', ' \n'])('a JSON completion is read, after %j too', async (before) => {
    const body = `${before}${JSON.stringify(completion, null, 2)}`
    const { reply, deltas } = await ask(modelAt(await serve({ raw: [Buffer.from(body)] })))
    expect(reply).toMatchObject({ blocks: [{ type: 'text', text: 'whole' }], finishReason: 'stop', model: 'm' })
    expect(deltas).toHaveLength(1)
  })

  test('it is assembled from many reads', async () => {
    const server = await scriptedModel({
      scripts: { '*': [{ raw: [Buffer.from(JSON.stringify(completion))] }] },
      writeBytes: 7,
      oneWritePerTurn: true,
    })
    expect(text((await ask(modelAt(server))).reply)).toBe('whole')
    await server.close()
  })

  test.each([
    ['an error object', '{"error":{"message":"no","code":503}}', 'overloaded', /overloaded/],
    ['a web page', '<!doctype html><p>Sign in, secret', 'provider_error', /web page/],
    ['something else', '{"ok":true}', 'provider_error', /base URL/],
    ['a list', '[{"candidates":[]}]', 'provider_error', /base URL/],
    ['half a completion', JSON.stringify(completion).slice(0, 50), 'provider_error', /broken JSON/],
  ])('%s is a typed error', async (_, raw, code, message) => {
    const { error } = await askInVain(modelAt(await serve({ raw: [Buffer.from(raw)] })))
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
    expect(error.message).not.toContain('secret')
  })
})

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

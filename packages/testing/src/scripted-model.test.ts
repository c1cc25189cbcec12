import { afterEach, describe, expect, test } from 'vitest'
import {
  gate,
  type Reply,
  type ScriptedModel,
  type ScriptedModelOptions,
  scriptedModel,
  spawnScriptedModel,
} from './index.ts'

let server: ScriptedModel
afterEach(() => server.close())

const start = async (options: ScriptedModelOptions) => {
  server = await scriptedModel(options)
}
const serve = (...replies: Reply[]) => start({ scripts: { '*': replies } })

const post = (body: object = {}, init: RequestInit = {}): Promise<Response> =>
  fetch(`${server.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'any', stream: true, messages: [{ role: 'user', content: 'hi' }], ...body }),
    ...init,
  })

const dataOf = (body: string): string[] => [...body.matchAll(/^data: (.*)$/gm)].map((match) => match[1]!)
// biome-ignore lint/suspicious/noExplicitAny: the wire is what these tests look at.
const chunksOf = (body: string): any[] => dataOf(body).flatMap((data) => (data === '[DONE]' ? [] : [JSON.parse(data)]))
const streamed = async (body: object = {}): Promise<string> => (await post(body)).text()

/** Reads until the connection ends, cleanly or not, and returns what arrived. */
async function readAll(response: Response): Promise<{ body: string; broken: boolean }> {
  const decoder = new TextDecoder()
  let body = ''
  try {
    for await (const bytes of response.body!) body += decoder.decode(bytes, { stream: true })
    return { body, broken: false }
  } catch {
    return { body, broken: true }
  }
}

describe('the wire', () => {
  test('text comes word by word, then the reason, then `[DONE]`', async () => {
    await serve({ text: 'hello there you' })
    const response = await post()
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const body = await response.text()
    expect(chunksOf(body).map((chunk) => chunk.choices[0])).toEqual([
      { index: 0, delta: { content: 'hello' }, finish_reason: null },
      { index: 0, delta: { content: ' there' }, finish_reason: null },
      { index: 0, delta: { content: ' you' }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: 'stop' },
    ])
    expect(chunksOf(body)[0]).toMatchObject({ object: 'chat.completion.chunk', model: 'any' })
    expect(body.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('splitting never changes the text', async () => {
    const texts = ['  two  spaces \n\n end ', '天气 🌤 ok', ' ', 'word']
    for (const options of [{}, { chunkChars: 1 }, { chunkChars: 3 }]) {
      server?.close()
      await start({ scripts: { '*': texts.flatMap((text) => [{ text }, { text, chunks: 2 }]) }, ...options })
      for (const text of texts.flatMap((each) => [each, each])) {
        const parts = chunksOf(await streamed()).map((chunk) => chunk.choices[0].delta.content ?? '')
        expect(parts.join('')).toBe(text)
      }
      await server.close()
    }
  })

  test('`chunks` sets the number of text fragments', async () => {
    await serve({ text: 'abcdefgh', chunks: 4 })
    expect(
      chunksOf(await streamed())
        .slice(0, 4)
        .map((chunk) => chunk.choices[0].delta.content),
    ).toEqual(['ab', 'cd', 'ef', 'gh'])
  })

  test('thinking and calls are streamed', async () => {
    await serve({
      thinking: 'hm',
      calls: [
        { name: 'f', arguments: { a: 1 } },
        { name: 'g', arguments: '{broken', id: 'mine' },
      ],
    })
    const deltas = chunksOf(await streamed()).map((chunk) => chunk.choices[0].delta)
    expect(deltas).toEqual([
      { reasoning_content: 'hm' },
      { tool_calls: [{ index: 0, id: 'call_reply-0_0', type: 'function', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] },
      { tool_calls: [{ index: 1, id: 'mine', type: 'function', function: { name: 'g', arguments: '' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '{broken' } }] },
      {},
    ])
  })

  test('usage comes in its own frame when requested', async () => {
    const usage = { prompt_tokens: 7, completion_tokens: 3 }
    await serve({ text: 'a b', usage }, { text: 'a b' }, { text: 'a', usage: null }, { text: 'a' })
    const ask = { stream_options: { include_usage: true } }
    expect(chunksOf(await streamed(ask)).at(-1)).toMatchObject({ choices: [], usage })
    expect(chunksOf(await streamed(ask)).at(-1).usage).toEqual({
      prompt_tokens: 10,
      completion_tokens: 2,
      total_tokens: 12,
    })
    expect(chunksOf(await streamed(ask)).at(-1)).not.toHaveProperty('usage')
    expect(chunksOf(await streamed()).at(-1)).not.toHaveProperty('usage')
  })

  test('the reason and `[DONE]` can be omitted or changed', async () => {
    await serve({ text: 'a', finishReason: null, done: false }, { text: 'a', finishReason: 'length' })
    expect(chunksOf(await streamed())).toHaveLength(1)
    expect(chunksOf(await streamed()).at(-1).choices[0].finish_reason).toBe('length')
  })

  test('a request without `stream` gets one JSON body', async () => {
    await serve({ text: 'hello there', thinking: 'hm', calls: [{ name: 'f' }] })
    const response = await post({ stream: false })
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toMatchObject({
      object: 'chat.completion',
      choices: [
        {
          message: {
            role: 'assistant',
            content: 'hello there',
            reasoning_content: 'hm',
            tool_calls: [{ type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 10 },
    })
  })

  test('a raw body is sent unchanged', async () => {
    await serve({ raw: 'data: 1\n\ndata: 2\r\n\r\n: tail' }, { raw: [Uint8Array.of(0xff), Uint8Array.of(0xfe)] })
    expect(await streamed()).toBe('data: 1\n\ndata: 2\r\n\r\n: tail')
    expect([...(await (await post()).bytes())]).toEqual([0xff, 0xfe])
  })

  test('an error status has its headers and its body', async () => {
    await serve(
      { status: 429, headers: { 'retry-after': '3' }, body: { error: { message: 'slow down' } } },
      { status: 502, body: '<html>' },
    )
    const limited = await post()
    expect([limited.status, limited.headers.get('retry-after'), await limited.json()]).toEqual([
      429,
      '3',
      { error: { message: 'slow down' } },
    ])
    const bad = await post()
    expect([bad.status, bad.headers.get('content-type'), await bad.text()]).toEqual([502, 'text/plain', '<html>'])
  })
})

describe('scripts', () => {
  test('each model has its own list; `*` is for the others', async () => {
    await start({ scripts: { a: [{ text: 'a1' }, { text: 'a2' }], '*': { always: { text: 'other' } } } })
    const say = async (model: string) => chunksOf(await streamed({ model }))[0].choices[0].delta.content
    expect([await say('a'), await say('b'), await say('a'), await say('b')]).toEqual(['a1', 'other', 'a2', 'other'])
    server.assertDrained()
  })

  test('the key can be any part of the request', async () => {
    await start({
      key: ({ headers }) => String(headers['x-agent']),
      scripts: { one: [{ text: '1' }], two: [{ text: '2' }] },
    })
    const response = await post({}, { headers: { 'x-agent': 'two' } })
    expect(chunksOf(await response.text())[0].choices[0].delta.content).toBe('2')
  })

  test('a function sees the request, as a whole script and inside a list', async () => {
    await start({
      scripts: {
        a: ({ messages, tools }) => ({ text: `${messages.length}${tools[0]?.function.name}` }),
        b: [({ number }) => ({ text: `number ${number}` })],
      },
    })
    const tools = [{ type: 'function', function: { name: 'add' } }]
    expect(chunksOf(await streamed({ model: 'a', tools }))[0].choices[0].delta.content).toBe('1add')
    expect(await streamed({ model: 'b' })).toContain(' 1')
  })

  test('a script can be added later', async () => {
    await start({})
    server.script('any', [{ text: 'one' }])
    server.script('any', [{ text: 'two' }])
    expect(await streamed()).toContain('one')
    expect(await streamed()).toContain('two')
  })

  test.each<[string, ScriptedModelOptions, RegExp]>([
    ['no script', { scripts: { other: [] } }, /no script for "any"; there are scripts for: other/],
    ['no replies left', { scripts: { any: [] } }, /used up/],
    ['a function that returns nothing', { scripts: { any: () => undefined } }, /no reply to this request/],
    [
      'a function that throws',
      {
        scripts: {
          any: () => {
            throw new Error('bad script')
          },
        },
      },
      /bad script/,
    ],
  ])('%s is a 500 that names the cause, and `assertDrained` reports it', async (_, options, message) => {
    await start(options)
    const response = await post()
    expect(response.status).toBe(500)
    expect(((await response.json()) as { error: { message: string } }).error.message).toMatch(message)
    expect(() => server.assertDrained()).toThrow(message)
  })

  test('`assertDrained` reports unused replies', async () => {
    await start({ scripts: { a: [{ text: '1' }, { text: '2' }], b: [] } })
    expect(() => server.assertDrained()).toThrow(/2 unused for "a"/)
  })

  test('another path is a 404 and counts as unexpected', async () => {
    await serve()
    expect((await fetch(`${server.url}/models`)).status).toBe(404)
    expect(() => server.assertDrained()).toThrow('GET /v1/models')
  })

  test('a body that is not JSON is a 500 and counts as unexpected', async () => {
    await serve({ text: 'a' })
    expect((await post({}, { body: '{' })).status).toBe(500)
    expect(() => server.assertDrained()).toThrow(/JSON/)
  })
})

describe('requests', () => {
  test('requests are recorded with headers and parsed body', async () => {
    await serve({ text: 'a' })
    await (await post({ temperature: 0 }, { headers: { authorization: 'Bearer k' } })).text()
    expect(server.requests).toMatchObject([
      {
        number: 0,
        path: '/v1/chat/completions',
        model: 'any',
        body: { temperature: 0 },
        headers: { authorization: 'Bearer k' },
      },
    ])
  })

  test('nextRequest returns each request once and waits for the next', async () => {
    await serve({ text: 'a' }, { text: 'b' }, { text: 'c' })
    await streamed()
    expect((await server.nextRequest()).number).toBe(0)
    const [second, third] = [server.nextRequest(), server.nextRequest()]
    await streamed()
    await streamed()
    expect([(await second).number, (await third).number]).toEqual([1, 2])
  })

  test('a client that leaves is noticed', async () => {
    await serve({ text: 'one two', silentAfterChunks: 1 })
    const controller = new AbortController()
    const response = await post({}, { signal: controller.signal })
    const request = await server.nextRequest()
    expect(request.aborted).toBe(false)
    controller.abort()
    await request.waitForAbort()
    expect(request.aborted).toBe(true)
    expect((await readAll(response)).broken).toBe(true)
  })

  test('a complete answer is not an abort', async () => {
    await serve({ text: 'a' })
    await streamed()
    const request = await server.nextRequest()
    await expect(request.waitForAbort()).rejects.toThrow('answered completely')
    expect(request.aborted).toBe(false)
  })

  test('a connection that the script cuts is not an abort', async () => {
    await serve({ text: 'a b', cutAfterChunks: 1 })
    await readAll(await post())
    const request = await server.nextRequest()
    await expect(request.waitForAbort()).rejects.toThrow('cut by its script')
    expect(request.aborted).toBe(false)
  })
})

describe('faults', () => {
  test('a gate holds the head, the first byte, or a chunk', async () => {
    const gates = [gate(), gate(), gate()] as const
    await serve(
      { text: 'a b', beforeHeaders: gates[0] },
      { text: 'a b', beforeFirstByte: gates[1] },
      { text: 'a b', hold: { atChunk: 1, gate: gates[2] } },
    )
    let arrived = false
    const first = post().then((response) => {
      arrived = true
      return response.text()
    })
    await gates[0].reached
    expect(arrived).toBe(false)
    gates[0].open()
    expect(chunksOf(await first)).toHaveLength(3)

    const second = await post()
    await gates[1].reached
    gates[1].open()
    expect(chunksOf(await second.text())).toHaveLength(3)

    const reader = (await post()).body!.getReader()
    await gates[2].reached
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('"a"')
    gates[2].open()
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('" b"')
    await reader.cancel()
  })

  test('`release` ends a silent stream', async () => {
    await serve({ text: 'one two', silentAfterChunks: 1 })
    const response = await post()
    const reader = response.body!.getReader()
    await reader.read()
    server.release()
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('two')
    await reader.cancel()
  })

  test('a cut breaks the connection after the given chunks or bytes', async () => {
    const held = gate()
    await serve(
      { text: 'one two three', hold: { atChunk: 2, gate: held }, cutAfterChunks: 2 },
      { raw: 'data: 123456789\n\n', cutAfterBytes: 10 },
    )
    const response = await post()
    const reading = readAll(response)
    await held.reached
    held.open()
    const cut = await reading
    expect(cut.broken).toBe(true)
    expect(chunksOf(cut.body).length).toBeLessThanOrEqual(2)
    const bytes = await readAll(await post())
    expect(bytes.broken).toBe(true)
    expect('data: 1234'.startsWith(bytes.body)).toBe(true)
  })

  test('a stream can hold garbage, duplicates, keep-alives and an error', async () => {
    await serve(
      { text: 'a b', garbageAt: 1 },
      { text: 'a b', duplicateAt: 0 },
      { text: 'a', keepAlives: 2 },
      { text: 'a', error: { message: 'no' } },
    )
    expect(dataOf(await streamed())[1]).toBe('{"choices":[{"delta')
    expect(chunksOf(await streamed()).map((chunk) => chunk.choices[0].delta.content)).toEqual([
      'a',
      'a',
      ' b',
      undefined,
    ])
    expect((await streamed()).match(/^: keep-alive\n\n: keep-alive\n\ndata/gm)).toHaveLength(3)
    expect(chunksOf(await streamed()).at(-1)).toEqual({ error: { message: 'no' } })
  })

  test('chunks can be sent some milliseconds apart', async () => {
    await serve({ text: 'a b c', betweenChunks: 5 })
    const start = performance.now()
    await streamed()
    expect(performance.now() - start).toBeGreaterThan(10)
  })
})

test('`writeBytes` splits frames and characters anywhere and leaves the body the same', async () => {
  await start({ scripts: { '*': [{ text: '天气 🌤' }] }, writeBytes: 3, oneWritePerTurn: true })
  const response = await post()
  let reads = 0
  const parts: Uint8Array[] = []
  for await (const bytes of response.body!) {
    reads++
    parts.push(bytes)
  }
  expect(reads).toBeGreaterThan(1)
  expect(chunksOf(Buffer.concat(parts).toString()).map((chunk) => chunk.choices[0].delta.content)).toEqual([
    '天气',
    ' 🌤',
    undefined,
  ])
})

test('it can run in its own process', async () => {
  server = { close: () => Promise.resolve() } as ScriptedModel
  const spawned = await spawnScriptedModel({
    scripts: { '*': { always: { text: 'hello', raw: [Buffer.from('data: 1\n\n')] } } },
  })
  const ask = () => fetch(`${spawned.url}/chat/completions`, { method: 'POST', body: '{"model":"m","stream":true}' })
  expect(await (await ask()).text()).toBe('data: 1\n\n')
  expect(await (await ask()).text()).toBe('data: 1\n\n')
  await spawned.close()
  await expect(ask()).rejects.toThrow('fetch failed')
})
